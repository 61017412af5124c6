"""An external plugin: read whole into memory, known by its bytes, and kept where sandboxes can have it mounted."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from pytest_wfbench.digests import digest_tree
from pytest_wfbench.evidence.row import PluginBinding
from pytest_wfbench.files import UnsafeFile, read_untrusted
from pytest_wfbench.matrix.fields import SLUG
from pytest_wfbench.sandbox.identity import Identity
from pytest_wfbench.sandbox.removal import remove_tree
from pytest_wfbench.sandbox.spec import PLUGINS, Bind
from pytest_wfbench.workspace.shelf import fetch

MANIFEST = ".claude-plugin/plugin.json"
SKILLS = "skills"
MAX_FILES = 2000
MAX_BYTES = 32 << 20
_TREE = "plugin"
# What git keeps of a plugin is no part of it.
_PASSED_OVER = ".git"


class PluginFault(NamedTuple):
    """One thing that makes a directory no plugin; ``name`` is the file's, empty for the whole."""

    name: str
    message: str
    remedy: str


class PluginFile(NamedTuple):
    """One file of a plugin: its relative path, whether it may be run, its bytes."""

    name: str
    runs: bool
    data: bytes


class ExternalPlugin(BaseModel):
    """A plugin as it is kept: ``path`` is its tree, ``digest`` that of names, modes and bytes, ``skills`` are sorted.

    A skill of it is called ``<name>:<skill>`` where the repository's own is called ``<skill>``.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    version: str
    digest: str
    path: Path
    skills: tuple[str, ...]

    def skill_name(self, skill: str) -> str:
        """Return what an agent that loaded the plugin calls one of its skills."""
        return f"{self.name}:{skill}"

    @property
    def binding(self) -> PluginBinding:
        """How rows and the manifest name it."""
        return PluginBinding(name=self.name, version=self.version, digest=self.digest)

    @property
    def mount(self) -> Bind:
        """What shows it, read-only, in a session."""
        return Bind(self.path, f"{PLUGINS}/{self.name}")


class _Manifest(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    name: str
    version: str


class _Kept(BaseModel):
    digest: str


def read_plugin(directory: Path) -> tuple[tuple[PluginFile, ...], tuple[PluginFault, ...]]:
    """Read every file of a plugin, in the order of names. What is neither file nor directory is a fault."""
    files: list[PluginFile] = []
    faults: list[PluginFault] = []
    if directory.is_symlink() or not directory.is_dir():
        return (), (PluginFault("", "is no directory", "Name the plugin's own directory, and no link"),)
    left = MAX_BYTES
    for name in _names(directory):
        if len(files) + len(faults) >= MAX_FILES:
            faults.append(PluginFault("", f"holds more than {MAX_FILES:,} files", "Name the plugin's own directory"))
            break
        try:
            if (directory / name).lstat().st_size > left:
                faults.append(PluginFault("", f"holds more than {MAX_BYTES >> 20} MiB", "Leave out what is large"))
                break
            files.append(_read(directory, name, left))
            left -= len(files[-1].data)
        except (UnsafeFile, OSError) as error:
            faults.append(PluginFault(name, _reason(error, name), "A plugin holds regular files only"))
    return tuple(files), tuple(faults)


def _names(directory: Path) -> Iterator[str]:
    """Yield the paths of all that is no readable directory, links to directories included, in order."""
    unreadable: list[str] = []
    for top, inner, names in os.walk(directory, onerror=lambda error: unreadable.append(str(error.filename))):
        inner[:] = sorted(name for name in inner if name != _PASSED_OVER)
        links = [name for name in inner if (Path(top) / name).is_symlink()]
        yield from (
            str((Path(top) / name).relative_to(directory)) for name in sorted({*names, *links} - {_PASSED_OVER})
        )
    yield from (str(Path(name).relative_to(directory)) for name in sorted(unreadable))


def _read(root: Path, name: str, limit: int) -> PluginFile:
    if not name.isprintable():
        raise UnsafeFile("the name holds control characters or is not UTF-8")
    data = read_untrusted(root, name, limit)
    return PluginFile(name, os.access(root / name, os.X_OK, follow_symlinks=False), data)


def _reason(error: UnsafeFile | OSError, name: str) -> str:
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror}"
    return str(error).removeprefix(f"{name}: ")


def identify(files: tuple[PluginFile, ...], version: str) -> tuple[str, tuple[PluginFault, ...]]:
    """Return the name that a plugin's manifest gives it, and what of the manifest is at fault or disagrees."""
    data = next((file.data for file in files if file.name == MANIFEST), None)
    if data is None:
        return "", (PluginFault(MANIFEST, "is missing", "Name the directory that holds `.claude-plugin/`"),)
    try:
        manifest = _Manifest.model_validate(json.loads(data))
    except (ValueError, RecursionError) as error:
        return "", (
            PluginFault(MANIFEST, f"is no manifest: {_told(error)}", "It needs the texts `name` and `version`"),
        )
    faults = []
    if not SLUG.match(manifest.name):
        message = f"names the plugin {manifest.name[:80]!r}, which is no slug"
        faults.append(PluginFault(MANIFEST, message, "Use a-z, 0-9, _, . and -"))
    if manifest.version != version:
        message = f"says version {manifest.version[:80]!r}, and {version!r} was asked for"
        faults.append(PluginFault(MANIFEST, message, "Give the version that is there in --wfbench-plugin-version"))
    return manifest.name, tuple(faults)


def _told(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return ": ".join([*map(str, first["loc"]), first["msg"]])
    return "not JSON"


def plugin_digest(files: tuple[PluginFile, ...]) -> str:
    """Return the digest of names, modes and bytes, wherever the plugin lies."""
    return digest_tree((f"{'x' if file.runs else '-'} {file.name}", file.data) for file in files)


def skills_of(files: tuple[PluginFile, ...]) -> tuple[str, ...]:
    """Return the skills of a plugin: the directories of ``skills/`` that hold a ``SKILL.md``, sorted."""
    parts = (file.name.split("/") for file in files)
    return tuple(sorted(part[1] for part in parts if len(part) == 3 and (part[0], part[2]) == (SKILLS, "SKILL.md")))


def keep_plugin(
    files: tuple[PluginFile, ...], name: str, version: str, shelf: Path, identity: Identity
) -> ExternalPlugin:
    """Put a plugin on the shelf, by its digest, for the sandbox's identity, unless it is there and as it was.

    Raises:
        OSError: when it cannot be written.
    """
    digest = plugin_digest(files)
    key = digest.removeprefix("sha256:")[:32]

    def make(staged: Path) -> _Kept:
        for file in files:
            place = staged / _TREE / file.name
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
            place.write_bytes(file.data)
            place.chmod(0o555 if file.runs else 0o444)
        for path in (staged, *staged.rglob("*")):
            identity.own(path)
        return _Kept(digest=digest)

    place, _ = fetch(shelf, key, _Kept, make)
    if plugin_digest(read_plugin(place / _TREE)[0]) != digest:
        remove_tree(place)
        place, _ = fetch(shelf, key, _Kept, make)
    return ExternalPlugin(name=name, version=version, digest=digest, path=place / _TREE, skills=skills_of(files))
