"""YAML that a stranger wrote."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from pytest_wfbench.matrix import yamldoc
from pytest_wfbench.matrix.yamldoc import MAX_DEPTH, MAX_TEXT, BadYaml, read_yaml

texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\t"), max_size=20)
scalars = st.none() | st.booleans() | st.integers(-(10**17), 10**17) | texts | st.floats(0.5, 1e9)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4))


class TestValues:
    @given(st.dictionaries(texts, values, max_size=4))
    def test_round_trip(self, value: dict[str, Any]) -> None:
        """What a YAML writer wrote, quoted, is read back as it was."""
        text = yaml.safe_dump(value, default_style='"', allow_unicode=True)
        assert read_yaml(text.encode()).value == value

    @pytest.mark.parametrize(
        "word",
        ["yes", "No", "on", "OFF", "y", "2026-01-01", "2026-01-01T10:00:00Z", "010", "0o10", "0x1F", "1_000", "1:30",
         "190:20:30", "1e999", "1.0e999", "-1.0e999", ".nan", ".inf", "=", "1.", ".5", "+", "9" * 19, "9" * 5000],
    )  # fmt: skip
    def test_words_of_two_readings_stay_text(self, word: str) -> None:
        """A plain word that YAML 1.1 and 1.2 read differently, or that is no finite number, is text."""
        assert read_yaml(f"a: {word}".encode()).value == {"a": word}

    @pytest.mark.parametrize(
        ("word", "value"),
        [("true", True), ("FALSE", False), ("~", None), ("", None), ("null", None), ("0", 0), ("-12", -12), ("+7", 7),
         ("1.5", 1.5), ("1.5e3", 1500.0), ("'1'", "1"), ('"true"', "true"), ("!!str 1", "1"), ("!!int 1", 1)],
    )  # fmt: skip
    def test_core_types(self, word: str, value: object) -> None:
        """The core types are read as such, and quotes make a text of anything."""
        found = read_yaml(f"a: {word}".encode()).value["a"]
        assert (found, type(found)) == (value, type(value))

    def test_keys_are_text(self) -> None:
        """A key is the text that stands there."""
        assert read_yaml(b"1: a\ntrue: b\n~: c\n2026-01-01: d\n").value == {
            "1": "a",
            "true": "b",
            "~": "c",
            "2026-01-01": "d",
        }

    def test_aliases_are_expanded(self) -> None:
        """An alias stands for what its anchor holds, at every place."""
        document = read_yaml(b"a: &x [1, 2]\nb: *x\nc: *x\n")
        assert document.value == {"a": [1, 2], "b": [1, 2], "c": [1, 2]}
        assert document.lines["c",] == 3

    def test_empty(self) -> None:
        """An empty document holds nothing."""
        assert read_yaml(b"# nothing\n").value is None

    def test_byte_order_mark(self) -> None:
        """A byte order mark at the start is no part of the first key."""
        assert read_yaml("\ufeffa: 1\n".encode()).value == {"a": 1}


class TestLines:
    def test_line_of_a_path(self) -> None:
        """Every path knows the line of its key, and one that is not there that of its nearest ancestor."""
        document = read_yaml(b"a:\n  b:\n    - c: 1\n    - d: 2\n")
        assert [document.line(path) for path in [(), ("a",), ("a", "b"), ("a", "b", 1), ("a", "b", 1, "d")]] == [
            1,
            1,
            2,
            4,
            4,
        ]
        assert document.line(("a", "b", 1, "gone", "further")) == 4


FAULTS = {
    "a key that is set twice": "a: 1\nb: 2\n'a': 3\n",
    "a key that is set twice, deeper": "a:\n  - b: 1\n    b: 2\n",
    "a merge key": "a: &x {b: 1}\nc:\n  <<: *x\n",
    "a list as a key": "a: 1\n[b, c]: 2\n",
    "a mapping as a key": "? {b: c}\n: 2\n",
    "a tag of ours on a scalar": "a: !foo 1\n",
    "a Python tag": "a: !!python/object/apply:os.system [echo]\n",
    "a tag on a mapping": "a: !!set {b, c}\n",
    "a binary": "a: !!binary aGVsbG8=\n",
    "a timestamp by tag": "a: !!timestamp 2026-01-01\n",
    "a tag that does not fit": "a: !!int x\n",
    "a tag on nothing": "a: !!int ''\n",
    "a truth that is none": "a: !!bool maybe\n",
    "a NUL by escape": 'a: "x\\0y"\n',
    "half a character": 'a: "\\ud800"\n',
    "half a character in a key": '"\\udfff": 1\n',
}


class TestFaultsOfValues:
    @pytest.mark.parametrize("name", FAULTS)
    def test_named(self, name: str, snapshot: SnapshotAssertion) -> None:
        """A value that is none of ours is a fault of its own, and the rest of the document is read."""
        faults = read_yaml(FAULTS[name].encode()).faults
        shown = [f"{path} line {line}: {message}. {remedy}" for path, line, message, remedy in faults]
        assert "\n".join(shown) == snapshot

    def test_all_at_once(self) -> None:
        """Every fault is reported, not only the first."""
        assert len(read_yaml("".join(FAULTS[n] for n in ("a merge key", "a list as a key")).encode()).faults) == 3


BAD = {
    "not UTF-8": b"a: 1\nb: \xff\n",
    "UTF-16": "a: 1\n".encode("utf-16"),
    "a NUL": b"a: 1\nb: x\0y\n",
    "an escape character": b"a: 1\n\nb: \x1b[2J\n",
    "a tab for indentation": b"a:\n\tb: 1\n",
    "an open bracket": b"a: [1, 2\nb: 3\n",
    "an open quote": b'a: "x\n',
    "a word among keys": b"a: 1\nb\nc: 2\n",
    "two documents": b"a: 1\n---\nb: 2\n",
    "an alias without an anchor": b"a: *gone\n",
    "an alias that contains itself": b"a: 1\nb: &x [1, *x]\n",
    "an alias that contains itself, in a mapping": b"a: &x\n  b: {c: *x}\n",
    "an alias bomb": b"a: &a [x,x,x,x,x,x,x,x,x]\n"
    + b"".join(b"%c: &%c [%s]\n" % (n, n, b",".join([b"*%c" % (n - 1)] * 9)) for n in range(98, 106)),
    "an alias bomb of one long text": b"a: &a " + b"x" * 100_000 + b"\nb: [" + b"*a, " * 1000 + b"]\n",
    "nested too deeply": b"[" * (MAX_DEPTH + 2) + b"]" * (MAX_DEPTH + 2),
    "nested beyond all measure": b"[" * 100_000,
    "a mapping nested beyond all measure": b"{a: " * 100_000,
}


class TestBadDocuments:
    @pytest.mark.parametrize("name", BAD)
    def test_refused(self, name: str, snapshot: SnapshotAssertion) -> None:
        """A document that does not read, or that expands too far, is refused with line and remedy."""
        with pytest.raises(BadYaml) as caught:
            read_yaml(BAD[name])
        error = caught.value
        assert f"line {error.line} [{error.key}]: {error.message}. {error.remedy}" == snapshot

    def test_too_many_values(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A document of more values than any of ours has is given up on before it is composed."""
        monkeypatch.setattr(yamldoc, "MAX_NODES", 20)
        assert len(read_yaml(b"- a\n" * 19).value) == 19
        with pytest.raises(BadYaml, match="holds more than 20 values"):
            read_yaml(b"- a\n" * 20)

    def test_just_within_bounds(self) -> None:
        """What reaches a bound exactly is read."""
        depth = MAX_DEPTH
        read_yaml(b"[" * depth + b"]" * depth)
        half = b"x" * (MAX_TEXT // 64)
        read_yaml(b"a: &a " + half + b"\nb: [" + b"*a, " * 62 + b"]\n")

    @given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")))
    @example(b"!!float .inf")
    @example(b"? !!int\n: x")
    @example(b"%TAG ! tag:yaml.org,2002:\n---\n!int ''")
    def test_anything_reads_or_is_refused(self, data: bytes) -> None:
        """Whatever the bytes are, they are plain finite values or a ``BadYaml``, never another error."""
        with suppress(BadYaml):
            assert _plain(read_yaml(data).value)

    @given(st.text("a:-[]{}&*!?|>'\"%@#, \n01.~<=", max_size=40))
    def test_anything_that_looks_like_yaml(self, text: str) -> None:
        """The same of texts made of YAML's own marks."""
        self.test_anything_reads_or_is_refused.hypothesis.inner_test(self, text.encode())  # type: ignore[attr-defined]


def _plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(type(key) is str and _plain(inner) for key, inner in value.items())
    if isinstance(value, list):
        return all(map(_plain, value))
    return value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value))
