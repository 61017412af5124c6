"""What passes between the harness and the init of a command, besides the command's own streams."""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_wfbench.sandbox import init
from pytest_wfbench.sandbox.spec import Finished

_VANISH = 2.0


class Channels:
    """The descriptors that one sandbox is started with; all are closed at the end, and none is left in a child."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._passed: list[int] = []
        self._open: set[int] = set()
        self._said = b""
        self.control, self._stop = self._pipe()
        self._status_read, self.status = self._pipe()
        self._report_read, self.report = self._pipe()
        self._passed += [self.control, self.report]

    def __enter__(self) -> Channels:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def passed(self) -> Sequence[int]:
        """What the child is to inherit. Whoever has a use for ``status`` passes it too."""
        return self._passed

    def file(self, data: bytes) -> int:
        """Return a descriptor from which the child reads the bytes."""
        descriptor = os.memfd_create("wfbench")
        self._keep(descriptor)
        with os.fdopen(os.dup(descriptor), "wb") as stream:
            stream.write(data)
        os.lseek(descriptor, 0, os.SEEK_SET)
        self._passed.append(descriptor)
        return descriptor

    def gate(self) -> tuple[int, int]:
        """Return the two ends of a pipe: the child waits at the first for a byte written to the second."""
        waits, opens = self._pipe()
        self._passed.append(waits)
        return waits, opens

    def ask_to_stop(self) -> None:
        """Ask the init for a graceful end of the command."""
        with suppress(BrokenPipeError):
            os.write(self._stop, init.STOP)

    def let_go(self, seconds: float) -> None:
        """Tell the init that the harness is gone, and wait until it is gone too, with all that it started."""
        for descriptor in (self._stop, self.control, self.report):
            self._close(descriptor)
        poll = select.poll()
        poll.register(self._report_read, 0)
        poll.poll(seconds * 1000)

    def read_status(self) -> bytes:
        """Return what bubblewrap said so far."""
        self._said += _read_all(self._status_read)
        return self._said

    def child(self) -> int | None:
        """Return the host's process id of the sandbox's first process, once bubblewrap has said it."""
        return next((found["child-pid"] for found in _documents(self.read_status()) if "child-pid" in found), None)

    def running(self) -> int | None:
        """Return the same once the init has said something: before that the process may still see the host's files."""
        poll = select.poll()
        poll.register(self._report_read, select.POLLIN)
        return self.child() if poll.poll(0) else None

    def await_child(self, seconds: float) -> int | None:
        """Wait for bubblewrap to start the sandbox's first process, and return its process id on the host."""
        poll = select.poll()
        poll.register(self._status_read, select.POLLIN)
        until = time.monotonic() + seconds
        while (child := self.child()) is None and (left := until - time.monotonic()) > 0:
            if any(events & select.POLLHUP for _, events in poll.poll(left * 1000)):
                return self.child()
        return child

    def read_report(self) -> bytes:
        """Return what the init said."""
        return _read_all(self._report_read)

    def _pipe(self) -> tuple[int, int]:
        ends = os.pipe()
        for end in ends:
            self._keep(end)
        return ends

    def _keep(self, descriptor: int) -> None:
        self._open.add(descriptor)
        self._stack.callback(self._close, descriptor)

    def _close(self, descriptor: int) -> None:
        if descriptor in self._open:
            self._open.remove(descriptor)
            os.close(descriptor)


@dataclass(frozen=True)
class Story:
    """What bubblewrap, if there was one, and the init said: times in nanoseconds, the init's process id on the host.

    ``full`` is a private directory that had no space left when the command had failed.
    """

    pid: int | None
    status: int | None
    run: int | None
    end: int | None
    leftovers: bool
    full: str | None
    failure: str | None

    @classmethod
    def read(cls, channels: Channels) -> Story:
        """Return all that was said."""
        documents: dict[str, int] = {}
        for document in _documents(channels.read_status()):
            documents |= document
        lines = dict(line.split(" ", 1) for line in channels.read_report().decode().splitlines())
        return cls(
            pid=documents.get("child-pid"),
            status=documents.get("exit-code"),
            run=_number(lines.get("run")),
            end=_number(lines.get("end")),
            leftovers=lines.get("left") == "1",
            full=lines.get("full"),
            failure=lines.get("fail"),
        )


def judge(ended: Finished, story: Story, began: int) -> Finished:
    """Join how the process ended with what was said from inside."""
    if story.pid is not None and story.status is None:
        _await_death(story.pid)
    if story.run is None:
        return replace(ended, status=None, started=False, stderr=_why_not(ended, story), timed_out=False)
    finish = story.end or time.monotonic_ns()
    return replace(
        ended,
        seconds=(finish - story.run) / 1e9,
        setup_seconds=(story.run - began) / 1e9,
        leftovers=story.leftovers,
    )


def _why_not(ended: Finished, story: Story) -> bytes:
    """Return why no command was started: what was said of it, else how it ended that said nothing (SIGKILL, mostly)."""
    if said := ended.stderr or (story.failure or "").encode():
        return said
    if ended.timed_out or ended.cancelled or ended.limit:
        return b"it was ended before its command was started"
    first = "none" if story.pid is None else "one, status unknown" if story.status is None else f"one, {story.status}"
    return f"it ended without a word, with status {ended.status} (first process: {first})".encode()


def _await_death(pid: int) -> None:
    """Wait until a killed init is gone with all its processes: they may still write to the workspace."""
    until = time.monotonic() + _VANISH
    while time.monotonic() < until and _lives(pid):
        time.sleep(0.005)


def _lives(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return text.rpartition(b")")[2].split()[:1] != [b"Z"]


def _read_all(descriptor: int) -> bytes:
    os.set_blocking(descriptor, False)
    with suppress(BlockingIOError):
        return os.read(descriptor, 1 << 16)
    return b""


def _documents(said: bytes) -> Iterator[dict[str, int]]:
    """Yield what bubblewrap said, a document a line; a line that is not whole yet is left out."""
    for line in said.splitlines(keepends=True):
        if line.endswith(b"\n"):
            yield json.loads(line)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None else None
