"""The three streams of a process: bounded copies of what it says, delivery of what it is told."""

from __future__ import annotations

import os
import selectors
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from typing import IO, Literal

Keep = Literal["tail", "whole"]
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Output:
    """Where a process writes: ``child`` is for ``Popen``, which makes the stream itself if ``parent`` is none."""

    child: int
    parent: IO[bytes] | None


@contextmanager
def standard_output(keep: Keep, dialogue: int | None = None) -> Iterator[Output]:
    """Give what a process writes to, until it was started; ``parent`` is then the caller's to close.

    With ``dialogue`` that is all.

    A stream kept whole is evidence. A pipe can be opened anew through ``/proc/<pid>/fd`` by any process of the same
    uid, such as an agent's tools, and written to; a socket cannot. What is only a tail has a pipe, since programs open
    ``/dev/stdout``, which a socket refuses.
    """
    if dialogue is not None or keep == "tail":
        yield Output(subprocess.PIPE if dialogue is None else dialogue, None)
        return
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.shutdown(socket.SHUT_RD)
        reader = FileIO(ours.detach())
        try:
            yield Output(theirs.fileno(), reader)
        except BaseException:
            reader.close()
            raise


class Capture:
    """A bounded copy of a stream: its head (``whole``) or its tail; ``overflow`` says that the head is not all."""

    def __init__(self, limit: int, keep: Keep) -> None:
        self._limit = limit
        self._keep = keep
        self._data = bytearray()
        self.overflow = False

    def add(self, chunk: bytes) -> None:
        """Take the next bytes in."""
        self._data += chunk
        if self._keep == "whole":
            self.overflow = self.overflow or len(self._data) > self._limit
            del self._data[self._limit :]
        elif len(self._data) > 2 * self._limit:
            del self._data[: -self._limit]

    def data(self) -> bytes:
        """Return what is kept."""
        return bytes(self._data if self._keep == "whole" else self._data[max(0, len(self._data) - self._limit) :])


class Streams:
    """The three streams of a process and the news of its end, in one selector."""

    def __init__(self, process: subprocess.Popen[bytes], stdin: bytes, stdout: Capture, stderr: Capture) -> None:
        self.stdout = stdout
        self.stderr = stderr
        self.exited = False
        self._process = process
        self._input = memoryview(stdin)
        self._selector = selectors.DefaultSelector()
        self._watch_exit()
        self._watch(process.stdout, selectors.EVENT_READ, lambda pipe: self._read(pipe, stdout))
        self._watch(process.stderr, selectors.EVENT_READ, lambda pipe: self._read(pipe, stderr))
        self._watch(process.stdin, selectors.EVENT_WRITE, self._write)
        self._open_outputs = sum(pipe is not None for pipe in (process.stdout, process.stderr))

    def pump(self, seconds: float) -> None:
        """Move bytes, for at most ``seconds`` if there are none."""
        for key, _ in self._selector.select(max(0.0, seconds)):
            key.data(key.fileobj)
        if self._pidfd is None:
            self.exited = self.exited or has_ended(self._process.pid)

    def drain(self, seconds: float) -> None:
        """Read what is left in the streams; a descendant outside the group may hold them open for ever."""
        until = time.monotonic() + seconds
        while self._open_outputs and (left := until - time.monotonic()) > 0:
            self.pump(left)

    def close(self) -> None:
        """Let go of every descriptor."""
        self._selector.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None and not pipe.closed:
                _close_quietly(pipe)

    def _watch_exit(self) -> None:
        self._pidfd: int | None = None
        if hasattr(os, "pidfd_open"):
            self._pidfd = os.pidfd_open(self._process.pid)
            self._selector.register(self._pidfd, selectors.EVENT_READ, self._note_exit)

    def _watch(self, pipe: IO[bytes] | None, events: int, action: Callable[[IO[bytes]], None]) -> None:
        if pipe is None:
            return
        os.set_blocking(pipe.fileno(), False)
        self._selector.register(pipe, events, action)

    def _note_exit(self, pidfd: int) -> None:
        self.exited = True
        self._selector.unregister(pidfd)

    def _read(self, pipe: IO[bytes], capture: Capture) -> None:
        chunk = os.read(pipe.fileno(), _CHUNK)
        if chunk:
            capture.add(chunk)
            return
        self._selector.unregister(pipe)
        self._open_outputs -= 1

    def _write(self, pipe: IO[bytes]) -> None:
        try:
            sent = os.write(pipe.fileno(), self._input[:_CHUNK]) if self._input else 0
        except BrokenPipeError:
            sent = len(self._input)
        self._input = self._input[sent:]
        if not self._input:
            self._selector.unregister(pipe)
            _close_quietly(pipe)


def has_ended(pid: int) -> bool:
    """Whether a child has ended, leaving it to be reaped later."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def _close_quietly(pipe: IO[bytes]) -> None:
    try:
        pipe.close()
    except BrokenPipeError:
        return
