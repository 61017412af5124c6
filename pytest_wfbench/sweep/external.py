"""The external plugin of a sweep, if one is given: read, checked against its manifest, and kept, before any spend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_wfbench.files import user_path
from pytest_wfbench.matrix.load import LoadedTask
from pytest_wfbench.matrix.problems import Problem, shown_path
from pytest_wfbench.options import Options
from pytest_wfbench.sandbox.identity import choose_identity, shelves
from pytest_wfbench.sweep.places import hidden_places, touching
from pytest_wfbench.sweep.plan import sandbox_name
from pytest_wfbench.workspace.external import (
    ExternalPlugin,
    PluginFault,
    PluginFile,
    identify,
    keep_plugin,
    read_plugin,
    skills_of,
)

DIRECTORY, VERSION = "--wfbench-plugin-dir", "--wfbench-plugin-version"


@dataclass(frozen=True)
class FoundPlugin:
    """A plugin that was read and agrees with its manifest; ``place`` is where it lies."""

    place: Path
    name: str
    version: str
    files: tuple[PluginFile, ...]

    @property
    def skills(self) -> tuple[str, ...]:
        """The skills that it has."""
        return skills_of(self.files)


def find_plugin(options: Options, directory: Path) -> tuple[FoundPlugin | None, list[Problem]]:
    """Read the plugin that was asked for, or return none and why, if one was."""
    if not options.plugin_dir or options.plugin_version is None:
        return None, list(_half_given(options))
    place = user_path(options.plugin_dir, directory)
    files, faults = read_plugin(place)
    name, more = identify(files, options.plugin_version) if files else ("", ())
    problems = [_problem(place, fault) for fault in (*faults, *more)]
    return None if problems else FoundPlugin(place, name, options.plugin_version, files), problems


def kept_plugin(
    found: FoundPlugin | None, options: Options, tasks: Sequence[LoadedTask], apart: Iterable[Path]
) -> tuple[ExternalPlugin | None, list[Problem]]:
    """Keep a plugin where sandboxes can have it, or return none and why, if there is one.

    ``apart`` are places that no sandbox may show: a plugin must not hold one or lie in one, nor a case file or oracle.
    """
    if found is None:
        return None, []
    if (told := touching(found.place, hidden_places(tasks, apart))) is not None:
        message = f"{shown_path(found.place)} {told}, which is to be hidden"
        return None, [Problem(DIRECTORY, 0, "", "", message, "Name a directory that holds the plugin alone")]
    identity = choose_identity()
    try:
        shelf = shelves(identity, sandbox_name(options)) / "plugins"
        return keep_plugin(found.files, found.name, found.version, shelf, identity), []
    except OSError as error:
        remedy = "Free some space in the cache directory, or name another in WFBENCH_CACHE_DIR"
        return None, [Problem(DIRECTORY, 0, "", "", f"cannot be kept: {error}", remedy)]


def _half_given(options: Options) -> Iterator[Problem]:
    if options.plugin_dir:
        yield Problem(DIRECTORY, 0, "", "", f"needs {VERSION} beside it", "Give the version that its manifest has")
    if options.plugin_version is not None:
        yield Problem(VERSION, 0, "", "", f"needs {DIRECTORY} beside it", "Name the plugin's directory")


def _problem(place: Path, fault: PluginFault) -> Problem:
    shown = shown_path(place)
    return Problem(shown, 0, "", fault.name, fault.message, fault.remedy)
