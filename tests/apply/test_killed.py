"""Real processes: killed at any instant, on a full disk, and without the right to write."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_wfbench.apply.errors import Faulted, Refused
from pytest_wfbench.apply.swap import Swap, link_and_rename, swap

from .conftest import Ground

KILLS = int(os.environ.get("WFBENCH_TEST_KILLS", "24"))
NOBODY = 65534


def started(act: Callable[[], object]) -> int:
    """Run something in a process of its own; 0 where it ends well, 7 where it is refused or undone."""
    child = os.fork()
    if child:
        return child
    status = 9
    try:
        act()
        status = 0
    except (Faulted, Refused):
        status = 7
    finally:
        os._exit(status)


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed(act: Callable[[], object], after: float) -> int:
    child = started(act)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    return ended(child)


def reset(ground: Ground) -> None:
    for path in ground.new:
        (ground.path / path).unlink(missing_ok=True)
    for path, data in ground.old.items():
        (ground.path / path).write_bytes(data)
    for root in (".claude", "mirror"):
        added = ground.path / root / "skills/work/new"
        if added.exists():
            added.rmdir()


@pytest.mark.slow
@pytest.mark.parametrize("swapping", [swap, link_and_rename], ids=["exchange", "link"])
def test_killed_at_random(ground: Ground, swapping: Swap) -> None:
    """At every instant each file is wholly old or wholly new; recovering, itself killed or not, ends in one state."""
    began = time.monotonic()
    assert ended(started(lambda: ground.apply(swapping=swapping))) == 0
    whole = time.monotonic() - began
    chance, cut, ends = random.Random(7), 0, set()
    for _ in range(KILLS // 2):
        reset(ground)
        cut += killed(lambda: ground.apply(swapping=swapping), chance.uniform(0, whole)) != 0
        found = ground.files()
        for path in ground.new:
            assert found.get(path) in (ground.old.get(path), ground.new[path]), path
        if chance.random() < 0.3:
            killed(ground.recover, chance.uniform(0, whole / 3))
        ground.recover()
        assert ground.strays() == []
        ends.add(ground.state())
    assert cut > KILLS // 8
    assert ends <= {"old", "new"}


def test_terminated(ground: Ground) -> None:
    """SIGTERM is heard between two steps: all goes back, and nothing is left."""
    from pytest_wfbench.apply.signals import heard_between_steps

    def act() -> None:
        with heard_between_steps() as watch:

            def slow(step: str) -> None:
                if step == "verify":
                    os.kill(os.getpid(), signal.SIGTERM)
                watch(step)

            ground.apply(slow)

    assert ended(started(act)) == 7
    assert (ground.state(), ground.strays()) == ("old", [])


def test_no_right(ground: Ground) -> None:
    """Where one directory cannot be written to, all goes back and the cause is told."""
    locked = ground.path / "mirror/skills/plan"
    owner = NOBODY if os.geteuid() == 0 else os.geteuid()
    for path in [ground.path, *ground.path.rglob("*")]:
        if os.geteuid() == 0:
            os.chown(path, owner, owner)
        path.chmod(0o755 if path.is_dir() else 0o644)
    locked.chmod(0o555)

    def act() -> None:
        if os.geteuid() == 0:
            _become(owner, ground.path)
        ground.apply()

    assert ended(started(act)) == 7
    locked.chmod(0o755)
    assert (ground.state(), ground.strays()) == ("old", [])


def _become(user: int, directory: Path) -> None:
    """Another user, in a directory that it may not reach by its whole path."""
    os.chdir(directory)
    for up in directory.parents:
        up.chmod(up.stat().st_mode | 0o011)
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


FULL = """\
import sys
from pathlib import Path
sys.path[:0] = {path!r}
from pytest_wfbench.apply.errors import Faulted, Refused
from tests.apply.conftest import Ground
disk = Path({disk!r})
ground = Ground(disk / "repo")
for number in range(6):
    name = f".claude/skills/work/f{{number}}.md"
    ground.old[name], ground.new[name] = b"old", b"new" * 20_000
    (ground.path / name).parent.mkdir(parents=True, exist_ok=True)
    (ground.path / name).write_bytes(b"old")
try:
    ground.apply()
except (Faulted, Refused) as error:
    assert "No space left" in str(error), error
else:
    raise SystemExit("the disk was not full")
assert (ground.state(), ground.strays()) == ("old", []), ground.state()
ground.new = {{name: b"new" for name in ground.new}}
ground.apply()
assert ground.state() == "new"
"""


def test_full_disk(tmp_path: Path) -> None:
    """On a disk that fills up while files are staged all goes back; with room it is applied."""
    disk = tmp_path / "disk"
    disk.mkdir()
    script = tmp_path / "full.py"
    script.write_text(FULL.format(path=sys.path, disk=str(disk)))
    mine = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-current-user", "--mount", "--keep-caps"]
    mount = f'mount -t tmpfs -o size=200k,mode=0777 none "{disk}" && exec "{sys.executable}" "{script}"'
    ran = subprocess.run([*mine, "sh", "-c", mount], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
