"""Where a sweep may be recorded, and what its recording lacks no session of."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_wfbench.gateway.cassette import load_cassettes
from pytest_wfbench.gateway.tape import SILENCE
from pytest_wfbench.matrix.subject import parse_subject
from pytest_wfbench.options import Options, read_options
from pytest_wfbench.sweep import places
from pytest_wfbench.sweep.recording import fill_gaps, record_directory, record_problems
from tests.suite import Suite
from tests.sweep.test_prepare import plan_of, problems

SUBJECT = parse_subject("mini:openai/m")
SCRIPT = "model: m\nprovider: openai\nturns: [{text: hi, usage: {}}]\n"


def options(record: str | None) -> Options:
    return read_options(lambda spec: {"record": record}.get(spec.field))


def faults(record: str, directory: Path, *subjects: str) -> list[str]:
    named = [parse_subject(text) for text in subjects or (str(SUBJECT),)]
    return [problem.message for problem in record_problems(options(record), directory, named, [directory / "repo"])]


class TestDirectory:
    def test_new_or_empty(self, tmp_path: Path) -> None:
        """A directory that is not there, or empty, is taken; nothing is made of it yet."""
        (tmp_path / "empty").mkdir()
        assert [faults(name, tmp_path) for name in ("new", "a/b/new", "empty")] == [[], [], []]
        assert not (tmp_path / "new").exists()
        assert record_directory(options("new"), tmp_path) == tmp_path / "new"
        assert record_directory(options(None), tmp_path) is None

    def test_not_over_others(self, tmp_path: Path) -> None:
        """A directory with anything in it, a link, and a file are refused."""
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / ".hidden").touch()
        (tmp_path / "file").touch()
        (tmp_path / "empty").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "empty")
        for name, fault in (
            ("full", "is not empty, and recordings are never mixed"),
            ("link", "is not empty, and recordings are never mixed"),
            ("file", "is no directory that can be written"),
            ("file/below", "is no directory that can be written"),
        ):
            (message,) = faults(name, tmp_path)
            assert message.endswith(fault)

    def test_not_where_agents_look(self, tmp_path: Path) -> None:
        """A directory in a task's repository is refused: agents of later sweeps would see the answers."""
        (tmp_path / "repo").mkdir()
        for name in ("repo", "repo/rec", "other/../repo/rec"):
            (message,) = faults(name, tmp_path)
            assert message.endswith("which agents see")
        assert faults("repository", tmp_path) == []

    def test_one_model_an_agent(self, tmp_path: Path) -> None:
        """Two models of one agent would be two cassettes for one session; two agents are none."""
        assert faults("new", tmp_path, "mini:openai/m", "mini:openai/n") == [
            "mini has several models, and a cassette does not say whose it is"
        ]
        assert faults("new", tmp_path, "mini:openai/m", "codex:openai/n", "command:a.sh", "command:b.sh") == []

    def test_before_anything_is_spent(self, suite: Suite) -> None:
        """A directory that is taken is refused with everything else that is wrong, by the option's name."""
        assert [line for line in problems(suite, record="cases") if line.startswith("--wfbench-record")] == [
            "--wfbench-record: cases is not empty, and recordings are never mixed. "
            "Name a new directory, or remove what is in it"
        ]

    def test_out_of_sight(self, suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
        """A directory that every sandbox can read is refused."""
        monkeypatch.setattr(places, "shown_directories", lambda *_: [suite.path / "shown"])
        assert any("every sandbox can read" in line for line in problems(suite, record="shown/tape"))


class TestGaps:
    def test_every_session(self, suite: Suite) -> None:
        """Sessions that a cell with a row never came to get cassettes that say so; others' stay as they are."""
        suite.put("cases/cassettes/demo/a.yaml", SCRIPT)
        plan = plan_of(suite, subject=["mini:replay/demo"], arms="planned", runs="2", record="tape")
        first, second, *_ = [cell for cell in plan.cells() if cell.task.id == "finish"]
        tape = suite.path / "tape"
        tape.mkdir()
        (tape / f"{first.id}.plan.yaml").write_text(SCRIPT)
        fill_gaps(plan, {first.id})
        assert sorted(path.name for path in tape.iterdir()) == [f"{first.id}.plan.yaml", f"{first.id}.work.yaml"]
        silent = [script for script in load_cassettes(tape).scripts if script.cassette.turns == (SILENCE,)]
        assert [(script.cassette.match.session, script.cassette.match.run) for script in silent] == [
            ("work", first.run)
        ]
        assert second.id != first.id

    def test_a_judge_who_was_not_asked(self, suite: Suite) -> None:
        """A rubric whose answer failed a check has a cassette of its judge too, so that all can be replayed."""
        suite.put("cases/tiny.cases.yaml", "kind: question\ntasks: [{id: finish, prompt: p, rubric: r}]\n")
        suite.put("cases/arms.yaml", "arms: {a: {default: true, kinds: [question], sessions: [{name: work}]}}\n")
        for name in ("demo", "judge"):
            suite.put(f"cases/cassettes/{name}/a.yaml", SCRIPT)
        plan = plan_of(suite, subject=["mini:replay/demo"], record="tape")
        (cell,) = plan.cells()
        (suite.path / "tape").mkdir()
        fill_gaps(plan, {cell.id})
        assert sorted(path.name for path in (suite.path / "tape").iterdir()) == [
            f"{cell.id}.judge.yaml",
            f"{cell.id}.work.yaml",
        ]
