"""The cassettes of replayed subjects: where they lie, and that each session of each cell has its script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pytest_wfbench.agents.registry import get_agent
from pytest_wfbench.gateway.api import Labels
from pytest_wfbench.gateway.cassette import CassetteError, CassetteSet, load_cassettes
from pytest_wfbench.matrix.cells import Cell
from pytest_wfbench.matrix.problems import Problem
from pytest_wfbench.matrix.subject import Subject
from pytest_wfbench.scoring.judge import SESSION

CASSETTES = "cassettes"


def find_cassettes(
    files: Sequence[Path], directory: Path, subjects: Sequence[Subject]
) -> tuple[dict[str, Path], list[Problem]]:
    """Return the script directory of each replayed model."""
    found: dict[str, Path] = {}
    problems: list[Problem] = []
    for subject in subjects:
        if not subject.cassette or not get_agent(subject.agent).uses_model:
            continue
        place = next((path for path in places_of(subject.cassette, files, directory) if path.is_dir()), None)
        if place is None:
            message = f"no cassette directory {CASSETTES}/{subject.cassette} beside the case files"
            problems.append(Problem(str(subject), 0, "", "", message, "Record one, or name another subject"))
        else:
            found[subject.model] = place
    return found, problems


def places_of(name: str, files: Sequence[Path], directory: Path) -> Iterator[Path]:
    """Yield where cassettes may lie: beside the case files or above them, or at a path from ``directory``."""
    for file in files:
        above = [path for path in file.parents if path.is_relative_to(directory)] or [file.parent]
        yield from (path / CASSETTES / name for path in above)
    yield directory / name


def load_scripts(places: Mapping[str, Path]) -> tuple[dict[str, CassetteSet], list[Problem]]:
    """Read the scripts of each replayed model."""
    read: dict[str, CassetteSet] = {}
    problems: list[Problem] = []
    for model, place in places.items():
        try:
            read[model] = load_cassettes(place)
        except CassetteError as error:
            problems.extend(error.problems)
    return read, problems


def uncovered(scripts: Mapping[str, CassetteSet], cells: Iterator[Cell]) -> Iterator[Problem]:
    """Yield a problem for every session of a cell that no script, or more than one, fits."""
    for cell in cells:
        cassettes = scripts.get(cell.subject.model)
        if cassettes is not None:
            for session in cell.arm.sessions:
                yield from _unfit(cassettes, cell, session.name)


def unjudgeable(scripts: Mapping[str, CassetteSet], judge: str, cells: Iterator[Cell]) -> Iterator[Problem]:
    """Yield a problem for every cell with a rubric that no script of a replayed judge, or more than one, fits."""
    if (cassettes := scripts.get(judge)) is None:
        return
    for cell in cells:
        if cell.task.rubric:
            yield from _unfit(cassettes, cell, SESSION)


def _unfit(cassettes: CassetteSet, cell: Cell, session: str) -> Iterator[Problem]:
    try:
        cassettes.find(labels_of(cell, session))
    except CassetteError as error:
        yield from error.problems


def labels_of(cell: Cell, session: str) -> Labels:
    """Return what a cassette matches on."""
    return Labels(
        task=cell.task.id,
        variation=cell.variation,
        arm=cell.arm.name,
        session=session,
        run=cell.run,
        agent=cell.subject.agent,
    )
