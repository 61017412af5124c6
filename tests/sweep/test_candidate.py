"""What a candidate's files are held against."""

from __future__ import annotations

import pytest

from pytest_wfbench.options import read_options
from pytest_wfbench.sweep.candidate import bases_of, laid_over
from pytest_wfbench.sweep.plan import Plan
from pytest_wfbench.sweep.prepare import prepare
from tests.suite import Suite
from tests.sweep.test_prepare import plan_of, problems

SKILL = ".claude/skills/work/SKILL.md"
GIVEN = {"candidate_overlay": "overlay", "arms": "workflow_direct,candidate_workflow_direct"}


@pytest.fixture
def two(suite: Suite) -> Suite:
    """The suite with a candidate, and one of its tasks in another repository with the same skill."""
    suite.put("overlay/work/SKILL.md", "Do it better.\n")
    suite.put("cases/twin/a.txt", "open, too\n")
    suite.put(f"cases/twin/{SKILL}", (suite.path / "cases/tiny" / SKILL).read_text())
    suite.edit("cases/tiny.cases.yaml", "  - id: other\n", "  - id: other\n    repo: twin\n")
    return suite


def bases(plan: Plan) -> list[dict[str, bytes]]:
    return [bases_of(plan.overlay, tree) for tree in laid_over(plan.tasks, plan.arms, plan.templates)]


class TestBase:
    def test_one(self, two: Suite) -> None:
        """Repositories that differ elsewhere have one base for the candidate's files."""
        old = (two.path / "cases/tiny" / SKILL).read_bytes()
        assert bases(plan_of(two, **GIVEN)) == [{SKILL: old}, {SKILL: old}]

    @pytest.mark.parametrize("text", ["Do other work.\n", "---\nname: work\n---\nDo the work"])
    def test_several(self, two: Suite, text: str) -> None:
        """Where they differ in what the candidate replaces there is no sweep: evidence is bound to one base."""
        two.put(f"cases/twin/{SKILL}", text)
        (said,) = problems(two, **GIVEN)
        assert f"the repositories of the tasks differ in {SKILL}, so there is no one base" in said

    def test_new_in_one(self, two: Suite) -> None:
        """A file that is new in one repository and replaces something in another has no base either."""
        two.put("overlay/work/more.md", "More.\n")
        two.put("cases/twin/.claude/skills/work/more.md", "Less.\n")
        (said,) = problems(two, **GIVEN)
        assert "differ in .claude/skills/work/more.md" in said

    def test_of_what_it_is_tried_on(self, two: Suite) -> None:
        """Tasks that no arm with the overlay is paired with say nothing of its base, wherever they stand."""
        task = "{id: asked, kind: question, prompt: Say x., checks: [{contains: x}]}"
        two.put("cases/asked.cases.yaml", f"tasks: [{task}]\n")
        files = [two.path / "cases" / f"{name}.cases.yaml" for name in ("asked", "tiny")]
        given = {"subject": ["command:solve.sh"], **GIVEN}
        plan = prepare(files, read_options(lambda spec: given.get(spec.field)), two.path)
        assert next(iter(plan.templates)) == "asked"
        assert [list(base) for base in bases(plan)] == [[SKILL], [SKILL]]

    @pytest.mark.parametrize("more", ["", "touch more"])
    def test_nothing_changed(self, two: Suite, more: str) -> None:
        """A candidate that is what it would replace is refused; one that only adds a file is not."""
        two.put("overlay/work/SKILL.md", (two.path / "cases/tiny" / SKILL).read_text())
        if more:
            two.put("overlay/work/more.md", "More.\n")
            assert plan_of(two, **GIVEN).overlay
        else:
            (said,) = problems(two, **GIVEN)
            assert "the overlay is identical to the skills it would replace" in said
