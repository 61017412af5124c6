"""The one way to run a process: bounded in time and output, ended with its whole group whatever happens."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Literal

from pytest_wfbench.sandbox.identity import Identity
from pytest_wfbench.sandbox.spec import TAIL, Cancel, Excess, Finished
from pytest_wfbench.sandbox.streams import Capture, Keep, Streams, has_ended, standard_output
from pytest_wfbench.sandbox.watch import Watch

GRACE = 5.0
_TICK = 0.1
_LINGER = 0.2
_Cause = Literal["timeout", "cancelled"] | Excess
_FLOOD = Excess("output", "more output than is kept")


def start_process(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    user: Identity | None = None,
    pass_fds: Sequence[int] = (),
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stdout: int | IO[bytes] = subprocess.DEVNULL,
    stderr: int | IO[bytes] = subprocess.DEVNULL,
    guarded: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a process in a session and group of its own, with ``env`` as its whole environment.

    It is killed when the *thread* that calls this ends (parent-death signal): call it from a thread that outlives the
    process. With ``user`` it has that uid and gid, no groups and no capabilities; ``env`` is then still read by a
    program that root starts, so it must be the harness's own, never a task's. What is ``guarded`` sees to all this
    itself.

    Raises:
        OSError: when the program does not exist.
    """
    program = shutil.which(argv[0], path=env.get("PATH", os.defpath))
    if program is None:
        raise FileNotFoundError(f"{argv[0]}: no such program")
    return subprocess.Popen(
        [*(() if guarded else _guard(user)), program, *argv[1:]],
        env=dict(env),
        cwd=cwd,
        pass_fds=tuple(pass_fds),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
    )


def signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to the process's group. Only before it was reaped is the group known to be its own."""
    if process.returncode is None:
        try:
            os.killpg(process.pid, number)
        except (ProcessLookupError, PermissionError):
            return


def end_process(process: subprocess.Popen[bytes], grace: float = GRACE) -> None:
    """End a process of ``start_process`` and its group: SIGTERM, ``grace`` seconds, SIGKILL; then reap it."""
    if grace > 0 and process.returncode is None:
        signal_group(process, signal.SIGTERM)
        _wait_unreaped(process, grace)
    signal_group(process, signal.SIGKILL)
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        return


def run_process(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    timeout: float,
    cwd: Path | None = None,
    stdin: bytes = b"",
    stdout_limit: int = TAIL,
    keep: Keep = "tail",
    user: Identity | None = None,
    pass_fds: Sequence[int] = (),
    on_start: Callable[[int], None] | None = None,
    stop: Callable[[], None] | None = None,
    cancel: Cancel | None = None,
    watch: Watch | None = None,
    dialogue: int | None = None,
    guarded: bool = False,
) -> Finished:
    """Run a process to its end and end its group, also when this call is interrupted by an exception.

    Args:
        timeout: seconds until it is asked to stop; it is killed ``GRACE`` seconds later.
        stdout_limit: bytes kept of standard output, as in ``Command``; of standard error the last ``TAIL`` are kept.
        user: whom it runs as; the harness's own identity if none.
        on_start: called with the process id once it runs.
        stop: how to ask it to stop, if not by SIGTERM to its group.
        cancel: once set, the process is ended as by a timeout.
        watch: looks at what the process uses; it is killed at once when that is too much.
        dialogue: a descriptor that is its standard input and output instead, of which nothing is kept here.
        guarded: the command line itself asks for the parent-death signal and changes the identity.
    """
    began = time.monotonic()
    process: subprocess.Popen[bytes] | None = None
    streams: Streams | None = None
    cause: _Cause | None = None
    pipe = subprocess.PIPE
    try:
        with standard_output(keep, dialogue) as output:
            told = pipe if dialogue is None else dialogue
            process = start_process(
                argv, env=env, cwd=cwd, user=user, pass_fds=pass_fds,
                stdin=told, stdout=output.child, stderr=pipe, guarded=guarded,
            )  # fmt: skip
        process.stdout = process.stdout or output.parent
        streams = Streams(process, stdin, Capture(stdout_limit, keep), Capture(TAIL, "tail"))
        if on_start is not None:
            on_start(process.pid)
        ask = stop or (lambda: signal_group(process, signal.SIGTERM))
        cause = _supervise(streams, began + timeout, ask, cancel, watch)
        signal_group(process, signal.SIGKILL)
        streams.drain(_LINGER)
    except OSError as error:
        if process is not None:
            raise
        return Finished(None, b"", str(error).encode(), time.monotonic() - began, started=False)
    finally:
        if process is not None:
            end_process(process, grace=0)
        if streams is not None:
            streams.close()
    return _finished(process, streams, cause, time.monotonic() - began)


def _finished(process: subprocess.Popen[bytes], streams: Streams, cause: _Cause | None, seconds: float) -> Finished:
    code = process.returncode if process.returncode is not None else -signal.SIGKILL
    return Finished(
        status=None if cause == "timeout" else 128 - code if code < 0 else code,
        stdout=streams.stdout.data(),
        stderr=streams.stderr.data(),
        seconds=seconds,
        timed_out=cause == "timeout",
        cancelled=cause == "cancelled",
        limit=cause.limit if isinstance(cause, Excess) else None,
        excess=cause.told if isinstance(cause, Excess) else "",
    )


def _guard(user: Identity | None) -> list[str]:
    """The parent-death signal and the change of identity, by a program: a hook after fork is unsafe with threads."""
    tool = shutil.which("setpriv")
    if tool is None and user is not None and user.foreign:
        raise FileNotFoundError("setpriv: no such program (it is part of util-linux)")
    if tool is None:
        return []
    guard = [tool, "--pdeathsig", "KILL"]
    if user is not None and user.foreign:
        guard += [f"--reuid={user.uid}", f"--regid={user.gid}", "--clear-groups", "--inh-caps=-all"]
    return [*guard, "--"]


def _supervise(
    streams: Streams, deadline: float, stop: Callable[[], None], cancel: Cancel | None, watch: Watch | None
) -> _Cause | None:
    """Pump until the process ended, or was asked to stop and had its time, or uses too much; say what made it stop."""
    cause: _Cause | None = None
    while not streams.exited:
        now = time.monotonic()
        if now >= deadline:
            if cause is not None:
                break
            cause = "timeout"
        elif watch is not None and (excess := watch.look()) is not None:
            return cause or excess
        elif cause is None and streams.stdout.overflow:
            cause = _FLOOD
        elif cause is None and cancel is not None and cancel.is_set():
            cause = "cancelled"
        else:
            streams.pump(min(_TICK, deadline - now))
            continue
        stop()
        deadline = now + GRACE
    return cause


def _wait_unreaped(process: subprocess.Popen[bytes], seconds: float) -> None:
    until = time.monotonic() + seconds
    while not has_ended(process.pid) and time.monotonic() < until:
        time.sleep(0.02)
