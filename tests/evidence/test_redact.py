"""Structural redaction."""

from __future__ import annotations

import json
import time
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_wfbench.evidence.redact import MARK, Redactor, sensitive_name

BODY = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0"
SECRETS = st.text(min_size=6, max_size=30).filter(lambda text: text.strip() and MARK not in text)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=12,
)


class TestKnownValues:
    @pytest.mark.parametrize(
        "wrap", [str, json.dumps, lambda s: json.dumps(json.dumps(s)), lambda s: quote(s, safe="")]
    )
    def test_forms(self, wrap: object) -> None:
        """A known secret goes in every form it travels in: raw, JSON-escaped once or twice, URL-encoded."""
        secret = 'p"ss/w\\rd é&1'
        text = f"before {wrap(secret)} after"  # type: ignore[operator]
        cleaned = Redactor([secret]).text(text)
        assert cleaned.startswith("before ")
        assert cleaned.endswith(" after")
        assert MARK in cleaned
        assert "ss/w" not in cleaned
        assert "ss%2Fw" not in cleaned

    def test_longest_first(self) -> None:
        """A secret that begins with another is removed whole."""
        assert Redactor(["abcdef", "abcdefghi"]).text("abcdefghi") == MARK

    def test_short_values_stay(self) -> None:
        """A value shorter than six characters would blank ordinary words and is left alone."""
        assert Redactor(["test"]).text("the test passed") == "the test passed"

    def test_a_secret_inside_the_mark(self) -> None:
        """A secret that is part of the mark's own word still leaves redaction idempotent."""
        redactor = Redactor(["redacted"])
        assert redactor.text(redactor.text("redacted")) == MARK

    def test_unencodable_secret(self) -> None:
        """A secret with a lone surrogate neither raises nor stays."""
        assert Redactor(["\ud800secret"]).text("x\ud800secret") == "x" + MARK


class TestShapes:
    @pytest.mark.parametrize(
        "key",
        [
            "sk-" + BODY,
            "sk-ant-api03-" + BODY,
            "ghp_" + BODY[:36],
            "github_pat_" + BODY,
            "glpat-" + BODY[:20],
            "AKIA" + "ABCDEFGH12345678",
            "xoxb-123456789012-" + BODY[:20],
            "AIza" + BODY[:35],
            "hf_" + BODY[:34],
            f"eyJhbGciOiJIUzI1NiJ9.{BODY}.{BODY}",
            "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----\\nMIIabc cut here",
        ],
    )
    def test_key_shapes(self, key: str) -> None:
        """A key of a well-known shape goes wherever it stands, though nobody named it."""
        assert Redactor().text(f"it said ({key}") == f"it said ({MARK}"

    @pytest.mark.parametrize(
        ("text", "kept"),
        [
            ("Authorization: Bearer abc.def", f"Authorization: {MARK}"),
            ('{"authorization": "Basic dXNlcjpwdw=="}', f'{{"authorization": "{MARK}"}}'),
            ('{\\"x-api-key\\": \\"v1\\"}', f'{{\\"x-api-key\\": \\"{MARK}\\"}}'),
            ("curl -H 'X-Api-Key: abc' url", f"curl -H 'X-Api-Key: {MARK}' url"),
            ("sent bearer abcd1234efgh to", f"sent bearer {MARK} to"),
            ("https://user:pa@ss@host/x", f"https://{MARK}@host/x"),
            ("GET /x?a=1&access_token=zz&b=2", f"GET /x?a=1&access_token={MARK}&b=2"),
            ("ANTHROPIC_API_KEY=anything run", f"ANTHROPIC_API_KEY={MARK} run"),
            ('"client_secret": "hunter two"', f'"client_secret": "{MARK}"'),
        ],
    )
    def test_places(self, text: str, kept: str) -> None:
        """Headers, URL credentials, query strings, assignments and JSON fields lose the value, not the name."""
        assert Redactor().text(text) == kept

    @pytest.mark.parametrize(
        "text",
        [
            "max_tokens=4096, input_tokens: 120000",
            "a task-management-application-for-everyone",
            "token = parser.next_token()",
            "https://host/path?x=1@2",
            "SyntaxError: unexpected token: identifier",
        ],
    )
    def test_harmless(self, text: str) -> None:
        """Words that only resemble secrets stay."""
        assert Redactor().text(text) == text

    def test_back_to_back(self) -> None:
        """A key whose edge only shows once its neighbour is gone goes too."""
        assert Redactor().text("AKIAABCDEFGH12345678sk-" + BODY) == MARK + MARK


class TestPieces:
    KNOWN = "wf-Provider/Value+1234567890abcdef"

    @pytest.mark.parametrize(
        ("text", "left"),
        [
            (f"it is {KNOWN[:14]}", f"it is {MARK}"),
            (f"{KNOWN[14:]} it was", f"{MARK} it was"),
            (f"a {KNOWN[:20]}\n[99 characters left out]\n{KNOWN[20:]} b",
             f"a {MARK}\n[99 characters left out]\n{MARK} b"),
            (f"a ghp_{BODY[:12]}\n[99 characters left out]\nb", f"a {MARK}\n[99 characters left out]\nb"),
            (f'"{KNOWN[:16]}" + "{KNOWN[16:]}"', f'"{MARK}"'),
        ],
    )  # fmt: skip
    def test_cut(self, text: str, left: str) -> None:
        """What a cut left of a secret goes, and so does one that is put together from literals."""
        assert Redactor([self.KNOWN]).text(text) == left

    def test_glued_token(self) -> None:
        """A JWT glued to a word goes, and the word stays."""
        assert Redactor().text(f"ab-eyJhbGciOiJIUzI1NiJ9.{BODY}.{BODY} c") == f"ab-{MARK} c"


class TestValues:
    @pytest.mark.parametrize(
        "name", ["apiKey", "X-Api-Key", "password", "Set-Cookie", "refresh_token", "AWS_SECRET_ACCESS_KEY"]
    )
    def test_sensitive_names(self, name: str) -> None:
        """A field with a sensitive name loses whatever it holds, and keeps its shape."""
        assert Redactor().value({name: "plain", "n": 1}) == {name: MARK, "n": 1}
        assert Redactor().value({name: [{"inner": "plain"}, None]}) == {name: [{"inner": MARK}, None]}

    @pytest.mark.parametrize("name", ["max_tokens", "tokens", "public_key", "total_input", "primary_key", "key"])
    def test_plain_names(self, name: str) -> None:
        """Counts and public things are no secrets."""
        assert not sensitive_name(name)

    def test_depth(self) -> None:
        """What lies too deep to be looked through is removed, not trusted and not a crash."""
        value: object = "secret-value"
        for _ in range(5000):
            value = [value]
        cleaned = Redactor(["secret-value"]).value(value)
        for _ in range(201):
            cleaned = cleaned[0]
        assert cleaned == MARK


class TestProperties:
    @given(st.lists(SECRETS, max_size=3), st.text(max_size=60), JSON)
    def test_idempotent(self, secrets: list[str], text: str, value: object) -> None:
        """Redacting twice changes nothing, and nothing raises."""
        redactor = Redactor(secrets)
        once = redactor.text(text.join(secrets))
        assert redactor.text(once) == once
        again = redactor.value(value)
        assert repr(redactor.value(again)) == repr(again)

    @given(SECRETS, st.text(max_size=20), st.text(max_size=20))
    def test_no_known_secret_survives(self, secret: str, before: str, after: str) -> None:
        """A known value is in no output, wherever it stands."""
        left = Redactor([secret]).text(before + secret + after).replace(MARK, "")
        assert secret not in left or secret in before + after

    @settings(deadline=None, max_examples=20)
    @given(
        st.sampled_from(
            ["a", "a_", "://", "Bearer ", "token:", "-----BEGIN PRIVATE KEY-----", "x-api-key:", '"', "eyJ", "AKIA",
             "eyJaaaaaaaa.", "secret-", "secret-valu"]
        )
    )  # fmt: skip
    def test_linear(self, piece: str) -> None:
        """A hostile text of 300,000 characters costs no more than a few seconds of processor time."""
        start = time.process_time()
        Redactor(["secret-value"]).text(piece * (300_000 // len(piece)))
        assert time.process_time() - start < 5


@pytest.mark.parametrize(
    "secret",
    [
        "sk-ant-" + "api03-" + "a1B2c3D4" * 4,
        "ghp_" + "a1B2c3D4" * 4,
        "AKIA" + "A1B2C3D4" * 2,
        "glpat-" + "a1B2c3D4" * 3,
        "xoxb-" + "1234567890ab",
        "AIza" + "a1B2c3D" * 5,
        "hf_" + "a1B2c3D4" * 3,
    ],
)
def test_a_key_glued_to_a_word(secret: str) -> None:
    """A key's shape is known also where a letter stands before it."""
    assert secret not in Redactor([]).text(f"aaaa{secret} b")
