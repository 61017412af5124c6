"""Structural redaction: no secret reaches a row, a transcript, a log or a report."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

# Not re: that of Python 3.11.2, which Debian 12 has, does not find what follows a possessive group with a look-ahead.
import regex as re

MARK = "[redacted]"
SHORTEST = 6
# Shorter values are common enough to come about where words meet, or where a text was cut.
SHORTEST_SPREAD = 10
SHORTEST_PIECE = 8
DEEPEST = 200
# More than any honest text takes; one that is made to take one more for each few of its bytes goes as a whole.
PASSES = 20

PEM = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
SHAPES = (
    rf"-----BEGIN {PEM}.*?(?:-----END {PEM}|\Z)",
    r"sk-(?:ant|proj|or)-[A-Za-z0-9_-]{8,}",
    r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{16,}",
    r"gh[pousr]_[A-Za-z0-9]{20,}",
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"gl(?:pat|ptt|rt)-[A-Za-z0-9_-]{16,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16,}+",
    r"xox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"xapp-[0-9]-[A-Za-z0-9-]{10,}",
    r"hooks\.slack\.com/services/[A-Za-z0-9/]{20,}",
    r"AIza[A-Za-z0-9_-]{35}",
    r"GOCSPX-[A-Za-z0-9_-]{20,}",
    r"ya29\.[A-Za-z0-9_-]{20,}",
    r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}",
    r"(?:gsk_|xai-|pplx-)[A-Za-z0-9]{30,}",
    r"hf_[A-Za-z0-9]{20,}",
    r"npm_[A-Za-z0-9]{30,}",
    r"pypi-[A-Za-z0-9_-]{40,}",
    # A word may be glued to it: looked at once a run, from the first place where it can begin, so that a run that only
    # looks like many of them costs no more than its length.
    r"(?<![A-Za-z0-9_-])(?P<word>(?:(?!eyJ)[A-Za-z0-9_-])*+)eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]*",
)
NAME = (
    r"(?:[A-Za-z0-9]{1,40}[_.-]){0,8}(?:api[_-]?key|secret[_-]?key|access[_-]?key|private[_-]?key|master[_-]?key"
    r"|client[_-]?secret|secret|password|passwd|passphrase|(?:access|refresh|id|auth|bearer|session)[_-]?token|token"
    r"|credentials?|cookie)"
)
# Each pattern's one group is what has to go; what stands around it says why and stays.
PLACES = (
    # authorization: Bearer x / x-api-key: x, to the end of the line or of the string literal
    r"(?i:(?<![A-Za-z0-9])(?:proxy-)?authorization|x-api-key|api-key|set-cookie|(?<![A-Za-z0-9-])cookie)\\*[\"']?\s{0,8}:\s{0,8}"
    r"(?:\\*[\"'])?([^\s\"'\\][^\r\n\"'\\]*)",
    r"(?i:(?<![A-Za-z0-9])(?:bearer|basic))\s{1,8}((?=[^\s]{0,200}[0-9])[A-Za-z0-9._~+/=-]{8,})",
    r"[a-zA-Z][a-zA-Z0-9+.-]{0,30}://([^\s/\"'<>@]{0,256}:[^\s/\"'<>]{1,256})@",
    # "api_key": "x", quotes escaped any number of times
    rf"(?i:(?<![A-Za-z0-9]){NAME})\\*[\"']\s{{0,8}}[:=]\s{{0,8}}\\*[\"']([^\"'\\]+)",
    # ?access_token=x&
    rf"[?&](?i:{NAME})=([^\s&#\"'<>]+)",
    # ANTHROPIC_API_KEY=x
    r"(?<![A-Za-z0-9_])[A-Z][A-Z0-9_]{0,60}(?:API_KEY|TOKEN|SECRET|PASSWORD|ACCESS_KEY|PRIVATE_KEY)"
    r"\s{0,2}=\s{0,2}[\"']?([^\s\"'$\\]+)",
    # api_key = x1…, where x has the look of a key rather than of a word
    rf"(?i:(?<![A-Za-z0-9]){NAME})\s{{0,8}}[:=]\s{{0,8}}[\"']?((?=[^\s\"']{{0,200}}[0-9])[A-Za-z0-9._~+/=-]{{12,}})",
)

SHAPE = re.compile("|".join(SHAPES), re.DOTALL)
# What stands between the pieces of a value that was broken over lines, cells or string literals.
BETWEEN = re.compile(r"\\+[nrt]|[\s\"'`+,\\\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")
# Where a text was cut before it came here.
CUT = re.compile(r"(\n\[[0-9]+ characters left out\]\n)")
# What a cut went through, if it has the look of a key rather than of a word.
BEFORE_CUT = re.compile(r"(?<![A-Za-z0-9_.+/=%-])(?=[^0-9]*[0-9])[A-Za-z0-9_.+/=%-]{12,}\Z")
AFTER_CUT = re.compile(r"\A(?=[A-Za-z_.+/=%-]*[0-9])[A-Za-z0-9_.+/=%-]{12,}")
LONGEST_TOKEN = 400
PLACE = tuple(re.compile(pattern) for pattern in PLACES)
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
SENSITIVE = re.compile(
    r"(?:.*_)?(?:api_?key|secret_?key|access_?key(?:_id)?|private_?key|master_?key|signing_?key|secret|password|passwd"
    r"|passphrase|pwd|(?:access_?|refresh_?|id_?|auth_?|bearer_?|session_?)?token|authorization|credentials?"
    r"|(?:set_)?cookies?)\Z"
)


def sensitive_name(name: str) -> bool:
    """Whether a field of this name holds a secret: ``apiKey``, ``X-Api-Key``, ``password``; not ``max_tokens``."""
    plain = re.sub(r"[^a-z0-9]+", "_", CAMEL.sub("_", name).lower()).strip("_")
    return SENSITIVE.match(plain) is not None


class Redactor:
    """Removes secrets from text and JSON values.

    It knows secrets by value, by shape (keys of well-known issuers, JWTs, PEM blocks), and by place (authorization
    headers, URL credentials, fields with a sensitive name). A value is known raw, JSON-escaped, URL-encoded or
    HTML-escaped, as hex and as base64 inside anything else, broken over lines or string literals, and as the piece
    that is left where a text was cut. It never raises, and redacting twice changes nothing. Values shorter than six
    characters are too common to be replaced.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {value for secret in secrets for value in (secret, secret.strip()) if len(value) >= SHORTEST}
        forms = {form for secret in known for form in _forms(secret)}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        self._known = re.compile("|".join(map(re.escape, longest_first))) if forms else None
        closed = {BETWEEN.sub("", form) for form in longest_first}
        self._closed = tuple(sorted(form for form in closed if len(form) >= SHORTEST_SPREAD))
        self._whole = tuple(sorted(form for form in known if len(form) > SHORTEST_PIECE))

    def text(self, text: str) -> str:
        """Return the text without its secrets."""
        for _ in range(PASSES):
            # A removal can bare another secret's edge.
            if (cleaner := self._once(text)) == text:
                return text
            text = cleaner
        return MARK

    def value(self, value: Any) -> Any:
        """Return a JSON value without its secrets; what lies deeper than 200 levels is removed."""
        return self._value(value, 0)

    def _once(self, text: str) -> str:
        known = self._without_pieces(self._without_known(text))
        shaped = MARK.join(SHAPE.sub(_replace_shape, part) for part in known.split(MARK))
        for place in PLACE:
            shaped = place.sub(_replace_group, shaped)
        return shaped

    def _without_known(self, text: str) -> str:
        if self._known is None:
            return text
        parts = (self._known.sub(MARK, part) for part in text.split(MARK))
        return MARK.join(self._without_spread(piece) for part in parts for piece in part.split(MARK))

    def _without_spread(self, part: str) -> str:
        """Remove values that are whole again once what stands between their pieces is gone."""
        closed = BETWEEN.sub("", part)
        found = [form for form in self._closed if form in closed]
        if not found:
            return part
        places = _places(part)
        spans = [
            (places[match.start()], places[match.end() - 1] + 1)
            for match in re.finditer("|".join(map(re.escape, found)), closed)
        ]
        ends = [0, *(end for _, end in spans)]
        starts = [*(start for start, _ in spans), len(part)]
        return MARK.join(part[end:start] for end, start in zip(ends, starts, strict=True))

    def _without_pieces(self, text: str) -> str:
        """Remove what begins a value where the text ends, or is cut, and what ends one where it begins."""
        pieces = CUT.split(text)
        for index in range(2, len(pieces), 2):
            before, after = pieces[index - 2], pieces[index]
            pieces[index - 2] = before[:-LONGEST_TOKEN] + BEFORE_CUT.sub(MARK, before[-LONGEST_TOKEN:])
            pieces[index] = AFTER_CUT.sub(MARK, after)
        pieces[::2] = [self._trimmed(piece) for piece in pieces[::2]]
        return "".join(pieces)

    def _trimmed(self, text: str) -> str:
        for secret in self._whole:
            if secret[:SHORTEST_PIECE] in text[-len(secret) :] and not text.endswith(MARK):
                text = _without_beginning(text, secret)
            if secret[-SHORTEST_PIECE:] in text[: len(secret)] and not text.startswith(MARK):
                text = _without_beginning(text[::-1], secret[::-1], MARK[::-1])[::-1]
        return text

    def _value(self, value: Any, depth: int) -> Any:
        if depth > DEEPEST:
            return MARK
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return self._fields(value, depth + 1)
        if isinstance(value, list | tuple):
            return [self._value(inner, depth + 1) for inner in value]
        return value

    def _fields(self, fields: dict[Any, Any], depth: int) -> dict[Any, Any]:
        return {self._key(key): self._field(str(key), inner, depth) for key, inner in fields.items()}

    def _key(self, key: Any) -> Any:
        return self.text(key) if isinstance(key, str) else key

    def _field(self, name: str, value: Any, depth: int) -> Any:
        return self._blank(value, depth) if sensitive_name(name) else self._value(value, depth)

    def _blank(self, value: Any, depth: int) -> Any:
        """Under a sensitive name everything goes but the shape, nulls and flags."""
        if depth > DEEPEST:
            return MARK
        if isinstance(value, dict):
            return {self._key(key): self._blank(inner, depth + 1) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self._blank(inner, depth + 1) for inner in value]
        return value if value is None or isinstance(value, bool) or value == "" else MARK


def _replace_group(match: re.Match[str]) -> str:
    whole, start, end = match.group(0), match.start(1) - match.start(), match.end(1) - match.start()
    return str(whole[:start] + MARK + whole[end:])


def _replace_shape(match: re.Match[str]) -> str:
    return (match["word"] or "") + MARK


def _places(part: str) -> list[int]:
    """Return where each character stands that is left when what stands between pieces is gone."""
    places: list[int] = []
    end = 0
    for gap in BETWEEN.finditer(part):
        places.extend(range(end, gap.start()))
        end = gap.end()
    places.extend(range(end, len(part)))
    return places


def _without_beginning(text: str, secret: str, mark: str = MARK) -> str:
    """Replace the longest beginning of a value that the text ends with."""
    longest = min(len(secret) - 1, len(text))
    found = (size for size in range(longest, SHORTEST_PIECE - 1, -1) if text.endswith(secret[:size]))
    size = next(found, 0)
    return text[:-size] + mark if size else text


def _forms(secret: str) -> set[str]:
    escaped = {json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    twice = {json.dumps(form, ensure_ascii=ascii_only)[1:-1] for form in escaped for ascii_only in (True, False)}
    data = secret.encode("utf-8", "replace")
    hexed = {data.hex(), data.hex().upper()}
    return {secret, html.escape(secret), *escaped, *twice, *_url_forms(secret), *hexed, *_base64_forms(data)}


def _url_forms(secret: str) -> Iterator[str]:
    once = {
        quote(secret, safe="", errors="replace"),
        quote(secret, errors="replace"),
        quote_plus(secret, errors="replace"),
    }
    every = "".join(f"%{byte:02X}" for byte in secret.encode("utf-8", "replace"))
    for form in (*once, *(quote(form, safe="") for form in once), every):
        yield form
        yield re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), form)


def _base64_forms(data: bytes) -> Iterator[str]:
    """Yield the characters that a value fixes in base64, at each of the three places it can have in what is encoded."""
    for before in range(3):
        text = base64.b64encode(bytes(before) + data).decode()
        fixed = text[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
        if len(fixed) >= SHORTEST_SPREAD:
            yield fixed
            yield fixed.replace("+", "-").replace("/", "_")
