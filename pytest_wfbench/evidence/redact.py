"""Structural redaction: no secret reaches a row, a transcript, a log or a report."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, quote_plus

MARK = "[redacted]"
SHORTEST = 6
DEEPEST = 200

SHAPES = (
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z)",
    r"sk-(?:ant|proj|or)-[A-Za-z0-9_-]{8,}",
    r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{16,}",
    r"gh[pousr]_[A-Za-z0-9]{20,}",
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"gl(?:pat|ptt|rt)-[A-Za-z0-9_-]{16,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])",
    r"xox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"AIza[A-Za-z0-9_-]{35}",
    r"hf_[A-Za-z0-9]{20,}",
    r"npm_[A-Za-z0-9]{30,}",
    r"pypi-[A-Za-z0-9_-]{40,}",
    r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
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
    r"(?i:(?<![A-Za-z0-9])bearer)\s{1,8}((?=[^\s]{0,200}[0-9])[A-Za-z0-9._~+/=-]{8,})",
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

    It knows secrets by value (raw, JSON-escaped up to twice, URL-encoded), by shape (keys of well-known issuers, JWTs,
    PEM blocks), and by place (authorization headers, URL credentials, fields with a sensitive name). It never raises,
    and redacting twice changes nothing. Values shorter than six characters are too common to be replaced.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {form for secret in secrets if len(secret) >= SHORTEST for form in _forms(secret)}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        self._known = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def text(self, text: str) -> str:
        """Return the text without its secrets."""
        while (cleaner := self._once(text)) != text:
            # Each pass only ever replaces what is no mark, so this ends; a removal can bare another secret's edge.
            text = cleaner
        return text

    def value(self, value: Any) -> Any:
        """Return a JSON value without its secrets; what lies deeper than 200 levels is removed."""
        return self._value(value, 0)

    def _once(self, text: str) -> str:
        shaped = MARK.join(SHAPE.sub(MARK, self._without_known(part)) for part in text.split(MARK))
        for place in PLACE:
            shaped = place.sub(_replace_group, shaped)
        return shaped

    def _without_known(self, part: str) -> str:
        return self._known.sub(MARK, part) if self._known else part

    def _value(self, value: Any, depth: int) -> Any:
        if depth > DEEPEST:
            return MARK
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self._key(key): self._field(str(key), inner, depth + 1) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self._value(inner, depth + 1) for inner in value]
        return value

    def _key(self, key: Any) -> Any:
        return self.text(key) if isinstance(key, str) else key

    def _field(self, name: str, value: Any, depth: int) -> Any:
        return _blank(value, depth) if sensitive_name(name) else self._value(value, depth)


def _blank(value: Any, depth: int) -> Any:
    """Under a sensitive name everything goes but the shape, nulls and flags."""
    if depth > DEEPEST:
        return MARK
    if isinstance(value, dict):
        return {key: _blank(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_blank(inner, depth + 1) for inner in value]
    return value if value is None or isinstance(value, bool) or value == "" else MARK


def _replace_group(match: re.Match[str]) -> str:
    whole, start, end = match.group(0), match.start(1) - match.start(), match.end(1) - match.start()
    return whole[:start] + MARK + whole[end:]


def _forms(secret: str) -> set[str]:
    escaped = {json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    twice = {json.dumps(form, ensure_ascii=ascii_only)[1:-1] for form in escaped for ascii_only in (True, False)}
    urls = {quote(secret, safe="", errors="replace"), quote(secret, errors="replace")}
    return {secret, *escaped, *twice, *urls, quote_plus(secret, errors="replace")}
