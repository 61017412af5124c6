"""Other machines, made of this one: without user namespaces, without overlays, with another bubblewrap."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_wfbench.sandbox.binary import find_bubblewrap

AS_ROOT = os.geteuid() == 0

# What a container's usual filter of system calls refuses: namespaces, and mounts in them. Runs the rest of argv.
SECCOMP = """
import ctypes, os, struct, sys
def op(code, value, true=0, false=0):
    return struct.pack("HBBI", code, true, false, value)
refused, allowed = op(0x06, 0x00050001), op(0x06, 0x7FFF0000)
program = b"".join([
    op(0x20, 0),
    op(0x15, 435, 0, 1), op(0x06, 0x00050026),
    op(0x15, 272, 0, 1), refused,
    op(0x15, 165, 0, 1), refused,
    op(0x15, 56, 0, 3), op(0x20, 16), op(0x45, 0x7E020000, 0, 1), refused,
    allowed,
])
data = ctypes.create_string_buffer(program)
filter = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(data))
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_ulong]
assert libc.prctl(38, 1, None, 0, 0) == 0
assert libc.prctl(22, 2, filter, 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
"""


def in_container(argv: Sequence[str]) -> list[str]:
    """The command line of a program that can make no namespaces, as in a container with the usual filter."""
    return [sys.executable, "-c", SECCOMP, *argv]


# A user namespace with the same uids, in which no other can be made.
NONE_LEFT = """
import ctypes, os, sys
ready, go = os.pipe(), os.pipe()
pid = os.fork()
if pid == 0:
    assert ctypes.CDLL(None).unshare(0x10000000) == 0
    os.write(ready[1], b"1")
    os.read(go[0], 1)
    with open("/proc/sys/user/max_user_namespaces", "w") as limit:
        limit.write("0")
    os.execvp(sys.argv[1], sys.argv[1:])
os.read(ready[0], 1)
count = 100000 if os.geteuid() == 0 else 1
maps = {"uid_map": f"{os.geteuid()} {os.geteuid()} {count}", "gid_map": f"{os.getegid()} {os.getegid()} {count}"}
if count == 1:
    maps = {"setgroups": "deny", **maps}
for name, text in maps.items():
    with open(f"/proc/{pid}/{name}", "w") as file:
        file.write(text)
os.write(go[1], b"1")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def without_user_namespaces(argv: Sequence[str]) -> list[str]:
    """The command line of a program where ``user.max_user_namespaces`` is 0; it keeps its uid, and root all others."""
    return [sys.executable, "-c", NONE_LEFT, *argv]


def as_only_root(argv: Sequence[str]) -> list[str]:
    """The command line of a program that is root where there is no other uid."""
    return ["unshare", "--user", "--map-root-user", *argv]


def bubblewrap_saying(directory: Path, version: str, message: str = "") -> Path:
    """A bubblewrap that says its version, and whenever it is to do something a message and where it was executed."""
    return _program(directory, f'if test "$1" = --version; then echo bubblewrap {version}; exit; fi\n'
                               f'echo {shlex.quote(message)}"$0" >&2\nexit 1\n')  # fmt: skip


def bubblewrap_without(directory: Path, *options: str) -> Path:
    """The real bubblewrap, but for some options: what asks for one of them fails as where the kernel refuses it."""
    real = shlex.quote(str(find_bubblewrap().path))
    words = "|".join(options)
    script = (
        f'if test "$1" = --args && tr "\\0" "\\n" < /proc/self/fd/$2 | grep -qxE -e "{words}"; then\n'
        '  echo "bwrap: Can\'t make overlay mount on /newroot/workspace: Invalid argument" >&2; exit 1\nfi\n'
        f'exec {real} "$@"\n'
    )
    return _program(directory, script)


def _program(directory: Path, script: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "bwrap"
    path.write_text(f"#!/bin/sh\n{script}")
    path.chmod(0o755)
    return path


def first_on_path(directory: Path) -> dict[str, str]:
    """The variables of a machine whose bubblewrap lies in a directory."""
    return {"PATH": f"{directory}{os.pathsep}{os.environ['PATH']}"}


def doctor(
    *arguments: str, wrap: Sequence[str] | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Ask ``wfbench doctor`` in a process of its own; ``wrap`` is a whole command line that runs it elsewhere."""
    argv = wrap if wrap is not None else doctor_line(*arguments)
    return subprocess.run(
        argv, env={**os.environ, **(env or {})}, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
    )


def doctor_line(*arguments: str) -> list[str]:
    """The command line of ``wfbench doctor``."""
    return [sys.executable, "-m", "pytest_wfbench.cli", "doctor", *arguments]
