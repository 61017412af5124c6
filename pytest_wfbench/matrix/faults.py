"""pydantic's errors as problems a user can act on."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pytest_wfbench.matrix.problems import Problem
from pytest_wfbench.matrix.yamldoc import BadYaml, Document, Path_


def known_keys(model: type[BaseModel]) -> list[str]:
    """Return the keys a model accepts, as they are written."""
    return [field.alias or name for name, field in model.model_fields.items()]


def _submodel(model: type[BaseModel], location: Iterable[str | int]) -> type[BaseModel] | None:
    current: type[BaseModel] | None = model
    for part in location:
        if isinstance(part, int) or current is None:
            continue
        field = next((f for n, f in current.model_fields.items() if part in (n, f.alias)), None)
        current = _model_in(field.annotation) if field else None
    return current


def _model_in(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    arguments = getattr(annotation, "__args__", ())
    return next((found for found in map(_model_in, arguments) if found), None)


def _unknown_key(model: type[BaseModel], location: Path_) -> tuple[str, str]:
    parent = _submodel(model, location[:-1])
    keys = known_keys(parent) if parent else []
    close = difflib.get_close_matches(str(location[-1]), keys, n=1)
    remedy = f"Did you mean {close[0]}?" if close else f"Known keys: {', '.join(keys)}" if keys else "Remove it"
    return f"unknown key {location[-1]!r}", remedy


def _explain(model: type[BaseModel], error: ErrorDetails) -> tuple[str, str]:
    if error["type"] == "extra_forbidden":
        return _unknown_key(model, error["loc"])
    if error["type"] == "missing":
        return f"required key {error['loc'][-1]!r} is missing", "Add it"
    message = error["msg"].removeprefix("Value error, ")
    head, _, remedy = message.partition(": ")
    if remedy and error["type"] == "value_error":
        return head, remedy[0].upper() + remedy[1:]
    given = error.get("input")
    shown = f" (found {given!r})" if isinstance(given, str | int | float | bool | None) else ""
    return message[0].lower() + message[1:] + shown, "See the field's rule in docs/tasks.md"


def problems_of(
    error: ValidationError, model: type[BaseModel], document: Document, base: Path_, file: str, task: str
) -> Iterator[Problem]:
    """Turn a validation error of the value at ``base`` into problems with lines and remedies."""
    for detail in error.errors():
        location = detail["loc"]
        message, remedy = _explain(model, detail)
        key = ".".join(str(part) for part in location)
        yield Problem(file, document.line((*base, *location)), task, key, message, remedy)


def problem_of_yaml(error: BadYaml, file: str) -> Problem:
    """Turn a parse error into a problem."""
    return Problem(file, error.line, "", error.key, error.message, error.remedy)


def repeated_keys(document: Document, file: str) -> Iterator[Problem]:
    """Yield a problem for every key that is set twice."""
    for path, line in document.repeated:
        key = ".".join(str(part) for part in path)
        first = document.line(path)
        yield Problem(file, line, "", key, f"key {path[-1]!r} is set twice (first on line {first})", "Keep one of them")
