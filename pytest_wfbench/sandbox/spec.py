"""What is to be run in a sandbox, and what came of it, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

TAIL = 64 * 1024
STREAM = 64 * 1024 * 1024

WORKSPACE = "/workspace"
HOME = "/home/agent"
# Each external plugin lies in a directory of its name here.
PLUGINS = "/opt/wfbench/plugins"
GATEWAY_PORT = 4000
GATEWAY_URL = f"http://127.0.0.1:{GATEWAY_PORT}"

SandboxName = Literal["bwrap", "host"]


@dataclass(frozen=True)
class Bind:
    """A host path at ``target``, read-only unless ``writable``.

    Of a writable directory, what changed at or after ``since`` (nanoseconds of its file system's clock) counts as
    written by the command.
    """

    source: Path
    target: str
    writable: bool = False
    since: int = 0


@dataclass(frozen=True)
class Overlay:
    """Layers stacked at ``target``, lowest first.

    ``rw`` needs ``upper`` and ``work`` (same file system, empty at first use; an upper is mounted by one sandbox at a
    time); ``ro`` merges read-only; ``tmp`` has a throw-away upper that dies with the sandbox.
    """

    lowers: tuple[Path, ...]
    target: str
    mode: Literal["rw", "ro", "tmp"]
    upper: Path | None = None
    work: Path | None = None


@dataclass(frozen=True)
class Tmpfs:
    """An empty private directory at ``target``, bounded to ``size`` bytes.

    A ``sealed`` one can neither be written nor changed: it only holds what is mounted in it.
    """

    target: str
    size: int
    mode: int = 0o755
    sealed: bool = False


@dataclass(frozen=True)
class Data:
    """Bytes as a file at ``target``, read-only, without a path on the host."""

    target: str
    data: bytes
    mode: int = 0o444


Mount = Bind | Overlay | Tmpfs | Data


@dataclass(frozen=True)
class Bounds:
    """What the processes of one sandbox may use: bytes, and numbers of processes and of files on disk (``inodes``)."""

    memory: int = 8 << 30
    processes: int = 512
    file_size: int = 1 << 30
    disk: int = 4 << 30
    inodes: int = 500_000


LimitName = Literal["memory", "disk", "processes", "output"]


@dataclass(frozen=True)
class Excess:
    """A limit that a command ran into, and what was seen of it, in words that follow a colon."""

    limit: LimitName
    told: str


class Cancel(Protocol):
    """Something that may turn out to end a command early, such as ``threading.Event``."""

    def is_set(self) -> bool:
        """Whether the command is to end. Asked ten times a second: it must not wait."""
        ...


@dataclass(frozen=True)
class Command:
    """One command for a sandbox, in the sandbox's own names: mount targets and ``GATEWAY_URL``.

    A sandbox without namespaces puts real ones in their place: targets at the start of a word of ``argv`` (but for the
    text after ``-c``) or of a value of ``env``, and in ``cwd``; the URL anywhere in these and in files in ``HOME``.
    ``env`` is added to the pinned allowlist (it may override PATH and HOME). ``gateway`` is the unix socket of the
    session's door: only with it does a relay listen on ``127.0.0.1:GATEWAY_PORT`` of the sandbox. ``timeout`` is in
    seconds. ``stdout_limit`` bounds what is kept of standard output: the head if ``keep`` is ``whole`` (more than the
    limit ends the command with limit ``output``), else the tail. Without ``processes_shown`` there is no ``/proc``, so
    that no process of the sandbox can find, read or write another. Once ``cancel`` is set the command is ended.
    ``dialogue`` is a descriptor that becomes its standard input and output: nothing of it is kept, ``stdin`` is unused.
    """

    argv: tuple[str, ...]
    mounts: tuple[Mount, ...]
    timeout: float
    cwd: str = WORKSPACE
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    gateway: Path | None = None
    bounds: Bounds = Bounds()
    stdout_limit: int = TAIL
    keep: Literal["tail", "whole"] = "tail"
    processes_shown: bool = True
    cancel: Cancel | None = None
    dialogue: int | None = None


@dataclass(frozen=True)
class Finished:
    """How a command ended. Exactly one of these is true: it never ``started``, it ``timed_out``, it has a ``status``.

    A command whose sandbox was ended from outside never started either: nothing can be said of it.

    ``status`` is the exit status, 128 + n for signal n. ``limit`` names a limit that it ran into, ``excess`` tells what
    was seen of it. ``seconds`` is its wall clock; ``setup_seconds`` what the sandbox itself cost.
    ``cancelled`` says that the harness ended it. ``leftovers`` says that processes outlived the command and were ended.
    """

    status: int | None
    stdout: bytes
    stderr: bytes
    seconds: float
    started: bool = True
    timed_out: bool = False
    cancelled: bool = False
    leftovers: bool = False
    limit: LimitName | None = None
    excess: str = ""
    setup_seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether it ran to its end and exited 0, leaving nothing behind."""
        return self.status == 0 and not self.timed_out and self.limit is None and not self.cancelled

    @property
    def limit_told(self) -> str:
        """Which limit it ran into, as the end of a sentence; empty if none."""
        if self.limit is None:
            return ""
        return f"ran into the {self.limit} limit" + (f": {self.excess}" if self.excess else "")


class Sandbox(Protocol):
    """Runs commands; one instance serves every cell of a process."""

    @property
    def name(self) -> SandboxName:
        """Which one it is, as the row records it."""
        ...

    def run(self, command: Command) -> Finished:
        """Run one command to its end, its timeout or its limit, and leave nothing of it behind."""
        ...
