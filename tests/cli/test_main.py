"""The console command as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pytest_wfbench.cli import main

VERBS = ("report", "gate", "comment", "cost", "score review", "schema", "usage normalise")


@pytest.fixture
def directory(demo: ModuleType, tmp_path: Path) -> Path:
    written: Path = demo.write(tmp_path / "results")
    return written


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    status = main(argv)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


class TestHelp:
    def test_lists_verbs(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Help lists every verb; a module beside it is one."""
        status, out, _ = run(capsys, "--help")
        assert status == 0
        assert all(verb.split()[0] in out for verb in VERBS)
        assert "_results" not in out

    @pytest.mark.parametrize("verb", VERBS)
    def test_example(self, capsys: pytest.CaptureFixture[str], verb: str) -> None:
        """Every verb's help holds an example that begins with the command itself."""
        status, out, _ = run(capsys, *verb.split(), "--help")
        assert status == 0
        assert f"Example:\n      wfbench {verb}" in out

    def test_lazy(self) -> None:
        """Starting the command imports no verb, no pydantic and no template engine."""
        code = (
            "import sys, pytest_wfbench.cli; print([m for m in sys.modules if m in ('pydantic', 'jinja2', 'litellm')])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == "[]\n"


class TestErrors:
    @pytest.mark.parametrize(
        ("argv", "said"),
        [
            (["nope"], "wfbench: No such command 'nope'. See wfbench --help\n"),
            (["report"], "wfbench: Missing argument 'DIR'. See wfbench report --help\n"),
            (
                ["report", "/none"],
                "wfbench: /none: no such directory. Name a results directory, such as results/latest\n",
            ),
            (
                ["gate", "/none"],
                "wfbench: /none: no such directory. Name a results directory, such as results/latest\n",
            ),
            (
                ["comment", "/none"],
                "wfbench: /none: no such directory. Name a results directory, such as results/latest\n",
            ),
            (["schema", "x"], "wfbench: Invalid value for"),
            (["usage", "normalise", "--wire", "x", "/dev/null"], "wfbench: unknown wire format 'x': known are "),
        ],
    )
    def test_one_line(self, capsys: pytest.CaptureFixture[str], argv: list[str], said: str) -> None:
        """A usage error is exit 4 and one line on stderr with the remedy."""
        status, out, err = run(capsys, *argv)
        assert (status, out, err.count("\n")) == (4, "", 1)
        assert err.startswith(said)

    def test_no_verb(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Without a verb there is help on stderr, and exit 4."""
        status, out, err = run(capsys)
        assert (status, out) == (4, "")
        assert err.startswith("Usage: wfbench")

    def test_process(self, directory: Path) -> None:
        """A pipe that closes early is no error, and the status reaches the shell."""
        command = f"{sys.executable} -m pytest_wfbench.cli report {directory} | head -1; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "# PASS WITH MISSES 🟡\n", "")


class TestReport:
    def test_text(self, capsys: pytest.CaptureFixture[str], directory: Path) -> None:
        """The report is written and printed."""
        status, out, _ = run(capsys, "report", str(directory))
        assert (status, out) == (0, (directory / "report.md").read_text())

    def test_json(self, capsys: pytest.CaptureFixture[str], directory: Path) -> None:
        """As JSON it holds the verdict, the medians, the savings and the decisions."""
        plain = json.loads(run(capsys, "report", str(directory), "--json")[1])
        assert plain["verdict"]["word"] == "PASS WITH MISSES"
        assert plain["tasks"][0]["medians"]["tokens_in"] == 24000
        assert {entry["against"] for entry in plain["savings"]} == {"baseline", "workflow", "workflow_direct"}
        assert [entry["decision"] for entry in plain["decisions"]] == ["keep_incumbent", "promote"]

    def test_broken_sweep(self, capsys: pytest.CaptureFixture[str], demo: ModuleType, tmp_path: Path) -> None:
        """Reporting on a broken sweep works: the sweep's own status is in the JSON."""
        demo.write(tmp_path, [demo.row(outcome="unusable")])
        status, out, _ = run(capsys, "report", str(tmp_path), "--json")
        assert (status, json.loads(out)["verdict"]["exit_status"]) == (0, 1)


class TestGate:
    def test_kept(self, capsys: pytest.CaptureFixture[str], directory: Path) -> None:
        """An overlay of which one arm is kept exits 1 and says why."""
        status, out, _ = run(capsys, "gate", str(directory))
        assert status == 1
        assert out.startswith("keep_incumbent\n")
        assert "  - Median cost_usd improvement over 3 gated tasks is 0 %, at least 5 % is needed.\n" in out

    def test_promoted(self, capsys: pytest.CaptureFixture[str], demo: ModuleType, tmp_path: Path) -> None:
        """A promoted candidate exits 0; the JSON printed is the file written."""
        rows = [row for row in demo.rows() if row.arm in ("workflow_direct", "candidate_workflow_direct")]
        demo.write(tmp_path, rows)
        status, out, _ = run(capsys, "gate", str(tmp_path), "--json")
        assert (status, json.loads(out)["decision"]) == (0, "promote")
        assert out == (tmp_path / "promotion.json").read_text()

    def test_nothing(self, capsys: pytest.CaptureFixture[str], demo: ModuleType, tmp_path: Path) -> None:
        """Without a candidate arm there is nothing to decide: exit 5."""
        demo.write(tmp_path, [demo.row(arm="baseline")])
        status, out, err = run(capsys, "gate", str(tmp_path))
        assert (status, out) == (5, "")
        assert "no candidate arm was run. Select one with --wfbench-arms" in err


class TestComment:
    def test_key(self, capsys: pytest.CaptureFixture[str], directory: Path) -> None:
        """The comment is written and printed, with the key asked for."""
        status, out, _ = run(capsys, "comment", str(directory), "--key", "smoke")
        assert (status, out) == (0, (directory / "comment.md").read_text())
        assert out.startswith("<!-- pytest-wfbench key=smoke order=")


class TestSchema:
    @pytest.mark.parametrize("name", ["row", "sweep", "task", "promotion"])
    def test_schema(self, capsys: pytest.CaptureFixture[str], name: str) -> None:
        """Every schema is JSON Schema and describes an object."""
        status, out, _ = run(capsys, "schema", name)
        assert (status, json.loads(out)["type"]) == (0, "object")

    def test_aliases(self, capsys: pytest.CaptureFixture[str]) -> None:
        """The schema names fields as files do: class and pass."""
        schema = json.loads(run(capsys, "schema", "row")[1])
        assert "class" in schema["properties"]
        assert "pass" in schema["$defs"]["Judgement"]["properties"]


class TestUsage:
    def test_normalise(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        """A provider's usage is printed as the row has it, the unknown as null."""
        document = tmp_path / "usage.json"
        document.write_text(
            '{"input_tokens": 2000, "cache_read_input_tokens": 7000, "cache_creation_input_tokens": 1000}'
        )
        status, out, _ = run(capsys, "usage", "normalise", "--wire", "anthropic-messages", str(document))
        assert status == 0
        assert json.loads(out) == {
            "ordinary_input": 2000,
            "cache_read_input": 7000,
            "cache_write_input": 1000,
            "total_input": 10000,
            "output": None,
            "reasoning_output": None,
        }


class TestUnwritable:
    def test_read_only(
        self, capsys: pytest.CaptureFixture[str], directory: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A results directory that cannot be written says so in one line."""

        def refuse(*_: object) -> None:
            raise OSError(30, "Read-only file system", str(directory / "report.md"))

        monkeypatch.setattr("pytest_wfbench.derive.write_atomic", refuse)
        status, out, err = run(capsys, "report", str(directory))
        assert (status, out) == (4, "")
        assert err == (
            f"wfbench: {directory}/report.md: Read-only file system."
            " Copy the results directory to where you may write\n"
        )
