"""A filter of system calls: what all processes of one uid may do to each other, and what no namespace divides."""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

# Instructions of the kernel's packet filter, as in linux/filter.h and linux/bpf_common.h.
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
# The halves of the third one, whatever their order.
_THIRD_ARGUMENT = (32, 36)
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
_X32 = 0x40000000
# AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: these end at the network namespace. AF_VSOCK, for one, does not.
_FAMILIES = (1, 2, 10, 16)


# A number is one of steps to pass over.
Target = Literal["next", "allow", "refuse"] | int
Step = tuple[int, int, Target, Target]


@dataclass(frozen=True)
class Machine:
    """A machine's audit number, and its numbers of the calls that are refused.

    These look into other processes (ptrace, process_vm_readv, process_vm_writev, kcmp, pidfd_getfd, perf_event_open,
    bpf), reach keys that outlive a sandbox or came from the harness's login (add_key, request_key, keyctl), or list
    mounts without ``/proc`` and with them where an oracle lies (statmount, listmount), or make sockets past this filter
    (io_uring_setup). ``socket`` is the number of the call that makes sockets, of some families only, ``limit`` that of
    prlimit64, which sets limits of the caller only: one of processor time on the sandbox's first process would kill it.
    """

    audit: int
    socket: int
    limit: int
    calls: tuple[int, ...]


MACHINES: Mapping[str, Machine] = {
    "x86_64": Machine(0xC000003E, 41, 302, (101, 310, 311, 312, 438, 298, 321, 248, 249, 250, 457, 458, 425)),
    "aarch64": Machine(0xC00000B7, 198, 261, (117, 270, 271, 272, 438, 241, 280, 217, 218, 219, 457, 458, 425)),
}


def peeping_filter(machine: str | None = None) -> bytes | None:
    """Return the filter program, none for a machine whose numbers are not known.

    Calls of another architecture of the same processor are refused as well: their numbers mean something else.
    """
    known = MACHINES.get(machine or platform.machine())
    if known is None:
        return None
    refusals: list[Step] = [(_EQUAL, call, "refuse", "next") for call in known.calls]
    families: list[Step] = [(_EQUAL, family, "allow", "next") for family in _FAMILIES[:-1]]
    low, high = _THIRD_ARGUMENT
    limits: list[Step] = [
        (_EQUAL, known.limit, "next", 6),
        (_LOAD, _FIRST_ARGUMENT, "next", "next"),
        (_EQUAL, 0, "allow", "next"),
        (_LOAD, low, "next", "next"),
        (_EQUAL, 0, "next", "refuse"),
        (_LOAD, high, "next", "next"),
        (_EQUAL, 0, "allow", "refuse"),
    ]
    program: list[Step] = [
        (_LOAD, _ARCHITECTURE, "next", "next"),
        (_EQUAL, known.audit, "next", "refuse"),
        (_LOAD, _NUMBER, "next", "next"),
        (_AT_LEAST, _X32, "refuse", "next"),
        *refusals,
        *limits,
        (_EQUAL, known.socket, "next", "allow"),
        (_LOAD, _FIRST_ARGUMENT, "next", "next"),
        *families,
        (_EQUAL, _FAMILIES[-1], "allow", "refuse"),
    ]
    return b"".join([*_assembled(program), _instruction(_RETURN, _ALLOW), _instruction(_RETURN, _REFUSE)])


def _assembled(program: Sequence[Step]) -> Iterator[bytes]:
    """Turn targets into distances: behind the program stand "allow" and "refuse"."""
    for index, (code, value, if_true, if_false) in enumerate(program):
        left = len(program) - index - 1
        named = {"next": 0, "allow": left, "refuse": left + 1}
        if_true, if_false = (to if isinstance(to, int) else named[to] for to in (if_true, if_false))
        yield _instruction(code, value, if_true, if_false)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)
