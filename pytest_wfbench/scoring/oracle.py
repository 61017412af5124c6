"""The oracle of a cell: hidden files, staged after the model and ``verify``, and what they say."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pytest_wfbench.files import UnsafeFile, read_untrusted
from pytest_wfbench.matrix.hidden import HiddenFiles
from pytest_wfbench.matrix.task import OracleSpec
from pytest_wfbench.sandbox.spec import Bind, Bounds, Command, Finished, Mount, Sandbox, Tmpfs
from pytest_wfbench.scoring.junit import JUNIT_LIMIT, BadJUnit, passed_tests

RESULTS_NAME = "results.xml"
SAID = 400
HIDDEN = "/run/hidden"


class OracleTampered(Exception):
    """Staged bytes differ from the captured ones afterwards."""


@dataclass(frozen=True)
class OracleResult:
    """What an oracle said. ``passed_tests`` is none unless a JUnit file was read; ``seconds`` is wall clock.

    ``said`` is the end of its output, for the oracle's author alone: no row and no file of a sweep has it.
    """

    passed: bool
    timed_out: bool
    reason: str | None
    seconds: float
    passed_tests: frozenset[str] | None = None
    said: str = field(default="", repr=False)


@dataclass(frozen=True)
class Oracle:
    """Hidden files and a command, ready to be run against workspaces.

    ``scratch`` is a directory of the harness in which the files are staged; ``owner`` the uid and gid they belong to.
    """

    spec: OracleSpec
    hidden: HiddenFiles
    sandbox: Sandbox
    scratch: Path
    owner: tuple[int, int]
    timeout: float
    bounds: Bounds

    def judge(self, workspace: tuple[Mount, ...]) -> OracleResult:
        """Run the oracle over a workspace's check mounts; its output is dropped.

        Raises:
            OracleTampered: a staged byte changed; the harness's own fault.
        """
        with self._staged() as staged:
            finished = self.sandbox.run(self._command(workspace, staged))
            self._recheck(staged)
            return self._verdict(finished, staged)

    def _command(self, workspace: tuple[Mount, ...], staged: Path) -> Command:
        root, results = f"{HIDDEN}/{secrets.token_hex(16)}", f"{HIDDEN}/{secrets.token_hex(16)}"
        staged_at = (Bind(staged / "root", root), Bind(staged / "results", results, writable=True))
        return Command(
            argv=("/bin/sh", "-c", self.spec.command),
            mounts=(*workspace, Tmpfs(HIDDEN, 1 << 16, mode=_mode(self.spec), sealed=True), *staged_at),
            env={"WFBENCH_ORACLE_ROOT": root, "WFBENCH_ORACLE_RESULTS": f"{results}/{RESULTS_NAME}"},
            timeout=self.timeout,
            bounds=self.bounds,
            processes_shown=False,
        )

    @contextmanager
    def _staged(self) -> Iterator[Path]:
        staged = self.scratch / f"oracle-{secrets.token_hex(8)}"
        try:
            for directory in (staged, staged / "root", staged / "results"):
                directory.mkdir(mode=0o700)
            for entry in self.hidden.oracle:
                target = staged / "root" / entry.name
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                target.write_bytes(entry.data)
                target.chmod(0o400)
            _give(staged, self.owner)
            yield staged
        finally:
            shutil.rmtree(staged, ignore_errors=True)

    def _recheck(self, staged: Path) -> None:
        for entry in self.hidden.oracle:
            try:
                same = read_untrusted(staged / "root", entry.name, len(entry.data)) == entry.data
            except (UnsafeFile, OSError):
                same = False
            if not same:
                raise OracleTampered(f"{entry.name} changed while the oracle ran")

    def _verdict(self, finished: Finished, staged: Path) -> OracleResult:
        if not finished.started:
            raise OracleTampered("the oracle's sandbox failed: " + finished.stderr.decode(errors="replace")[-300:])
        if finished.limit is None and (finished.timed_out or finished.leftovers):
            cause = "left processes behind" if finished.leftovers else f"ran longer than {self.timeout:g} s"
            return OracleResult(False, True, f"the oracle {cause}", finished.seconds)
        exited_well = finished.ok
        reason = None if exited_well else _why_not(finished)
        if self.spec.results == "exit":
            return OracleResult(exited_well, False, reason, finished.seconds, said=_said(finished))
        tests, doubt = self._proof(staged)
        passed = exited_well and doubt is None
        return OracleResult(passed, False, reason or doubt, finished.seconds, tests, _said(finished))

    def _proof(self, staged: Path) -> tuple[frozenset[str] | None, str | None]:
        """Return the tests that passed, and why they are no proof; exit status 0 alone proves nothing."""
        try:
            tests = passed_tests(read_untrusted(staged / "results", RESULTS_NAME, JUNIT_LIMIT))
        except FileNotFoundError:
            return None, "the oracle wrote no results"
        except (UnsafeFile, OSError, BadJUnit) as error:
            return None, f"the oracle's results cannot be read: {error}"
        if self.hidden.expected is None:
            return tests, "no proof of which tests must run: `wfbench check` records it"
        missing = sorted(set(self.hidden.expected.tests) - tests)
        if missing:
            return tests, f"{len(missing)} of {len(self.hidden.expected.tests)} expected tests did not pass"
        return tests, None


def _mode(spec: OracleSpec) -> int:
    """Return the mode of what holds the hidden files: where nothing has to list it, nothing can.

    A candidate that a black-box oracle runs is of the same uid, and could read what it finds. pytest lists every
    directory above its tests.
    """
    return 0o555 if spec.results == "junit" or "pytest" in spec.command else 0o111


def _said(finished: Finished) -> str:
    """Return the end of what was printed, errors first choice."""
    return (finished.stderr.strip() or finished.stdout.strip()).decode(errors="replace")[-SAID:]


def _why_not(finished: Finished) -> str:
    if finished.limit:
        return f"the oracle {finished.limit_told}"
    return f"the oracle exited {finished.status}"


def _give(top: Path, owner: tuple[int, int]) -> None:
    """Make a tree belong to the sandbox's uid, where we are not that uid ourselves."""
    if os.geteuid() == owner[0]:
        return
    for directory, _, names in os.walk(top):
        for name in (".", *names):
            os.chown(Path(directory) / name, *owner, follow_symlinks=False)
