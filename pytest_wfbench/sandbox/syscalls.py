"""A filter of system calls: what all processes of one uid may do to each other, and what no namespace divides."""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Mapping
from dataclasses import dataclass

# Instructions of the kernel's packet filter, as in linux/filter.h and linux/bpf_common.h.
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE = 0, 4
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
_X32 = 0x40000000


@dataclass(frozen=True)
class Machine:
    """A machine's audit number, and its numbers of the calls that are refused.

    These look into other processes (ptrace, process_vm_readv, process_vm_writev, kcmp, pidfd_getfd, perf_event_open,
    bpf), reach keys that outlive a sandbox or came from the harness's login (add_key, request_key, keyctl), or list
    mounts without ``/proc`` and with them where an oracle lies (statmount, listmount).
    """

    audit: int
    calls: tuple[int, ...]


MACHINES: Mapping[str, Machine] = {
    "x86_64": Machine(0xC000003E, (101, 310, 311, 312, 438, 298, 321, 248, 249, 250, 457, 458)),
    "aarch64": Machine(0xC00000B7, (117, 270, 271, 272, 438, 241, 280, 217, 218, 219, 457, 458)),
}


def peeping_filter(machine: str | None = None) -> bytes | None:
    """Return the filter program, none for a machine whose numbers are not known.

    Calls of another architecture of the same processor are refused as well: their numbers mean something else.
    """
    known = MACHINES.get(machine or platform.machine())
    if known is None:
        return None
    tests = len(known.calls) + 1
    program = [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_EQUAL, known.audit, 0, tests + 2),
        _instruction(_LOAD, _NUMBER),
        _instruction(_AT_LEAST, _X32, tests, 0),
    ]
    program += [_instruction(_EQUAL, call, tests - 1 - index, 0) for index, call in enumerate(known.calls)]
    program += [_instruction(_RETURN, _ALLOW), _instruction(_RETURN, _REFUSE)]
    return b"".join(program)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)
