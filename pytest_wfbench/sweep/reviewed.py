"""Review tasks, proven before anything is spent: the change applies, and every label names lines that are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Protocol

from pytest_wfbench.files import UnsafeFile, read_untrusted
from pytest_wfbench.matrix.load import LoadedTask
from pytest_wfbench.matrix.problems import Problem, shown_path
from pytest_wfbench.matrix.yamldoc import BadYaml, read_yaml
from pytest_wfbench.sandbox.choice import make_sandbox
from pytest_wfbench.sandbox.identity import choose_identity, shelves
from pytest_wfbench.sandbox.spec import SandboxName
from pytest_wfbench.scoring.labels import InvalidLabels, Label, Labels, read_labels
from pytest_wfbench.sweep.context import bounds_of
from pytest_wfbench.sweep.scratch import scratch_directory
from pytest_wfbench.workspace.ground import survey
from pytest_wfbench.workspace.overlay import stacked
from pytest_wfbench.workspace.startstate import SetupFailed, StartState, make_start
from pytest_wfbench.workspace.template import Template

LARGEST_FILE = 64 << 20
FORMAT = "See the format of labels in docs/reviews.md"


class Patched(Protocol):
    """Makes the state of a repository with a change applied."""

    def __call__(self, *, patch: bytes) -> StartState:
        """Return it. Raises SetupFailed."""
        ...


def review_problems(
    tasks: Sequence[LoadedTask], templates: Mapping[str, Template], name: SandboxName
) -> Iterator[Problem]:
    """Yield what is wrong with changes and labels; the changes are applied to the repositories as they are.

    ``setup`` is not run for it: what it takes belongs to a cell.
    """
    reviews = [loaded for loaded in tasks if loaded.task.id in templates and loaded.task.kind == "review"]
    if not reviews:
        return
    sandbox, identity = make_sandbox(name), choose_identity()
    with scratch_directory(identity) as scratch:
        copies = survey(sandbox, scratch, identity).copies
    for loaded in reviews:
        patched = partial(
            make_start,
            templates[loaded.task.id],
            bounds=bounds_of(loaded.task.limits),
            sandbox=sandbox,
            identity=identity,
            cache=shelves(identity, name),
            copies=copies,
        )
        yield from review_faults(loaded, patched)


def review_faults(loaded: LoadedTask, patched: Patched) -> Iterator[Problem]:
    """Yield what is wrong with one task's change and labels; ``patched`` makes the state with a change applied."""
    labels, problems = _labels(loaded)
    yield from problems
    if loaded.hidden.patch is None:
        return
    try:
        start = patched(patch=loaded.hidden.patch.data)
    except SetupFailed as error:
        told = " ".join(str(error).split())
        yield loaded.problem("patch", f"{loaded.hidden.patch.name}: {told}", "Make it against the task's repository")
        return
    for index, label in enumerate(labels.findings if labels else ()):
        if found := _absent(label, start):
            yield _at_label(loaded, ("findings", index, found[0]), *found[1:])


def _labels(loaded: LoadedTask) -> tuple[Labels | None, list[Problem]]:
    if loaded.hidden.labels is None:
        return None, []
    try:
        return read_labels(loaded.hidden.labels.data), []
    except InvalidLabels as error:
        return None, [_at_label(loaded, where, message, FORMAT) for where, message in error.faults]


def _at_label(loaded: LoadedTask, where: tuple[str | int, ...], message: str, remedy: str) -> Problem:
    """Return a fault of the label file, with the line on which the faulty key stands."""
    labels, root = loaded.hidden.labels, loaded.oracle_root
    if labels is None or root is None:
        return loaded.problem("labels", message, remedy)
    try:
        line = read_yaml(labels.data).line(where)
    except BadYaml as error:
        line = error.line
    key = ".".join(map(str, where))
    return Problem(shown_path(root / labels.name), line, loaded.task.id, key, message, remedy)


def _absent(label: Label, start: StartState) -> tuple[str, str, str] | None:
    """Return the key, the fault and the remedy of a label that names what is not in the state."""
    try:
        lines = _count_lines(start, label.path)
    except (UnsafeFile, OSError):
        lines = None
    if lines is None:
        message = f"{label.path!r} is no file of the repository with the change applied"
        return "path", message, "Name a file that is there after the change"
    if label.line_end <= lines:
        return None
    key = "line_start" if label.line_start > lines else "line_end"
    line = getattr(label, key)
    return key, f"line {line} is beyond the {lines:,} lines of {label.path}", "Count in the file after the change"


def _count_lines(start: StartState, name: str) -> int | None:
    """Return how many lines a file has in a stack of layers, or none where it is no regular file there."""
    path = PurePosixPath(name)
    for directory in reversed(stacked(start.layers, str(path.parent))):
        place = Path(directory) / path.name
        if not place.is_symlink() and not place.exists():
            continue
        data = read_untrusted(directory, path.name, LARGEST_FILE)
        return data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    return None
