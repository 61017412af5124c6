"""Runs a candidate's command line as a subprocess, for oracles that judge what it prints.

Nothing of the candidate is imported here, and what it prints is hostile text: output is bounded by a file size
limit, time by a deadline, and every process it leaves behind is killed. It sees neither where the oracle lies nor
the oracle's environment.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

OUTPUT_BYTES = 1 << 20
SECONDS = 20


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
    """``python3 -m ledger`` of a workspace, on a book of its own; each command is a process of its own."""

    def __init__(self, server: subprocess.Popen[bytes], out: BinaryIO, err: BinaryIO, scratch: Path) -> None:
        self.server = server
        self.out = out
        self.err = err
        self.scratch = scratch
        self.book = scratch / "book.json"

    def __call__(self, *args: str) -> Result:
        for stream in (self.out, self.err):
            stream.seek(0)
            stream.truncate()
        self.server.stdin.write(json.dumps(["--book", str(self.book), *args]).encode() + b"\n")
        self.server.stdin.flush()
        status = self.server.stdout.readline(80)
        return Result(int(status), _text(self.out), _text(self.err))

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
def ledger(book: dict[str, Any]) -> Iterator[Ledger]:
    """A ledger on a scratch directory, with a book written to it; the workspace is the current directory."""
    with (
        tempfile.TemporaryDirectory() as scratch,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        _served(Path(scratch), out, err) as server,
    ):
        candidate = Ledger(server, out, err, Path(scratch))
        candidate.book.write_text(json.dumps(book))
        yield candidate


@contextlib.contextmanager
def _served(home: Path, out: BinaryIO, err: BinaryIO) -> Iterator[subprocess.Popen[bytes]]:
    source = Path(__file__).with_name("forkserver.py").read_text()
    server = subprocess.Popen(
        [sys.executable, "-P", "-S", "-c", source, str(out.fileno()), str(SECONDS)],
        env=_environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=err,
        pass_fds=(out.fileno(),),
        start_new_session=True,
    )
    try:
        yield server
    finally:
        server.kill()
        server.wait()


def book_of(
    invoices: list[dict[str, Any]] | None = None,
    journal: list[dict[str, Any]] | None = None,
    *,
    rates: list[list[str]] | None = None,
    closed_until: str | None = None,
) -> dict[str, Any]:
    """A book in euros, in the format of the files that are there before any change."""
    return {
        "version": 1,
        "base": "EUR",
        "closed_until": closed_until,
        "rates": rates or [],
        "invoices": invoices or [],
        "journal": journal or [],
    }


def invoice_of(number: str, customer: str, day: str, lines: list[str], currency: str = "EUR") -> dict[str, Any]:
    """An unpaid invoice in a book; a line is ``quantity;unit price;tax code``."""
    return {
        **{"number": number, "customer": customer, "date": day, "currency": currency, "terms": 30},
        "early_payment": None,
        "lines": [
            dict(
                zip(("quantity", "unit_price", "tax_code"), line.split(";"), strict=True),
                description="Work",
                discount="0",
            )
            for line in lines
        ],
        "payments": [],
    }


def entry_of(reference: str, day: str, *lines: str) -> dict[str, Any]:
    """A journal entry in a book; a line is ``account amount`` or ``account amount tax-code``."""
    return {
        **{"date": day, "reference": reference, "memo": "Entry"},
        "lines": [[*line.split(), None][:3] for line in lines],
    }


Check = Callable[[Ledger], None]


def judge(checks: list[Check], book: dict[str, Any]) -> int:
    """Run the checks in order on one book, each on what the ones before it left, up to the first that fails.

    The exit status is 0 only if all of them passed.
    """
    bound_files()
    passed = 0
    with ledger(book) as candidate:
        for check in checks:
            try:
                check(candidate)
            except Exception as fault:  # whatever the candidate printed or stored is its own fault
                print(f"{check.__name__}: {type(fault).__name__}: {fault}"[:2000], file=sys.stderr)
                break
            passed += 1
    print(f"{passed} of {len(checks)} checks passed")
    return 0 if checks and passed == len(checks) else 1
