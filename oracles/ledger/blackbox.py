"""Runs a candidate's command line as a subprocess, for oracles that judge what it prints.

Nothing of the candidate is imported here, and what it prints is hostile text: output is bounded by a file size
limit, time by a deadline, and every process it leaves behind is killed. It sees neither where the oracle lies nor
the oracle's environment.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, NamedTuple

OUTPUT_BYTES = 1 << 20
SECONDS = 20
JOBS = 4


class Result(NamedTuple):
    """How a command ended and what it printed."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def cells(self) -> list[list[str]]:
        """The output as a table: columns are at least two blanks apart."""
        return [re.split(r" {2,}", line.strip()) for line in self.lines]


def bound_files() -> None:
    """Limit every file that this process and its children write; the children inherit it."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT_BYTES, OUTPUT_BYTES))


def _environment(home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
    }


def run(argv: list[str], workspace: Path, home: Path) -> Result:
    """Run a command in the workspace and return its end."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            argv,
            cwd=workspace,
            env=_environment(home),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            status = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            status = -signal.SIGKILL
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return Result(status, _text(out), _text(err))


def _text(stream: BinaryIO) -> str:
    stream.seek(0)
    return stream.read(OUTPUT_BYTES).decode("utf-8", "replace")


class Ledger:
    """``python3 -m ledger`` of a workspace, on a book of its own."""

    def __init__(self, workspace: Path, scratch: Path) -> None:
        self.workspace = workspace
        self.scratch = scratch
        self.book = scratch / "book.json"

    def __call__(self, *args: str) -> Result:
        argv = [sys.executable, "-S", "-m", "ledger", "--book", str(self.book), *args]
        return run(argv, self.workspace, self.scratch)

    def stored(self) -> bytes:
        """The book's file, if it is one of sane size."""
        handle = os.open(self.book, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(handle, "rb") as book:
            return book.read(OUTPUT_BYTES)

    def ok(self, *args: str) -> Result:
        """A command that must succeed and be silent on stderr."""
        result = self(*args)
        expect((result.status, result.err), (0, ""), " ".join(args))
        return result

    def prints(self, expected: str, *args: str) -> None:
        """A command that must print exactly one line."""
        expect(self.ok(*args).out, expected + "\n", " ".join(args))

    def refuses(self, *args: str) -> None:
        """A command that must end as the README says errors do, and leave the book as it was."""
        before = self.stored()
        result = self(*args)
        command = " ".join(args)
        expect((result.status, result.out), (2, ""), command)
        expect(bool(re.fullmatch(r"error: [^\n]+\n", result.err)), True, f"one line of error from {command}")
        expect(self.stored() == before, True, f"book untouched by {command}")


class Wrong(Exception):
    """The candidate did something else than what was expected."""


def expect(found: object, expected: object, what: str) -> None:
    if found != expected:
        raise Wrong(f"{what}: expected {expected!r}, found {found!r}"[:2000])


@contextlib.contextmanager
def ledger(book: bytes | None = None) -> Iterator[Ledger]:
    """A ledger on a scratch directory, with a copy of a book; the workspace is the current directory."""
    with tempfile.TemporaryDirectory() as scratch:
        candidate = Ledger(Path.cwd(), Path(scratch))
        if book is not None:
            candidate.book.write_bytes(book)
        yield candidate


Check = Callable[[Ledger], None]


def _fault(check: Check, book: bytes | None) -> str | None:
    """What is wrong, or nothing."""
    try:
        with ledger(book) as candidate:
            check(candidate)
    except Wrong as fault:
        return f"{check.__name__}: {fault}"
    except Exception as fault:
        return f"{check.__name__}: {type(fault).__name__}: {fault}"[:2000]
    return None


def judge(checks: list[Check], prepare: Check | None = None) -> int:
    """Run every check on a copy of the prepared book; the exit status is 0 only if all of them passed."""
    bound_files()
    book = None
    if prepare is not None:
        with ledger() as candidate:
            try:
                prepare(candidate)
                book = candidate.stored()
            except (Wrong, OSError) as fault:
                print(f"{prepare.__name__}: {fault}", file=sys.stderr)
                return 1
    with ThreadPoolExecutor(JOBS) as pool:
        faults = list(pool.map(lambda check: _fault(check, book), checks))
    for fault in filter(None, faults):
        print(fault, file=sys.stderr)
    passed = faults.count(None)
    print(f"{passed} of {len(checks)} checks passed")
    return 0 if checks and passed == len(checks) else 1
