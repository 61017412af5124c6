"""Checks of an answer."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.matrix.checks import Check
from pytest_wfbench.sandbox.bubblewrap import make_bubblewrap
from pytest_wfbench.sandbox.spec import WORKSPACE, Bind, Tmpfs
from pytest_wfbench.scoring.checks import PATTERN_SECONDS, Given, Unmeasured, failed_checks, file_sizes, numbers_in


def check(**fields: Any) -> Check:
    return Check.model_validate(fields)


def holds(answer: str, **fields: Any) -> bool:
    negated = dict(fields) | {"not": True}
    plain = not list(failed_checks([check(**fields)], Given(answer)))
    assert plain is bool(list(failed_checks([check(**negated)], Given(answer)))), "`not` is not the contrary"
    return plain


class TestText:
    def test_contains_is_literal(self) -> None:
        """A text is found as it stands."""
        assert holds("the answer is a.b", contains="a.b")
        assert not holds("the answer is axb", contains="a.b")

    def test_regex_searches(self) -> None:
        """A pattern may match anywhere."""
        assert holds("The total: 42 EUR", regex=r"\b4\d EUR")
        assert not holds("the total", regex=r"^total")

    @pytest.mark.parametrize("pattern", [r"^((a|b)*c|(a|b)*d)*$", r"^(a|aa)+\1$", r"(x+x+)+y"])
    def test_a_catastrophic_pattern_comes_to_an_end(self, pattern: str) -> None:
        """Whatever an answer is made for, a pattern is given up after a bounded time, and then fails either way."""
        answer = "ab" * 3000 + "x" * 6000
        began = time.monotonic()
        results = [list(failed_checks([check(regex=pattern, **{"not": no})], Given(answer))) for no in (False, True)]
        assert time.monotonic() - began < 8 * PATTERN_SECONDS
        assert any(results)

    def test_a_pattern_that_took_too_long_fails_both_ways(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Neither a check nor its contrary holds where nobody could tell."""

        def late(*_: object, **__: object) -> None:
            raise TimeoutError

        monkeypatch.setattr("pytest_wfbench.scoring.checks.regex.search", late)
        for no in (False, True):
            (reason,) = failed_checks([check(regex="a", **{"not": no})], Given("a"))
            assert "it took longer than 2 s" in reason


class TestJson:
    @pytest.mark.parametrize(
        "answer",
        [
            '{"a": [1, "x"]}',
            'Here it is:\n```json\n{"a": [1, "x"]}\n```\nDone.',
            '```\nno\n```\n```\n{"a": [1, "x"]}\n```',
        ],
    )
    def test_is_the_answer_or_its_last_block(self, answer: str) -> None:
        """JSON is the whole answer, or what stands in its last fence that holds some."""
        assert holds(answer, json_path="$.a[0]", equals=1)
        assert holds(answer, json_path="$.a[1]")
        assert not holds(answer, json_path="$.a[1]", equals="y")
        assert not holds(answer, json_path="$.b")

    def test_kinds_are_kept_apart(self) -> None:
        """True is not 1, and 1 is 1.0."""
        assert not holds('{"a": true}', json_path="$.a", equals=1)
        assert holds('{"a": 1.0}', json_path="$.a", equals=1)
        assert not holds('{"a": [true]}', json_path="$.a", equals=[1])

    @pytest.mark.parametrize("answer", ["no JSON", "[" * 100_000, '{"a": NaN}x', ""])
    def test_no_json_is_no_match(self, answer: str) -> None:
        """What is no JSON fails the check and nothing else."""
        assert not holds(answer, json_path="$.a")


class TestNumbers:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("It is 42.", ["42"]),
            ("1,234.50 EUR", ["1234.50"]),
            ("from 10-20", ["10", "20"]),
            ("−3 or (-4)", ["-3", "-4"]),
            ("6e3", ["6E+3"]),
            ("v1.2.3 x5 a7", []),
            ("½ is 0.5", ["1", "2", "0.5"]),
            ("９", ["9"]),
            ("9" * 5000, []),
        ],
    )
    def test_are_read_as_people_write_them(self, text: str, found: list[str]) -> None:
        """Signs, thousands and decimals are read; digits inside a word are none."""
        assert [str(number) for number in numbers_in(text)] == found

    def test_tolerance_is_exact(self) -> None:
        """A number is within its tolerance, the limit included, without binary fractions."""
        assert holds("0.3", number={"value": 0.1, "tolerance": 0.2})
        assert not holds("0.30001", number={"value": 0.1, "tolerance": 0.2})
        assert holds("297.50", number={"value": 297.5})


class TestTools:
    def test_a_tool_was_called(self) -> None:
        """What counts is the stream of events, not what the answer says."""
        assert not list(failed_checks([check(tool_used="bash")], Given("", {"bash": 2})))
        assert list(failed_checks([check(tool_used="bash")], Given("I used bash", {})))
        assert list(failed_checks([check(tool_used="bash", **{"not": True})], Given("", {"bash": 1})))


class TestFiles:
    def test_sizes_are_of_plain_files_reached_without_a_link(self, tmp_path: Path) -> None:
        """A file counts by its bytes; a link, what lies behind one, a directory and a pipe do not."""
        place = tmp_path / "w"
        (place / "real").mkdir(parents=True)
        (place / "real/chart.svg").write_text("<svg/>")
        (place / "empty").touch()
        (place / "link.svg").symlink_to("real/chart.svg")
        (place / "away").symlink_to("real")
        (place / "passwd").symlink_to("/etc/passwd")
        tmp_path.chmod(0o755)
        names = ["real/chart.svg", "empty", "link.svg", "away/chart.svg", "passwd", "real", "none", "a b; rm -rf ."]
        wanted = [check(file=name) for name in names]
        assert file_sizes(wanted, (Bind(place, WORKSPACE),), make_bubblewrap()) == {"real/chart.svg": 6, "empty": 0}

    def test_least_bytes(self) -> None:
        """A file that is there may still be too small."""
        given = Given("", {}, {"a": 5})
        assert not list(failed_checks([check(file="a", min_bytes=5)], given))
        assert list(failed_checks([check(file="a", min_bytes=6)], given))
        assert list(failed_checks([check(file="b", min_bytes=0)], given))

    def test_a_sandbox_that_fails_says_nothing(self, tmp_path: Path) -> None:
        """Where nobody could look, no file is taken to be missing."""
        with pytest.raises(Unmeasured):
            file_sizes([check(file="a")], (Bind(tmp_path / "gone", WORKSPACE), Tmpfs("/x", 4096)), make_bubblewrap())
