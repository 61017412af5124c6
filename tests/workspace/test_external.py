"""External plugins: read whole, checked against their manifests, kept as they were."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.sandbox.identity import choose_identity
from pytest_wfbench.workspace import external
from pytest_wfbench.workspace.external import (
    MANIFEST,
    PluginFault,
    PluginFile,
    identify,
    keep_plugin,
    plugin_digest,
    read_plugin,
    skills_of,
)

WELL = json.dumps({"name": "ce", "version": "1.2.0", "hooks": {}})


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A plugin with one skill and a program."""
    top = tmp_path / "plugin"
    for name, text in ((MANIFEST, WELL), ("skills/work/SKILL.md", "# Work\n"), ("hooks/run.sh", "exit 0\n")):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    (top / "hooks/run.sh").chmod(0o755)
    return top


def told(faults: tuple[PluginFault, ...]) -> list[str]:
    return [f"{fault.name} {fault.message}".strip() for fault in faults]


class TestRead:
    def test_whole(self, plugin: Path) -> None:
        """Every file is read, with whether it may be run; what git keeps is no part of it."""
        (plugin / ".git").mkdir()
        (plugin / ".git/HEAD").write_text("x")
        files, faults = read_plugin(plugin)
        assert not faults
        assert [(file.name, file.runs) for file in files] == [
            (MANIFEST, False),
            ("hooks/run.sh", True),
            ("skills/work/SKILL.md", False),
        ]
        assert skills_of(files) == ("work",)

    def test_no_regular_file(self, plugin: Path) -> None:
        """Links to files and directories, pipes and odd names are refused, each by its name."""
        (plugin / "skills/link.md").symlink_to("work/SKILL.md")
        (plugin / "skills/etc").symlink_to("/etc")
        os.mkfifo(plugin / "pipe")
        (plugin / "a\nb").touch()
        assert sorted(told(read_plugin(plugin)[1])) == [
            "a\nb the name holds control characters or is not UTF-8",
            "pipe not a regular file",
            "skills/etc a link, not a regular file",
            "skills/link.md a link, not a regular file",
        ]

    def test_bounds(self, plugin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Too many files, or too many bytes, are refused; what is just within the bounds is read."""
        size = sum(path.stat().st_size for path in plugin.rglob("*") if path.is_file())
        monkeypatch.setattr(external, "MAX_FILES", 3)
        monkeypatch.setattr(external, "MAX_BYTES", size)
        assert read_plugin(plugin)[1] == ()
        monkeypatch.setattr(external, "MAX_BYTES", size - 1)
        assert told(read_plugin(plugin)[1]) == ["holds more than 0 MiB"]
        monkeypatch.setattr(external, "MAX_BYTES", size)
        (plugin / "zzz").touch()
        assert told(read_plugin(plugin)[1]) == ["holds more than 3 files"]

    @pytest.mark.parametrize("name", ["gone", "file", "link"])
    def test_no_directory(self, plugin: Path, name: str) -> None:
        """What is no directory of its own is no plugin."""
        (plugin.parent / "file").touch()
        (plugin.parent / "link").symlink_to("plugin")
        assert told(read_plugin(plugin.parent / name)[1]) == ["is no directory"]


class TestManifest:
    def told(self, data: bytes | None, version: str = "1.2.0") -> list[str]:
        files = () if data is None else (PluginFile(MANIFEST, False, data),)
        return told(identify(files, version)[1])

    def test_agrees(self) -> None:
        """The manifest names the plugin; what else it says is its own."""
        assert identify((PluginFile(MANIFEST, False, WELL.encode()),), "1.2.0") == ("ce", ())

    @pytest.mark.parametrize(
        ("manifest", "words"),
        [
            (None, "is missing"),
            (b"{", "is no manifest: not JSON"),
            (b"\xff\xfe", "is no manifest: not JSON"),
            (b"[" * 100_000, "is no manifest: not JSON"),
            (b"[]", "is no manifest: Input should be"),
            (b'{"name": "ce"}', "is no manifest: version: Field required"),
            (b'{"name": "ce", "version": 1}', "is no manifest: version: Input should be a valid string"),
            (b'{"name": "../ce", "version": "1.2.0"}', "names the plugin '../ce', which is no slug"),
            (b'{"name": "ce:x", "version": "1.2.0"}', "which is no slug"),
            (b'{"name": "ce", "version": "1.2"}', "says version '1.2', and '1.2.0' was asked for"),
        ],
    )
    def test_refused(self, manifest: bytes | None, words: str) -> None:
        """A manifest that is missing, garbage, or disagrees is refused by its name."""
        [fault] = self.told(manifest)
        assert fault.startswith(f"{MANIFEST} ")
        assert words in fault


class TestKept:
    @pytest.fixture
    def keep(self, plugin: Path, tmp_path: Path) -> Callable[[], external.ExternalPlugin]:
        def run() -> external.ExternalPlugin:
            files = read_plugin(plugin)[0]
            return keep_plugin(files, "ce", "1.2.0", tmp_path / "shelf", choose_identity())

        return run

    def test_once(self, plugin: Path, keep: Callable[[], Any]) -> None:
        """The same bytes are kept once, for the sandbox's identity; others lie elsewhere, by another digest."""
        first = keep()
        assert keep() == first
        assert plugin_digest(read_plugin(first.path)[0]) == first.digest
        uid = choose_identity().uid
        assert {path.stat().st_uid for path in (first.path, *first.path.rglob("*"))} == {uid}
        (plugin / "hooks/run.sh").chmod(0o644)
        second = keep()
        assert second.digest != first.digest
        assert second.path != first.path
        (plugin / "hooks/run.sh").write_text("exit 1\n")
        assert keep().digest not in {first.digest, second.digest}

    def test_where_it_lies_is_no_matter(self, plugin: Path, keep: Callable[[], Any]) -> None:
        """A digest is of names, modes and bytes alone."""
        moved = shutil.copytree(plugin, plugin.parent / "elsewhere")
        assert plugin_digest(read_plugin(moved)[0]) == keep().digest

    def test_mended(self, keep: Callable[[], Any]) -> None:
        """A kept plugin that is not what it was is made anew."""
        kept = keep()
        skill = kept.path / "skills/work/SKILL.md"
        skill.unlink()
        skill.write_text("# Forged\n")
        assert keep() == kept
        assert skill.read_text() == "# Work\n"
