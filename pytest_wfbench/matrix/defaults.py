"""Limits given for all tasks at once; a task's own value wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import ValidationError

from pytest_wfbench.matrix.faults import explained
from pytest_wfbench.matrix.load import LoadedTask
from pytest_wfbench.matrix.problems import Problem
from pytest_wfbench.matrix.task import Limits

FLAG = "--wfbench-limit-"


def with_limits(
    tasks: Sequence[LoadedTask], given: Mapping[str, str | None]
) -> tuple[tuple[LoadedTask, ...], Sequence[Problem]]:
    """Return the tasks with their effective limits, which are then bound into their digests, and what does not read.

    ``given`` are the fields of ``Limits`` as typed, none for those that were not.
    """
    named = {name: _number(text) for name, text in given.items() if text is not None}
    try:
        defaults = Limits.model_validate(named)
    except ValidationError as error:
        return tuple(tasks), [_problem(str(where[0]), *told) for where, *told in explained(error, Limits)]
    return tuple(_limited(loaded, defaults) for loaded in tasks), []


def _number(text: str) -> str | int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else text


def _problem(name: str, message: str, remedy: str) -> Problem:
    return Problem(FLAG + name.replace("_", "-"), 0, "", "", message, remedy)


def _limited(loaded: LoadedTask, defaults: Limits) -> LoadedTask:
    own = loaded.task.limits
    update = {name: getattr(own, name) for name in own.model_fields_set}
    task = loaded.task.model_copy(update={"limits": defaults.model_copy(update=update)})
    return loaded.model_copy(update={"task": task})
