"""Cells, their ids, and subjects."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_wfbench.matrix.arms import Arm, SessionSpec
from pytest_wfbench.matrix.cells import Cell, expand
from pytest_wfbench.matrix.subject import BadSubject, Subject, parse_subject
from pytest_wfbench.matrix.task import Task


def task(name: str, variations: int = 0) -> Task:
    return Task(id=name, kind="question", prompt="p", rubric="r", variations=tuple("v" * variations))


def arm(name: str, *kinds: str) -> Arm:
    return Arm.model_validate({"name": name, "sessions": (SessionSpec(name="s"),), "kinds": kinds or ("question",)})


slugs = st.from_regex(r"[a-z0-9][a-z0-9_.-]{0,79}", fullmatch=True) | st.sampled_from(
    ["a", "a.b", "a-b", "v1", "a" * 80]
)
visible = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=100)
subjects = st.builds(
    Subject, st.sampled_from(["mini", "codex", "claude-code"]), visible | st.sampled_from(["a/b", "a-b", "A/B"])
)
keys = st.tuples(slugs, st.integers(0, 2), slugs, subjects, st.integers(1, 12))


def cell(key: tuple[str, int, str, Subject, int]) -> Cell:
    name, variation, arm_name, subject, run = key
    return Cell(task(name, 2), variation, arm(arm_name), subject, run)


class TestIds:
    @given(keys, keys)
    def test_injective(
        self, first: tuple[str, int, str, Subject, int], second: tuple[str, int, str, Subject, int]
    ) -> None:
        """Two cells have the same id only if they are the same cell."""
        assert (cell(first).id == cell(second).id) == (first == second)

    @given(keys)
    def test_path_safe(self, key: tuple[str, int, str, Subject, int]) -> None:
        """An id is one visible file name, of any file system, with room for a suffix."""
        found = cell(key).id
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", found)
        assert len(found) <= 230

    def test_longest(self) -> None:
        """The longest parts there are still make a file name, and differ in what was cut off."""
        models = ["m" * 300 + last for last in "ab"]
        ids = {Cell(task("t" * 80, 1), 1, arm("a" * 80), Subject("mini", model), 999_999_999).id for model in models}
        assert len(ids) == 2
        assert max(map(len, ids)) <= 230

    def test_parts_whose_joints_differ(self) -> None:
        """Parts that read the same when joined differ in the digest."""
        one = Cell(task("a"), 0, arm("v0.b"), Subject("mini", "m"), 1)
        other = Cell(task("a.v0"), 0, arm("b"), Subject("mini", "m"), 1)
        assert one.id != other.id

    def test_stable(self) -> None:
        """An id is the same in every process, today and tomorrow."""
        found = Cell(task("rounding", 1), 1, arm("workflow"), Subject("mini", "replay/demo"), 2)
        assert found.id == "rounding.v1.workflow.mini-replay-demo.r2.1d0c6a3183"
        assert (found.name, found.parameter) == ("rounding~v1", "workflow-mini:replay/demo-2")


class TestOrder:
    def test_whole_pairs_first(self) -> None:
        """All arms and subjects of one run come before the next run, so that a cut sweep holds whole pairs."""
        cells = list(expand([task("t", 1)], [arm("a"), arm("b")], [Subject("mini", "x"), Subject("mini", "y")], 2))
        assert [(c.variation, c.run, c.arm.name, c.subject.model) for c in cells] == [
            (variation, run, name, model) for variation in (0, 1) for run in (1, 2) for name in "ab" for model in "xy"
        ]

    def test_unfit_arms(self) -> None:
        """An arm that does not fit a task's kind is not paired with it."""
        cells = list(
            expand([task("t")], [arm("a", "review"), arm("b", "review", "question")], [Subject("mini", "x")], 1)
        )
        assert [c.arm.name for c in cells] == ["b"]


class TestSubjects:
    @pytest.mark.parametrize(
        "text",
        ["", "mini", "mini:", ":m", "mini:a b", "mini:a\n", "mini:\u202ea", "m\u0456ni:a", "mini:a\u00e9", "mini:a\0",
         "mini:replay/", "mini:anthropic/", "mini:\ud800"],
    )  # fmt: skip
    def test_refused(self, text: str) -> None:
        """A subject is AGENT:MODEL in visible ASCII; the message says so and prints."""
        with pytest.raises(BadSubject) as caught:
            parse_subject(text)
        assert str(caught.value).isprintable()

    @given(st.text())
    def test_anything(self, text: str) -> None:
        """Any text is a subject that reads back as typed, or is refused."""
        try:
            subject = parse_subject(text)
        except BadSubject:
            return
        assert str(subject) == text
        assert parse_subject(str(subject)) == subject

    def test_parts(self) -> None:
        """The agent ends at the first colon; a replayed model names its cassette."""
        assert parse_subject("mini:replay/demo-1") == Subject("mini", "replay/demo-1")
        assert parse_subject("mini:replay/demo-1").cassette == "demo-1"
        assert parse_subject("mini:ollama/x:7b") == Subject("mini", "ollama/x:7b")
        assert parse_subject("mini:ollama/x:7b").cassette is None
