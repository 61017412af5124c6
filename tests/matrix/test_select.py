"""Overlays, and the sets of arms that may be run with them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pytest_wfbench.matrix.hidden import Captured
from pytest_wfbench.matrix.load_arms import BUILT_IN, LoadedArms, load_arms
from pytest_wfbench.matrix.overlay import MAX_BYTES, MAX_FILES, read_overlay, touched_skills
from pytest_wfbench.matrix.problems import InvalidCases, Problem
from pytest_wfbench.matrix.select import (
    Choice,
    chosen_arms,
    differing_arms,
    idle_arms,
    incumbent_problems,
    overlay_problems,
    plugin_problems,
    required_candidates,
    unknown_arms,
)
from pytest_wfbench.matrix.task import TaskKind

REVIEW = Captured(name="review/SKILL.md", data=b"r")
PLAN, WORK = Captured(name="plan/SKILL.md", data=b"p"), Captured(name="work/a/b.md", data=b"w")
BOTH = ("workflow", "workflow_direct", "candidate_workflow", "candidate_workflow_direct")


@pytest.fixture
def arms() -> LoadedArms:
    return load_arms(BUILT_IN)


def shown(problems: Iterable[Problem]) -> str:
    text = str(InvalidCases(list(problems)))
    return re.sub(re.escape(str(BUILT_IN)) + r":\d+", "ARMS", text)


def choice(arms: LoadedArms, names: Iterable[str] | None, *kinds: TaskKind) -> Choice:
    chosen = chosen_arms(arms, None if names is None else tuple(names))
    return Choice(arms, chosen, frozenset(kinds or ("implementation",)))


def faults(arms: LoadedArms, names: Iterable[str], *overlay: Captured, plugin: bool = False) -> str:
    return all_faults([choice(arms, names, "implementation", "review")], *overlay, plugin=plugin)


def all_faults(choices: list[Choice], *overlay: Captured, plugin: bool = False) -> str:
    return shown([*incumbent_problems(choices), *overlay_problems(choices, overlay, plugin)])


class TestSets:
    @pytest.mark.parametrize(
        ("names", "overlay"),
        [
            (("baseline",), ()),
            (BOTH, (WORK,)),
            ((*reversed(BOTH), "baseline"), (PLAN, WORK)),
            (("workflow", "candidate_workflow"), (PLAN,)),
            (("workflow", "candidate_workflow", "baseline", "workflow_direct"), (PLAN,)),
            (("review", "candidate_review"), (REVIEW,)),
            (("review", "candidate_review", "workflow", "candidate_workflow"), (REVIEW, PLAN)),
        ],
    )
    def test_exact_sets(self, arms: LoadedArms, names: tuple[str, ...], overlay: tuple[Captured, ...]) -> None:
        """The candidates that exercise what the overlay touches, with their incumbents, in any order, among others."""
        assert faults(arms, names, *overlay) == ""

    @pytest.mark.parametrize(
        ("names", "overlay"),
        [
            (("candidate_workflow",), (PLAN,)),
            (BOTH, (PLAN,)),
            (("workflow", "candidate_workflow"), (WORK,)),
            (("workflow", "workflow_direct"), (PLAN, WORK)),
            (("workflow", "candidate_workflow"), ()),
            (("workflow", "candidate_workflow"), (PLAN, Captured(name="pan/a.md", data=b""))),
            (("baseline",), (Captured(name="pan/a.md", data=b""),)),
            ((*BOTH, "review"), (WORK, REVIEW)),
        ],
        ids=[
            "lacks incumbent",
            "one too many",
            "lacks one",
            "none loads it",
            "no overlay",
            "unknown skill",
            "only unknown",
            "lacks one of a union",
        ],
    )
    def test_others(
        self, arms: LoadedArms, names: tuple[str, ...], overlay: tuple[Captured, ...], snapshot: SnapshotAssertion
    ) -> None:
        """Any other set is refused with the remedy."""
        assert faults(arms, names, *overlay) == snapshot

    def test_skill_of_no_candidate(self, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
        """A skill that only arms without an overlay use is evaluated by nobody, so its files are refused."""
        (tmp_path / "arms.yaml").write_text(
            "arms:\n  a: {skills: [work, lonely], sessions: [{name: s}]}\n"
            "  b: {skills: [work], overlay: true, candidate_of: a, sessions: [{name: s}]}\n"
        )
        loaded = load_arms(tmp_path / "arms.yaml")
        assert faults(loaded, ("a", "b"), WORK, Captured(name="lonely/a.md", data=b"")) == snapshot

    def test_required(self, arms: LoadedArms) -> None:
        """Touching plan needs one candidate, work needs both."""
        assert required_candidates(arms.arms, (PLAN,)) == ("candidate_workflow",)
        assert required_candidates(arms.arms, (WORK,)) == ("candidate_workflow", "candidate_workflow_direct")
        assert required_candidates(arms.arms, ()) == ()

    def test_chosen(self, arms: LoadedArms, snapshot: SnapshotAssertion) -> None:
        """Without names those marked default are run, in the file's order; an unknown name is told."""
        assert [arm.name for arm in chosen_arms(arms, None)] == ["workflow", "workflow_direct", "baseline", "review"]
        assert [arm.name for arm in chosen_arms(arms, ("baseline", "workflow"))] == ["workflow", "baseline"]
        assert shown(unknown_arms([arms], ("baseline", "workflo", "zzz"))) == snapshot


ONE = """\
arms:
  a: {skills: [plan], sessions: [{name: s}]}
  b: {skills: [plan], overlay: true, candidate_of: a, sessions: [{name: s}]}
"""


class TestSeveralFiles:
    @pytest.fixture
    def files(self, tmp_path: Path) -> list[LoadedArms]:
        """One file has a candidate for ``plan``, the other for ``work``."""
        other = ONE.replace("plan", "work").replace("a:", "c:").replace("b:", "d:").replace("of: a", "of: c")
        for name, text in (("one", ONE), ("other", other)):
            (tmp_path / name).mkdir()
            (tmp_path / name / "arms.yaml").write_text(text)
        return [load_arms(tmp_path / name / "arms.yaml") for name in ("one", "other")]

    def test_judged_together(self, files: list[LoadedArms]) -> None:
        """An overlay is exercised by the arms of all files together, whichever declares them."""
        choices = [choice(loaded, "abcd") for loaded in files]
        assert all_faults(choices, PLAN, WORK) == ""

    def test_lacks_one(self, files: list[LoadedArms]) -> None:
        """What an overlay touches in the arms of another file is required too."""
        assert "'d' exercises, but it is not selected" in all_faults([choice(f, "ab") for f in files], PLAN, WORK)

    def test_one_too_many(self, files: list[LoadedArms]) -> None:
        """A candidate of another file that the overlay does not concern is refused, at its own line."""
        told = all_faults([choice(f, "abcd") for f in files], PLAN)
        assert told.count("\n") == 0
        assert "other/arms.yaml:3: [arms.d]: the overlay touches nothing that 'd' exercises" in told

    def test_same_name(self, files: list[LoadedArms], tmp_path: Path) -> None:
        """Two ways of working under one name are refused, at the second; what they are paired with is no difference."""
        again = tmp_path / "again" / "arms.yaml"
        again.parent.mkdir()
        again.write_text(ONE.replace("a: {", "a: {default: true, kinds: [implementation, question], "))
        same, other = (choice(loaded, "ab") for loaded in (load_arms(again), files[0]))
        assert shown(differing_arms([other, same])) == ""
        again.write_text(ONE.replace("{name: s}", "{name: t}", 1))
        told = shown(differing_arms([other, choice(load_arms(again), "ab")]))
        assert told.count("\n") == 0
        assert "again/arms.yaml:2: [arms.a]: arm 'a' is another one than in " in told
        assert shown(differing_arms([other, choice(load_arms(again), "ab", "review")])) == ""


class TestKinds:
    def test_no_task(self, arms: LoadedArms) -> None:
        """An arm that is named and fits no task is told; one that runs by default is left out."""
        named = choice(arms, ("baseline", "review"))
        assert [arm.name for arm in named.paired] == ["baseline"]
        told = shown(idle_arms([named], ("baseline", "review")))
        assert told == "--wfbench-arms: arm 'review' is for review tasks, and there is none. Leave the arm out"
        assert shown(idle_arms([named, choice(arms, ("review",), "review")], ("baseline", "review"))) == ""
        assert "review" not in {arm.name for arm in choice(arms, None).paired}
        assert {arm.name for arm in choice(arms, None, "review").paired} == {"review"}

    def test_overlay_without_task(self, arms: LoadedArms) -> None:
        """A candidate that is paired with no task does not load the overlay."""
        told = all_faults([choice(arms, ("review", "candidate_review"))], REVIEW)
        assert "no selected arm loads the overlay" in told


class TestPlugin:
    def told(self, arms: LoadedArms, names: Iterable[str], skills: tuple[str, ...] | None) -> str:
        return shown(plugin_problems([choice(arms, names)], skills))

    def test_fits(self, arms: LoadedArms) -> None:
        """Arms with a plugin that has their skills, and arms without a plugin where there is none, are well."""
        assert self.told(arms, ("ce_workflow", "baseline"), ("plan", "work", "more")) == ""
        assert self.told(arms, ("workflow", "baseline"), None) == ""

    def test_not_given(self, arms: LoadedArms) -> None:
        """An arm that needs a plugin is refused without one, with the options to give."""
        assert self.told(arms, ("ce_workflow",), None) == (
            "ARMS: [arms.ce_workflow]: arm 'ce_workflow' needs an external plugin. Name one with --wfbench-plugin-dir "
            "and --wfbench-plugin-version, or leave the arm out"
        )

    def test_not_used(self, arms: LoadedArms) -> None:
        """A plugin that no paired arm uses is refused, with the arms that would use it."""
        for names in (("baseline",), ("ce_review", "baseline")):
            assert self.told(arms, names, ("plan",)) == (
                "--wfbench-plugin-dir: no selected arm uses the plugin. Select one of ce_review, ce_workflow, "
                "ce_workflow_direct, or leave the plugin out"
            )

    def test_lacks_a_skill(self, arms: LoadedArms) -> None:
        """A skill that the plugin lacks is told with those it has."""
        assert self.told(arms, ("ce_workflow",), ("ce-plan", "work")) == (
            "ARMS: [arms.ce_workflow]: arm 'ce_workflow' needs the skill 'plan', which the plugin lacks. It has "
            "ce-plan, work; name those in the arm"
        )

    def test_comparator(self, arms: LoadedArms) -> None:
        """With a plugin a candidate's reviews are compared with those of the plugin, too."""
        names = ("review", "candidate_review")
        told = faults(arms, names, REVIEW, plugin=True)
        assert "compared with those of 'ce_review'. Add ce_review to --wfbench-arms" in told
        assert faults(arms, (*names, "ce_review"), REVIEW, plugin=True) == ""
        assert faults(arms, ("workflow", "candidate_workflow"), PLAN, plugin=True) == ""


@pytest.fixture
def overlay(tmp_path: Path) -> Callable[..., Path]:
    def make(**files: bytes) -> Path:
        for name, data in files.items():
            target = tmp_path / "overlay" / name.replace("__", "/").replace("_md", ".md")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        return tmp_path / "overlay"

    return make


class TestOverlay:
    def test_captured(self, overlay: Callable[..., Path]) -> None:
        """Markdown files below a skill are captured, in order of names."""
        files, problems = read_overlay(overlay(work__a__b_md=b"1", plan__SKILL_md=b"2"))
        assert not problems
        assert [(entry.name, entry.data) for entry in files] == [("plan/SKILL.md", b"2"), ("work/a/b.md", b"1")]
        assert touched_skills(files) == {"plan", "work"}

    def test_all_else_is_refused_by_name(self, overlay: Callable[..., Path], snapshot: SnapshotAssertion) -> None:
        """Another kind of file, a file beside the skills, a link and an odd name are refused, each by its name."""
        top = overlay(plan__SKILL_md=b"", plan__run=b"", top_md=b"", Plan__a_md=b"")
        (top / "plan" / "link.md").symlink_to("SKILL.md")
        (top / "plan" / "out").symlink_to("/etc")
        (top / "plan" / "a\nb.md").touch()
        (Path(os.fsencode(top).decode("utf-8", "surrogateescape")) / "plan" / "\udcff.md").touch()
        (top / "plan" / "dir.md").mkdir()
        os.mkfifo(top / "plan" / "pipe.md")
        files, problems = read_overlay(top)
        assert [entry.name for entry in files] == ["plan/SKILL.md"]
        assert shown(problems) == snapshot

    def test_bounds(self, overlay: Callable[..., Path], snapshot: SnapshotAssertion) -> None:
        """64 files and 4 MiB are allowed, and not one more."""
        top = overlay(**{f"plan__{number:02}_md": b"x" * (MAX_BYTES // MAX_FILES) for number in range(MAX_FILES)})
        files, problems = read_overlay(top)
        assert (len(files), problems) == (MAX_FILES, ())
        (top / "plan" / "64.md").touch()
        many = read_overlay(top)[1]
        (top / "plan" / "63.md").write_bytes(b"x" * (MAX_BYTES // MAX_FILES + 1))
        assert shown([*many, *read_overlay(top)[1]]) == snapshot

    def test_nothing(self, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
        """A missing directory, a link to one, or an empty one is no overlay."""
        (tmp_path / "empty").mkdir()
        (tmp_path / "link").symlink_to("empty")
        found = [problem for name in ("gone", "link", "empty") for problem in read_overlay(tmp_path / name)[1]]
        assert shown(found) == snapshot

    def test_unreadable_directory(self, overlay: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
        """A directory that cannot be read is told, not passed over."""
        top = overlay(plan__SKILL_md=b"", work__SKILL_md=b"")
        scan = os.scandir

        def refuse(path: str) -> Any:
            if Path(path).name == "work":
                raise PermissionError(13, "Permission denied", str(path))
            return scan(path)

        monkeypatch.setattr(os, "scandir", refuse)
        problems = read_overlay(top)[1]
        assert [problem.key for problem in problems] == ["work"]
