"""Cut short, or failing, at every single call that changes the disk: in the apply, in its undoing, in a recovery."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from pytest_wfbench.apply import swap as swapping_module
from pytest_wfbench.apply.errors import Faulted, Refused, Stopped
from pytest_wfbench.apply.swap import Swap, link_and_rename, swap

from .conftest import Ground
from .test_killed import ended, reset

pytestmark = pytest.mark.slow

SWAPS = pytest.mark.parametrize("swapping", [swap, link_and_rename], ids=["exchange", "link"])
CHANGING = ("fchmod", "fsync", "link", "mkdir", "rename", "replace", "rmdir", "unlink")
APPLIED, UNDONE, PARTLY, REFUSED, SURVIVED = 0, 7, 8, 6, 9
MOST = 400


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here waits for the disk: what outlasts a power cut is no matter of these tests."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@dataclass
class Trap:
    """Counts the calls of this process that change the disk, and acts at one of them, or from it on."""

    at: int
    act: Callable[[], None]
    lasting: bool = False
    count: int = 0

    def lay(self) -> None:
        """Only ever in a process of its own."""
        for name in CHANGING:
            setattr(os, name, self._before(getattr(os, name)))
        os.open = self._opening(os.open)
        swapping_module.exchange = self._before(swapping_module.exchange)

    def reached(self) -> None:
        self.count += 1
        if self.count == self.at or (self.lasting and self.count > self.at):
            self.act()

    def _before(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def trapped(*given: Any, **named: Any) -> Any:
            self.reached()
            return call(*given, **named)

        return trapped

    def _opening(self, call: Callable[..., int]) -> Callable[..., int]:
        def trapped(path: Any, flags: int, *given: Any, **named: Any) -> int:
            if flags & os.O_CREAT:
                self.reached()
            return call(path, flags, *given, **named)

        return trapped


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def broken(code: int) -> Callable[[], None]:
    def act() -> None:
        raise OSError(code, os.strerror(code))

    return act


def trapped(act: Callable[[], object], trap: Trap) -> int:
    """Run it in a process with the trap; SURVIVED where the trap was never reached."""
    child = os.fork()
    if child:
        return ended(child)
    status = 99
    try:
        trap.lay()
        act()
        status = APPLIED
    except Refused:
        status = REFUSED
    except Faulted as error:
        status = PARTLY if error.left else UNDONE
    finally:
        os._exit(SURVIVED if trap.count < trap.at else status)


def whole(ground: Ground) -> bool:
    """Whether every file is wholly old or wholly new."""
    found = ground.files()
    return all(found.get(path) in (ground.old.get(path), ground.new[path]) for path in ground.new)


@SWAPS
def test_killed(ground: Ground, swapping: Swap) -> None:
    """Killed before any call, each file is wholly old or new; recovering ends in one of both, again does nothing."""
    ends = []
    for at in range(1, MOST):
        reset(ground)
        status = trapped(lambda: ground.apply(swapping=swapping), Trap(at, die))
        if status == SURVIVED:
            break
        assert (at, status, whole(ground)) == (at, -signal.SIGKILL, True)
        ground.recover()
        assert (at, ground.strays()) == (at, [])
        ends.append(ground.state())
        assert (at, ground.recover(), ground.state()) == (at, (), ends[-1])
    assert (len(ends) > 60, set(ends)) == (True, {"old", "new"})
    # Once the files are the new ones it is never back again.
    assert ends == sorted(ends, reverse=True)


@SWAPS
@pytest.mark.parametrize("cut", ["exchange mirror/skills/work/more.md", "verify"])
def test_recovery_killed(ground: Ground, swapping: Swap, cut: str) -> None:
    """A recovery that is killed before any of its calls is finished by the next one."""

    def kill(step: str) -> None:
        if step == cut:
            die()

    for at in range(1, MOST):
        reset(ground)
        assert trapped(lambda: ground.apply(kill, swapping), Trap(MOST, die)) == -signal.SIGKILL
        status = trapped(ground.recover, Trap(at, die))
        assert (at, whole(ground)) == (at, True)
        ground.recover()
        assert (at, ground.state(), ground.strays()) == (at, "old", [])
        if status == SURVIVED:
            break
    assert at > 8


@SWAPS
@pytest.mark.parametrize(("code", "lasting"), [(errno.ENOSPC, False), (errno.EIO, True)], ids=["once", "from-then-on"])
@pytest.mark.parametrize("stopped", [False, True], ids=["applied", "stopped"])
def test_disk_fails(ground: Ground, swapping: Swap, code: int, lasting: bool, stopped: bool) -> None:
    """Whatever call fails, once or from then on, those of undoing too: what is told is true, and it can be finished.

    Where it is stopped at the end, the calls that fail are also those of the undoing that follows.
    """

    def stop(step: str) -> None:
        if stopped and step == "finish":
            raise Stopped("SIGTERM")

    seen = set()
    for at in range(1, MOST):
        reset(ground)
        status = trapped(lambda: ground.apply(stop, swapping), Trap(at, broken(code), lasting))
        if status == SURVIVED:
            break
        seen.add(status)
        files = [name for name in ground.files() if "wfbench" in name]
        before = ground.state(but=files)
        assert (at, whole(ground), status in (APPLIED, UNDONE, PARTLY, REFUSED)) == (at, True, True)
        if status != PARTLY:
            assert (at, status, before) == (at, status, "new" if status == APPLIED else "old")
        told = ground.recover()
        assert (at, ground.strays()) == (at, [])
        assert (at, ground.state() in (("old", "new") if status == PARTLY else (before,)), told) == (at, True, told)
    assert at > 60
    assert {PARTLY if lasting else UNDONE, REFUSED} <= seen
