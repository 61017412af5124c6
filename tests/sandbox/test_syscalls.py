"""The filter of system calls."""

from __future__ import annotations

import struct

import pytest

from pytest_wfbench.sandbox.syscalls import MACHINES, peeping_filter

ALLOW, REFUSE = 0x7FFF0000, 0x00050001


def judged(program: bytes, audit: int, number: int, argument: int = 1, third: int = 0) -> int:
    """What the kernel would make of a call with a first and a third argument, by the rules of its packet filter."""
    code = list(struct.iter_unpack("HBBI", program))
    at, value = 0, 0
    while True:
        kind, if_true, if_false, operand = code[at]
        at += 1
        if kind == 0x06:
            return int(operand)
        if kind == 0x20:
            value = {0: number, 4: audit, 16: argument, 32: third & 0xFFFFFFFF, 36: third >> 32}[operand]
        else:
            at += if_true if (value == operand if kind == 0x15 else value >= operand) else if_false


@pytest.mark.parametrize("name", sorted(MACHINES))
def test_each_call(name: str) -> None:
    """Every named call is refused, its neighbours are not; other architectures and x32 numbers are refused whole."""
    machine, program = MACHINES[name], peeping_filter(name)
    assert program
    refused = {number for number in range(600) if judged(program, machine.audit, number) == REFUSE}
    assert refused == set(machine.calls)
    assert judged(program, machine.audit, 0x40000000) == REFUSE
    assert judged(program, 0x40000003, 1) == REFUSE


@pytest.mark.parametrize("name", sorted(MACHINES))
def test_families_of_sockets(name: str) -> None:
    """Sockets are of the families unix, inet, inet6 and netlink; no first argument of another call matters."""
    machine, program = MACHINES[name], peeping_filter(name)
    assert program
    families = {family for family in range(64) if judged(program, machine.audit, machine.socket, family) == ALLOW}
    assert families == {1, 2, 10, 16}
    assert {judged(program, machine.audit, machine.socket + 1, family) for family in range(64)} == {ALLOW}


@pytest.mark.parametrize("name", sorted(MACHINES))
@pytest.mark.parametrize("place", [1, 1 << 32], ids=["low", "high"])
def test_limits_of_others(name: str, place: int) -> None:
    """Limits are set of the caller alone, wherever the new ones lie, and read of anybody."""
    machine, program = MACHINES[name], peeping_filter(name)
    assert program
    verdicts = {pid: judged(program, machine.audit, machine.limit, pid, place) for pid in (0, 1, 7)}
    assert verdicts == {0: ALLOW, 1: REFUSE, 7: REFUSE}
    assert judged(program, machine.audit, machine.limit, 1, 0) == ALLOW


def test_unknown_machine() -> None:
    """A machine whose numbers are not known has no filter."""
    assert peeping_filter("vax") is None
