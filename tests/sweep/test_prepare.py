"""Everything asked for, proven before anything is spent, as one value that travels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.matrix.problems import InvalidCases
from pytest_wfbench.options import read_options
from pytest_wfbench.sandbox.spec import Data
from pytest_wfbench.sweep.plan import Plan
from pytest_wfbench.sweep.prepare import prepare
from tests.suite import Suite

BINARY = b"\x7fELF\xff\xfe\x00\r\n" + bytes(range(256))


def plan_of(suite: Suite, **given: Any) -> Plan:
    """Prepare the suite with some options, by field."""
    given = {"subject": ["command:solve.sh"], **given}
    return prepare([suite.path / "cases" / "tiny.cases.yaml"], read_options(lambda s: given.get(s.field)), suite.path)


def problems(suite: Suite, **given: Any) -> list[str]:
    with pytest.raises(InvalidCases) as caught:
        plan_of(suite, **given)
    return str(caught.value).replace(str(suite.path), "<suite>").splitlines()


class TestPlan:
    def test_travels(self, suite: Suite) -> None:
        """A plan is the same after a journey as JSON, bytes of any kind included."""
        (suite.path / "agent.bin").write_bytes(BINARY)
        (suite.path / "oracles" / "check.sh").write_bytes(b"exit 0 # \xff\x00\n")
        suite.put("overlay/work/SKILL.md", "Do it better.\n")
        plan = plan_of(
            suite,
            subject=["command:agent.bin"],
            candidate_overlay="overlay",
            arms="workflow_direct,candidate_workflow_direct",
            runs="2",
        )
        arrived = Plan.model_validate_json(plan.model_dump_json())
        assert arrived == plan
        assert [mount.data for mount in arrived.runtimes["command:agent.bin"].mounts if isinstance(mount, Data)] == [
            BINARY
        ]
        assert arrived.loaded("finish").hidden.oracle[0].data == b"exit 0 # \xff\x00\n"
        assert [cell.id for cell in arrived.cells()] == [cell.id for cell in plan.cells()]
        assert arrived.overlay_digest == plan.overlay_digest
        assert len(list(plan.cells())) == 12

    def test_mirrors(self, suite: Suite) -> None:
        """The directories that mirror the skills are those of the arms file."""
        suite.edit("cases/arms.yaml", "arms:\n", "mirrors: [.agents/skills]\narms:\n")
        plan = plan_of(suite)
        assert {arms.mirrors for arms in plan.arms.values()} == {(".agents/skills",)}

    def test_skill_digests(self, suite: Suite) -> None:
        """The candidate's skills have another digest than the incumbent's, and an arm without skills has none."""
        suite.put("overlay/work/SKILL.md", "Do it better.\n")
        plan = plan_of(
            suite, candidate_overlay="overlay", arms="baseline,workflow_direct,candidate_workflow_direct", runs="1"
        )
        digests = {cell.arm.name: plan.skill_digest(cell) for cell in plan.cells_of(plan.tasks[0].file, "finish")}
        assert digests["baseline"] is None
        assert len(set(digests.values())) == 3

    def test_skill_digests_elsewhere(self, suite: Suite) -> None:
        """A skill that lies where another agent looks for it is bound to its bytes as well."""
        found = set()
        for text in ("one\n", "two\n"):
            suite.put("cases/tiny/.agents/skills/work/SKILL.md", text)
            plan = plan_of(suite, arms="workflow_direct", runs="1")
            found |= {plan.skill_digest(cell) for cell in plan.cells_of(plan.tasks[0].file, "finish")}
        assert len(found) == 2


class TestProblems:
    def test_subjects(self, suite: Suite) -> None:
        """A subject that does not read, an unknown agent and a repeated one are told together."""
        said = problems(suite, subject=["solve.sh", "nobody:x", "command:solve.sh", "command:solve.sh"])
        assert len(said) == 3
        assert any("known are claude-code, codex, command, mini, opencode" in line for line in said)

    def test_files(self, suite: Suite) -> None:
        """A price table and an overlay that are not there are told together."""
        said = problems(suite, prices="lost.json", candidate_overlay="lost")
        assert any(line.startswith("--wfbench-prices: ") and "lost.json" in line for line in said)
        assert any("lost" in line and "overlay" in line for line in said)

    def test_key_in_the_overlay(self, suite: Suite) -> None:
        """The candidate's files are kept as they are, so none may hold a key; it is not repeated."""
        suite.put("overlay/work/SKILL.md", "Do it.\nUse sk-ant-api03-abcdefgh.\n")
        told = problems(suite, candidate_overlay="overlay", arms="workflow_direct,candidate_workflow_direct")
        assert any("work/SKILL.md:2: holds an Anthropic key." in line for line in told)
        assert not any("abcdefgh" in line for line in told)

    def test_overlay_without_an_arm(self, suite: Suite) -> None:
        """An overlay that no selected arm loads would be spent for nothing."""
        suite.put("overlay/work/SKILL.md", "Do it better.\n")
        (said,) = problems(suite, candidate_overlay="overlay")
        assert "candidate_workflow_direct" in said

    def test_empty_cassette_directory(self, suite: Suite) -> None:
        """A cassette directory without a cassette, and one with a faulty one, are told with the file."""
        (suite.path / "cases" / "cassettes" / "empty").mkdir(parents=True)
        suite.put("cases/cassettes/bad/a.yaml", "model: m\nprovider: anthropic\nturns: [{txt: x}]\n")
        said = problems(suite, subject=["mini:replay/empty", "mini:replay/bad"])
        assert any("no cassettes here" in line for line in said)
        assert any("a.yaml:3" in line and "Did you mean text?" in line for line in said)


class TestSnapshot:
    def test_what_the_harness_knows_is_no_part(self, suite: Suite) -> None:
        """Where the case file lies in the repository itself, no snapshot holds cases, arms, results or scripts."""
        root = suite.path
        for name in ("results/old/patch.diff", ".pytest_cache/x", "cassettes/demo/a.yaml", "overlay/work/SKILL.md"):
            suite.put(name, "secret\n")
        suite.put("a.txt", "open\n")
        suite.put("more.cases.yaml", (root / "cases" / "tiny.cases.yaml").read_text().replace("repo: tiny", "repo: ."))
        suite.put("arms.yaml", (root / "cases" / "arms.yaml").read_text())
        options = read_options(lambda spec: {"subject": ["command:solve.sh"]}.get(spec.field))
        plan = prepare([root / "more.cases.yaml"], options, root)
        there = {path.name for path in plan.templates["finish"].path.iterdir()}
        assert "a.txt" in there
        hidden = {"results", ".pytest_cache", "cassettes", "arms.yaml", "more.cases.yaml", "oracles", "solve.sh"}
        assert not there & hidden

    def test_hidden_files_in_plain_sight(self, suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
        """A suite that lies where every sandbox can read, such as in the virtual environment, is refused."""
        monkeypatch.setattr("pytest_wfbench.sweep.places.shown_directories", lambda _: (suite.path / "oracles",))
        said = problems(suite)
        assert said == [
            "oracles: lies in <suite>/oracles, which every sandbox can read. Move it, or the virtual environment, "
            "so that neither holds the other"
        ]

    def test_places_that_cannot_be_written(self, suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
        """A cache or results directory that cannot be made is said at once."""
        suite.put("taken", "a file\n")
        monkeypatch.setenv("WFBENCH_CACHE_DIR", str(suite.path / "taken" / "cache"))
        said = problems(suite, results="taken/results")
        assert len(said) == 2
        assert said[0].startswith("--wfbench-results: taken is no directory that can be written.")
        assert said[1].startswith("WFBENCH_CACHE_DIR: the cache directory")

    def test_own_directories_are_no_part(self, suite: Suite, tmp_path: Path) -> None:
        """A repository that holds the suite itself is snapshotted without case directory, oracles and private paths."""
        suite.put("app.py", "answer = 42\n")
        suite.put("notes/plan.txt", "secret\n")
        suite.edit("cases/tiny.cases.yaml", "repo: tiny\n", "repo: ..\n  private: [notes]\n")
        plan = plan_of(suite)
        tree = plan.templates["finish"].path
        names = {path.name for path in tree.iterdir()}
        assert "app.py" in names
        assert not {"cases", "oracles", "notes"} & names
        assert plan.templates["finish"] == plan.templates["other"]
