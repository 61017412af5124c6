"""Question tasks, as a case file writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_wfbench.matrix.bindings import bind_task
from pytest_wfbench.matrix.load import Loaded
from pytest_wfbench.matrix.task import Task

QUESTION = "tasks: [{id: a, kind: question, %s}]"


def told(loaded: Loaded) -> list[str]:
    return [f"[{problem.key}] {problem.message}. {problem.remedy}" for problem in loaded.problems]


class TestFields:
    def test_a_prompt_and_a_rubric_are_enough(self, read: Callable[..., Loaded]) -> None:
        """A question needs neither repository nor verify nor oracle."""
        (loaded,) = read(QUESTION % "prompt: 'Why?', rubric: Says why.").tasks
        assert loaded.task.steps_of(0) == ("Why?",)
        assert loaded.repository is None

    def test_steps_stand_for_the_prompt(self, read: Callable[..., Loaded]) -> None:
        """A conversation has its steps, in order, in place of a prompt."""
        (loaded,) = read(QUESTION % "steps: ['One?', 'Two?'], checks: [{contains: x}]").tasks
        assert loaded.task.steps_of(0) == ("One?", "Two?")
        assert loaded.task.prompt_of(0) == "One?"

    def test_a_variation_is_a_prompt_of_its_own(self) -> None:
        """Variation 1 is the first other wording."""
        task = Task(id="a", kind="question", prompt="Why?", variations=("How come?",), rubric="r")
        assert task.steps_of(1) == ("How come?",)

    @pytest.mark.parametrize(
        ("written", "fault"),
        [
            ("rubric: r", "[prompt] required key 'prompt' is missing. Add it, or `steps` for a conversation"),
            ("prompt: p", "[rubric] nothing says what a good answer is. Add a `rubric`, `checks`, or both"),
            ("prompt: p, steps: [a], rubric: r", "[steps] the question has a prompt and steps. Keep one of them"),
            ("steps: [a, ' '], rubric: r", "[steps.1] must not be blank"),
            ("steps: [a], variations: [b], rubric: r", "[variations] variations are other wordings of a prompt"),
            ("prompt: p, rubric: r, verify: make", "[verify] verify is for tasks of kind implementation"),
            ("prompt: p, rubric: r, ref: main", "[ref] ref is of a repository, and the question has none"),
            ("prompt: p, rubrik: r", "[rubrik] unknown key 'rubrik'. Did you mean rubric?"),
            ("prompt: p, rubric: [r]", "[rubric] must be a text, found a list"),
        ],
    )
    def test_what_is_wrong_is_said(self, read: Callable[..., Loaded], written: str, fault: str) -> None:
        """Each fault has its key, its cause and its remedy."""
        assert any(line.startswith(fault) for line in told(read(QUESTION % written))), told(read(QUESTION % written))

    def test_other_kinds_have_no_rubric(self, read: Callable[..., Loaded]) -> None:
        """What would be passed over in silence is refused."""
        loaded = read("tasks: [{id: a, kind: review, repo: r, prompt: p, rubric: r}]")
        assert "[rubric] rubric is for tasks of kind question. Leave it out" in told(loaded)


class TestChecks:
    @pytest.mark.parametrize(
        ("written", "fault"),
        [
            ("{contains: 3}", "[checks.0.contains] must be a text, found 3. Put it in quotes"),
            ("{regex: '(('}", "[checks.0.regex] not a regular expression ("),
            ("{json_path: $..a}", "[checks.0.json_path] not a path that is known (at '..a')"),
            ("{json_path: a}", "[checks.0.json_path] not a path that is known (it does not begin with $)"),
            ("{number: {value: x}}", "[checks.0.number.value] must be a number, found 'x'"),
            ("{number: {value: .nan}}", "[checks.0.number.value]"),
            ("{number: {value: 1, tolerance: -1}}", "[checks.0.number.tolerance] must be at least 0, found -1"),
            ("{number: {tolerance: 1}}", "[checks.0.number.value] required key 'value' is missing"),
            ("{file: ../x}", "[checks.0.file] the path leaves its root, found '../x'"),
            ("{file: x, min_byte: 3}", "[checks.0.min_byte] unknown key 'min_byte'. Did you mean min_bytes?"),
            ("{contains: x, min_bytes: 3}", "[checks.0.min_bytes] min_bytes says nothing about contains"),
            ("{contains: x, regex: y}", "[checks.0] the check looks for contains and regex at once"),
            ("{not: true}", "[checks.0] the check looks for nothing"),
            ("{contains: x, not: maybe}", "[checks.0.not] must be true or false, found 'maybe'"),
            ("x", "[checks.0] must be a mapping, found 'x'"),
        ],
    )
    def test_what_is_wrong_is_said(self, read: Callable[..., Loaded], written: str, fault: str) -> None:
        """A check that cannot be meant is refused with its key and a remedy."""
        lines = told(read(QUESTION % f"prompt: p, checks: [{written}]"))
        assert any(line.startswith(fault) for line in lines), lines

    def test_a_task_survives_the_way_to_a_worker(self, read: Callable[..., Loaded]) -> None:
        """All of a question comes out of JSON as it went in."""
        checks = "[{contains: a}, {json_path: '$.a[0]', equals: {b: [1, 2.5, x]}}, {number: {value: 3}, not: true}]"
        (loaded,) = read(QUESTION % f"steps: [p, q], checks: {checks}, rubric: r").tasks
        assert Task.model_validate_json(loaded.task.model_dump_json()) == loaded.task


class TestBinding:
    @pytest.mark.parametrize("changed", [{"rubric": "other"}, {"checks": ({"contains": "x"},)}, {"steps": ("p", "r")}])
    def test_what_decides_is_bound(self, read: Callable[..., Loaded], changed: dict[str, Any]) -> None:
        """Another rubric, other checks or other steps are another task."""
        (loaded,) = read(QUESTION % "steps: [p, q], rubric: r, checks: [{contains: y}]").tasks
        plain = loaded.task.model_dump() | changed
        other = loaded.model_copy(update={"task": Task.model_validate(plain)})
        assert bind_task(loaded, 0).task != bind_task(other, 0).task
