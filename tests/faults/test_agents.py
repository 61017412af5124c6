"""Agents that end in every way but the proper one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.attack.raid import Raid, Raiders

pytestmark = pytest.mark.slow

SAY = 'say() { printf "%s\\n" "$1" >&$WFBENCH_EVENTS_FD; }\n'
DONE = "echo done > a.txt\n"
ODD = r"printf '\033[2J\033]0;owned\007\000\377\376\xc3\x28\r\n'; head -c 100000 /dev/urandom; "
SCRIPTS = {
    "idle": "exit 0",
    "failing": "exit 3",
    "segfault": "kill -SEGV $$",
    "abort": "ulimit -c unlimited; kill -ABRT $$",
    "killed": "kill -KILL $$",
    "hung-up": "kill -HUP $$",
    "binary": f"{ODD}\n{ODD.replace('; ', ' >&2; ')}\n{DONE}",
    "binary-events": f"{{ {ODD} }} >&$WFBENCH_EVENTS_FD\n{DONE}",
    "wide": f"head -c 67200000 /dev/zero | tr '\\0' x\n{DONE}",
    "wide-events": f"head -c 67200000 /dev/zero | tr '\\0' x >&$WFBENCH_EVENTS_FD\n{DONE}",
    "closed": f"exec >&- 2>&- 3>&- <&-\n{DONE}",
    "no-final": f'{SAY}say \'{{"type":"text","text":"hm"}}\'\n{DONE}exit 0',
    "torn-event": f'{SAY}printf \'{{"type":"te\' >&$WFBENCH_EVENTS_FD\n{DONE}exit 0',
    "exec": f"exec /bin/sh -c '{DONE.strip()}'",
    "daemon": f"setsid -f sh -c 'exec >&- 2>&- 3>&-; sleep 3; echo late > late.txt; sleep 4321'\n{DONE}",
    "holds-stdout": f"setsid sleep 4321 &\n{DONE}",
    "kills-all": f"{DONE}kill -KILL -1\nexit 0",
}
KINDS = {
    "idle": "no-work-produced",
    "failing": "session-error",
    "segfault": "session-error",
    "abort": "session-error",
    "killed": "session-error",
    "hung-up": "session-error",
    "binary": None,
    "binary-events": "evidence-unverified",
    "wide": None,
    "wide-events": "limit-output",
    "closed": None,
    "no-final": None,
    "torn-event": "evidence-unverified",
    "exec": None,
    "daemon": None,
    "holds-stdout": None,
    "kills-all": None,
}


@pytest.fixture
def ended(raid: Callable[[str, Raiders], Raid]) -> Raid:
    """One sweep over all of them."""
    return raid("bad-ends", Raiders(SCRIPTS, arguments=("-n", "2")))


class TestEnds:
    def test_kinds(self, ended: Raid) -> None:
        """Each end has its kind, and none disturbs another cell or the harness."""
        rows = ended.rows()
        assert {name: row["kind"] for name, row in rows.items()} == KINDS
        assert all(row["reason"] for row in rows.values() if row["kind"])
        assert "Traceback" not in ended.output
        assert "INTERNALERROR" not in ended.output

    def test_signals_are_named(self, ended: Raid) -> None:
        """A death by signal is told by its status."""
        rows = ended.rows()
        statuses = {"segfault": 139, "abort": 134, "killed": 137, "hung-up": 129}
        assert {name: str(status) in rows[name]["reason"] for name, status in statuses.items()} == dict.fromkeys(
            statuses, True
        )

    def test_no_core(self, ended: Raid) -> None:
        """No core file is left, in the workspace or on the host."""
        for name in ("segfault", "abort"):
            assert ended.rows()[name]["churn"]["files"] == 0
        assert not [path for path in ended.path.rglob("core*") if path.is_file()]

    def test_daemons_do_nothing_more(self, ended: Raid) -> None:
        """What a daemon does after its agent's end is not the agent's work."""
        assert ended.rows()["daemon"]["churn"]["files"] == 1
        assert ended.rows()["holds-stdout"]["timings"]["session"] < 20

    def test_terminal_is_unharmed(self, ended: Raid) -> None:
        """No control character of an agent reaches the terminal, the rows or the derived files."""
        for text in (ended.output, *(path.read_text() for path in ended.results.glob("*.*"))):
            assert not any(mark in text for mark in ("\033]", "\033[2J", "\x07", "\0"))
