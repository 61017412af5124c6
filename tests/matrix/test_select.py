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
from pytest_wfbench.matrix.select import chosen_arms, required_candidates, set_problems, unknown_arms

PLAN, WORK = Captured(name="plan/SKILL.md", data=b"p"), Captured(name="work/a/b.md", data=b"w")
BOTH = ("workflow", "workflow_direct", "candidate_workflow", "candidate_workflow_direct")


@pytest.fixture
def arms() -> LoadedArms:
    return load_arms(BUILT_IN)


def shown(problems: Iterable[Problem]) -> str:
    text = str(InvalidCases(list(problems)))
    return re.sub(re.escape(str(BUILT_IN)) + r":\d+", "ARMS", text)


def faults(arms: LoadedArms, names: Iterable[str], *overlay: Captured) -> str:
    return shown(set_problems(arms, chosen_arms(arms, tuple(names)), overlay))


class TestSets:
    @pytest.mark.parametrize(
        ("names", "overlay"),
        [
            (("baseline",), ()),
            (BOTH, (WORK,)),
            ((*reversed(BOTH), "baseline"), (PLAN, WORK)),
            (("workflow", "candidate_workflow"), (PLAN,)),
            (("workflow", "candidate_workflow", "baseline", "workflow_direct"), (PLAN,)),
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
        ],
        ids=[
            "lacks incumbent",
            "one too many",
            "lacks one",
            "none loads it",
            "no overlay",
            "unknown skill",
            "only unknown",
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
        assert [arm.name for arm in chosen_arms(arms, None)] == ["workflow", "workflow_direct", "baseline"]
        assert [arm.name for arm in chosen_arms(arms, ("baseline", "workflow"))] == ["workflow", "baseline"]
        assert shown(unknown_arms([arms], ("baseline", "workflo", "zzz"))) == snapshot


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
