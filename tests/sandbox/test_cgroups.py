"""Control groups: where one can be made, what is written to it, what it tells.

The directories here imitate cgroupfs, so what the kernel does with the files is not tested; where the machine delegates
control groups, ``TestReal`` runs commands in them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_wfbench.sandbox import cgroups
from pytest_wfbench.sandbox.bubblewrap import Bubblewrap
from pytest_wfbench.sandbox.cgroups import Delegation, Group, Undelegated, find_delegation, new_group
from pytest_wfbench.sandbox.spec import Bounds, Command, Tmpfs

MIB = 1 << 20
FILES = ("memory.max", "memory.oom.group", "memory.swap.max", "pids.max", "cgroup.procs", "cgroup.kill")


def imitate(directory: Path, controllers: str = "memory pids", given: str = "") -> Path:
    """Make a directory that looks like a control group."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "cgroup.controllers").write_text(controllers)
    (directory / "cgroup.subtree_control").write_text(given)
    (directory / "cgroup.procs").touch()
    return directory


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An imitated root; a directory made in it gets the files of a control group, as in cgroupfs."""
    real = Path.mkdir

    def mkdir(self: Path, *args: object, **kwargs: object) -> None:
        real(self, *args, **kwargs)  # type: ignore[arg-type]
        if self.name.startswith("wfbench-"):
            for name in FILES:
                (self / name).touch()

    def rmdir(self: Path) -> None:
        for path in self.iterdir():
            path.unlink()
        os.rmdir(self)  # noqa: PTH106

    monkeypatch.setattr(Path, "mkdir", mkdir)
    monkeypatch.setattr(Path, "rmdir", rmdir)
    return imitate(tmp_path / "cgroup", "cpu memory pids")


def told(root: Path, own: str) -> Path:
    path = root.parent / "own"
    path.write_text(f"1:name=systemd:/\n0::{own}\n")
    return path


class TestDelegation:
    def test_nearest_that_hands_on(self, root: Path) -> None:
        """The nearest group around this process that hands both controllers on is it."""
        imitate(root, "memory pids", "memory pids")
        slice_ = imitate(root / "user", "memory pids", "memory pids")
        imitate(slice_ / "scope", "memory pids")
        assert find_delegation(root, told(root, "/user/scope")) == Delegation(slice_)

    @pytest.mark.parametrize("given", ["", "memory", "pids"])
    def test_half_is_none(self, root: Path, given: str) -> None:
        """A group that hands one of the controllers on is none."""
        imitate(root / "user/scope", given="")
        imitate(root / "user", given=given)
        (root / "cgroup.subtree_control").write_text(given)
        found = find_delegation(root, told(root, "/user/scope"))
        assert isinstance(found, Undelegated)
        assert "systemd-run" in found.remedy

    def test_missing_controllers(self, root: Path) -> None:
        """A host that has the controllers in version 1 is told by name what is missing."""
        (root / "cgroup.controllers").write_text("cpu")
        found = find_delegation(root, told(root, "/"))
        assert isinstance(found, Undelegated)
        assert "memory and pids" in found.reason

    def test_no_version_2(self, tmp_path: Path) -> None:
        """A host without control groups of version 2 has no delegation."""
        assert isinstance(find_delegation(tmp_path, told(tmp_path, "/")), Undelegated)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
    def test_not_ours(self, root: Path) -> None:
        """A group that this user may not write to is passed over."""
        imitate(root, given="memory pids")
        root.chmod(0o555)
        try:
            assert isinstance(find_delegation(root, told(root, "/")), Undelegated)
        finally:
            root.chmod(0o755)

    def test_own_root_is_left_alone(self, root: Path) -> None:
        """A container that is the root of what it sees keeps its processes where they are."""
        (root / "cgroup.type").touch()
        (root / "cgroup.procs").write_text("1\n7\n")
        (root / "cgroup.subtree_control").write_text("")
        found = find_delegation(root, told(root, "/"))
        assert isinstance(found, Undelegated)
        assert (root / "cgroup.procs").read_text() == "1\n7\n"
        assert (root / "cgroup.subtree_control").read_text() == ""

    def test_stale_groups_are_removed(self, root: Path) -> None:
        """What a killed harness left behind is removed, what a living one uses is not."""
        imitate(root, given="memory pids")
        stale, used = (root / f"wfbench-{pid}-00" for pid in (2**22 + 1, os.getpid()))
        for path in (stale, used):
            path.mkdir()
        find_delegation(root, told(root, "/"))
        assert (stale.exists(), used.exists()) == (False, True)


class TestGroup:
    def test_bounds_are_written(self, root: Path) -> None:
        """A group has the command's bounds, no swap, and is killed as a whole."""
        with new_group(Delegation(root), Bounds(memory=300 * MIB, processes=40)) as group:
            assert group is not None
            values = [(group.directory / name).read_text() for name in FILES[:4]]
            assert values == [str(300 * MIB), "1", "0", "40"]
            group.admit(77)
            assert (group.directory / "cgroup.procs").read_text() == "77"
        assert not list(root.glob("wfbench-*"))

    def test_none_where_it_cannot_be_made(self, tmp_path: Path) -> None:
        """Where no group can be made the command is watched instead."""
        with new_group(Delegation(tmp_path / "gone"), Bounds()) as group:
            assert group is None
        with new_group(None, Bounds()) as group:
            assert group is None

    @pytest.mark.parametrize(
        ("memory", "pids", "limit"),
        [
            ("oom 0\noom_kill 0\n", "max 0\n", None),
            ("oom 3\noom_kill 1\noom_group_kill 1\n", "max 0\n", "memory"),
            ("oom 0\noom_kill 1\n", "max 0\n", None),
            ("oom 0\n", "max 2\n", "processes"),
            ("", "", None),
        ],
    )
    def test_events(self, tmp_path: Path, memory: str, pids: str, limit: str | None) -> None:
        """A group's own limits count, not the memory that the whole machine ran out of."""
        (tmp_path / "memory.events").write_text(memory)
        (tmp_path / "pids.events").write_text(pids)
        found = Group(tmp_path, Bounds()).last()
        assert (found.limit if found else None) == limit


class TestReal:
    @pytest.fixture
    def grouped(self, sandbox: Bubblewrap) -> Bubblewrap:
        if sandbox.delegation is None:
            pytest.skip("no control groups are delegated here")
        return sandbox

    @pytest.mark.parametrize(
        ("script", "limit"),
        [
            ("true", None),
            ("exec python3 -c 'held = bytearray(300 << 20)'", "memory"),
            ("head -c 300M /dev/zero > /tmp/x", "memory"),
            ("for n in $(seq 60); do sleep 5 & done 2>/dev/null", "processes"),
        ],
    )
    def test_command(self, grouped: Bubblewrap, script: str, limit: str | None) -> None:
        """The kernel keeps the limits and says which was exceeded; the group is gone afterwards."""
        mounts = (Tmpfs("/workspace", MIB),)
        command = Command(("/bin/bash", "-c", script), mounts, 20, bounds=Bounds(memory=200 * MIB, processes=40))
        assert grouped.run(command).limit == limit
        assert grouped.delegation is not None
        assert not list(grouped.delegation.directory.glob(f"{cgroups._PREFIX}-{os.getpid()}-*"))
