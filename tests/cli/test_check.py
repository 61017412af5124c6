"""`wfbench check`: the proof of every oracle, without a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_wfbench.cli import main
from tests.hosts import bubblewrap_saying, bubblewrap_without, first_on_path

TASK = """\
  - id: {name}
    repo: repo
    prompt: Make it so.
    verify: "true"
    oracle: {{command: '{command}', files: [{{source: check.sh, target: check.sh}}], results: {results}}}
    reference: right.patch
"""
PATCH = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-open\n+done\n"
GOOD = "sh $WFBENCH_ORACLE_ROOT/check.sh"
CHECK = "grep -q done a.txt\n"
JUNIT = """\
grep -q done a.txt || exit 1
echo "<testsuite><testcase classname='a' name='b'/></testsuite>" > $WFBENCH_ORACLE_RESULTS
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "cases/repo/a.txt", "open\n")
    write(tmp_path, "oracles/right.patch", PATCH)
    write(tmp_path, "oracles/check.sh", CHECK)
    return tmp_path


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def cases(root: Path, **commands: str) -> None:
    tasks = "".join(
        TASK.format(name=n, command=c, results="junit" if "RESULTS" in c else "exit") for n, c in commands.items()
    )
    write(root, "cases/a.cases.yaml", "kind: implementation\ntasks:\n" + tasks)


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    status = main(["check", *argv])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


class TestCheck:
    def test_table_and_status(self, suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """It prints a table and every fault, and exits 1 where an oracle is not proven."""
        cases(suite, good=GOOD, blind="exit 0 # check.sh")
        status, out, err = run(capsys, "cases/")
        assert status == 1
        assert "blind: untouched: the oracle passes where it must fail\n" in out
        assert err == "good: proven\nblind: NOT PROVEN\n"
        # An oracle that cannot fail falls for an exit at import too.
        assert [out.count(word) for word in ("FAULT", "black-box", "in-process")] == [1, 2, 2]
        assert run(capsys, "cases/", "-k", "good")[0] == 0

    def test_no_such_task(self, suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A text that is in no task's id selects nothing: exit 5, with the ids there are; no file is blamed."""
        cases(suite, good=GOOD, other=GOOD)
        status, out, err = run(capsys, "cases/", "-k", "zzz")
        assert (status, out) == (5, "")
        assert err == "wfbench: -k zzz: no task's id contains that. With an oracle there are: good, other\n"

    def test_unfit_machine(
        self, suite: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where no sandbox works that is said in a line, and nothing of the case files is blamed."""
        cases(suite, good=GOOD)
        fake = bubblewrap_saying(suite / "bin", "0.11.0", "bwrap: No permissions to create new namespace")
        monkeypatch.setenv("PATH", first_on_path(fake.parent)["PATH"])
        status, _, err = run(capsys, "cases/")
        assert status == 1
        assert err.startswith("wfbench: the sandbox does not work here: namespaces: ")
        assert "--wfbench-sandbox=host" in err

    def test_without_overlays(
        self, suite: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where no overlay can be mounted oracles are proven over copies."""
        cases(suite, good=GOOD)
        fake = bubblewrap_without(suite / "bin", "--overlay", "--tmp-overlay", "--ro-overlay")
        monkeypatch.setenv("PATH", first_on_path(fake.parent)["PATH"])
        assert run(capsys, "cases/")[0] == 0

    def test_json(self, suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """With --json other tools read the same, one entry a task and state."""
        cases(suite, good=GOOD)
        status, out, _ = run(capsys, "cases/a.cases.yaml", "--json", "--repeat", "2")
        (entry,) = json.loads(out)
        assert (status, entry["task"], entry["proven"], entry["faults"]) == (0, "good", True, [])
        assert [(state["state"], state["oracle"]) for state in entry["states"]] == [
            ("untouched", [False, False]),
            ("reference", [True, True]),
        ]

    def test_records(self, suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """It records which tests must run beside a junit oracle, once; an unproven one leaves no record."""
        write(suite, "oracles/check.sh", JUNIT)
        record = suite / "oracles" / "check.expect.json"
        cases(suite, blind=GOOD + " # WFBENCH_ORACLE_RESULTS")
        write(suite, "cases/repo/a.txt", "done\n")
        assert run(capsys, "cases")[0] == 1
        assert not record.exists()
        write(suite, "cases/repo/a.txt", "open\n")
        status, _, err = run(capsys, "cases")
        assert (status, json.loads(record.read_text())["tests"]) == (0, ["a::b"])
        assert "recorded check.expect.json" in err
        assert "recorded" not in run(capsys, "cases")[2]


class TestUsage:
    def test_bad_input(self, suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A faulty case file, a directory without one, and a path that is not there exit 4 with the remedy."""
        (suite / "empty").mkdir()
        status, _, err = run(capsys, "empty")
        assert (status, err) == (
            4,
            "wfbench: no task with an oracle or labels was found. Name a directory with *.cases.yaml files\n",
        )
        write(suite, "cases/a.cases.yaml", "kind: implementation\ntasks: [{id: x, promt: y}]\n")
        status, _, err = run(capsys, "cases")
        assert status == 4
        assert "unknown key 'promt'. Did you mean prompt?" in err
        status, _, err = run(capsys, "nowhere")
        assert status == 4
        assert "nowhere" in err
