"""Results directories that a fault left: every verb that takes one reads what is there."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest

from pytest_wfbench import cli
from pytest_wfbench.cli import main
from pytest_wfbench.evidence.event import Event
from pytest_wfbench.evidence.store import read_rows, read_sweep, write_sweep

EVENT = Event(
    sweep_id="s", cell_id="c", session="work", call_id="1", status="success", wire="anthropic-messages",
    started_at="2026-01-02T03:04:05.000Z", completed_at="2026-01-02T03:04:06.000Z",
)  # fmt: skip

Fault = Callable[[Path], None]


def verbs() -> Iterator[str]:
    """The verbs whose arguments are results directories, found as the command itself finds its verbs."""
    for module in pkgutil.iter_modules(cli.__path__):
        if module.name.startswith("_"):
            continue
        command: click.Command = importlib.import_module(f"{cli.__name__}.{module.name}").command
        taken = [one for one in command.params if isinstance(one, click.Argument)]
        if any((one.metavar or "").lstrip("[").startswith("DIR") for one in taken):
            yield module.name.replace("_", "-")


def torn_rows(directory: Path) -> None:
    with (directory / "results.jsonl").open("ab") as stream:
        stream.write(b'{"cell_id": "half')


def zeroes(directory: Path) -> None:
    with (directory / "results.jsonl").open("ab") as stream:
        stream.write(b"\0" * 4096)


def torn_usage(directory: Path) -> None:
    line = EVENT.model_dump_json()
    (directory / "usage.jsonl").write_text(f"{line}\n{line[:30]}")


def unsealed(directory: Path) -> None:
    write_sweep(directory, read_sweep(directory).model_copy(update={"run_status": "running", "ended_at": None}))


def no_rows(directory: Path) -> None:
    (directory / "results.jsonl").unlink()


def leftovers(directory: Path) -> None:
    (directory / ".sweep.json.1a2b3c4d5e6f").write_text("{")
    (directory / ".reserve").write_bytes(b"\0" * 4096)
    (directory / "report.md").write_text("half a rep")


FAULTS: tuple[Fault, ...] = (torn_rows, zeroes, torn_usage, unsealed, no_rows, leftovers)


def told(capsys: pytest.CaptureFixture[str], verb: str, directory: Path, tmp_path: Path) -> tuple[int, str, str]:
    """Run a verb on a directory; one that writes elsewhere gets a place for it."""
    extra = {
        "merge": ["-o", str(tmp_path / "merged")],
        "apply": ["--to", str(directory)],
        "trace": ["--otlp-endpoint", "http://127.0.0.1:9"],
        "power": ["--sims", "20"],
    }.get(verb, [])
    status = main([verb, str(directory), *extra])
    out, err = capsys.readouterr()
    return status, out, err


class TestEveryVerb:
    def test_found(self) -> None:
        """The verbs over results directories are found by what they take."""
        assert {"report", "gate", "comment"} <= set(verbs())

    @pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
    @pytest.mark.parametrize("verb", list(verbs()))
    def test_reads_on(
        self,
        demo: ModuleType,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        verb: str,
        fault: Callable[[Path], None],
    ) -> None:
        """What a fault left in a directory keeps no verb from the rest of it, and changes none of the evidence."""
        directory = tmp_path / "results"
        directory.mkdir()
        demo.write(directory)
        whole = told(capsys, verb, directory, tmp_path / "whole")
        rows = read_rows(directory).rows
        fault(directory)
        evidence = {name: path.read_bytes() for name in ("sweep.json", "results.jsonl", "usage.jsonl")
                    if (path := directory / name).exists()}  # fmt: skip
        status, out, err = told(capsys, verb, directory, tmp_path)
        assert "Traceback" not in out + err
        assert err.count("\n") <= 1, err
        if fault is no_rows or (verb == "merge" and fault in (unsealed,)):
            assert status in (0, 1, 4, 5)
        else:
            assert status == whole[0], err
            assert read_rows(directory).rows == rows
        assert {name: (directory / name).read_bytes() for name in evidence} == evidence

    @pytest.mark.parametrize("verb", list(verbs()))
    def test_no_manifest(self, demo: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str) -> None:
        """A directory without its manifest is told in one line, with the remedy."""
        directory = tmp_path / "results"
        directory.mkdir()
        demo.write(directory)
        (directory / "sweep.json").unlink()
        status, out, err = told(capsys, verb, directory, tmp_path)
        assert (status, out) == (4, "")
        assert err.count("\n") == 1
        assert "sweep.json: no such file. Name a results directory" in err

    def test_torn_is_told(self, demo: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A torn row is reported where people read."""
        demo.write(tmp_path)
        torn_rows(tmp_path)
        assert "unfinished last line" in told(capsys, "report", tmp_path, tmp_path)[1]
