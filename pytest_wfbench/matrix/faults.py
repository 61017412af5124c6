"""pydantic's errors as problems a user can act on."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pytest_wfbench.matrix.problems import Problem
from pytest_wfbench.matrix.yamldoc import BadYaml, Document, Path_

PAGE = "docs/tasks.md"
SHOWN = 60

Explained = tuple[str, str]


def rules_of(model: type[BaseModel]) -> str:
    """Return the remedy where only a field's rule helps; a model that is not of a task names its ``PAGE``."""
    return f"See the field's rule in {getattr(model, 'PAGE', PAGE)}"


def known_keys(model: type[BaseModel]) -> list[str]:
    """Return the keys a model accepts, as they are written."""
    return [field.alias or name for name, field in model.model_fields.items()]


def unknown_key(key: object, keys: Iterable[str]) -> Explained:
    """Return what is wrong with a key that is none of those known, and the remedy."""
    known = list(keys)
    close = difflib.get_close_matches(str(key)[:SHOWN], known, n=1)
    remedy = f"Did you mean {close[0]}?" if close else f"Known keys: {', '.join(known)}" if known else "Remove it"
    return f"unknown key {shown(key)}", remedy


def _model_at(annotation: object, location: Path_) -> type[BaseModel] | None:
    """Return the model that stands at a location below an annotation, or none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _model_below(annotation, location)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (dict, tuple) and arguments:
        return _model_at(arguments[-1] if origin is dict else arguments[0], location[1:]) if location else None
    return next((found for inner in arguments if (found := _model_at(inner, location))), None)


def _model_below(model: type[BaseModel], location: Path_) -> type[BaseModel] | None:
    if not location:
        return model
    field = next((f for name, f in model.model_fields.items() if location[0] == (f.alias or name)), None)
    return _model_at(field.annotation, location[1:]) if field else None


def _extra(model: type[BaseModel], error: ErrorDetails) -> Explained:
    parent = _model_at(model, error["loc"][:-1])
    return unknown_key(error["loc"][-1], known_keys(parent) if parent else [])


def _missing(model: type[BaseModel], error: ErrorDetails) -> Explained:
    return f"required key {error['loc'][-1]!r} is missing", f"Add it. {rules_of(model)}"


def _value(model: type[BaseModel], error: ErrorDetails) -> Explained:
    head, _, remedy = error["msg"].removeprefix("Value error, ").partition(": ")
    given = error["input"]
    short = isinstance(given, int | float | str) and len(str(given)) <= SHOWN
    found = f", found {shown(given)}" if short and (not given or str(given) not in head) else ""
    return head + found, remedy[:1].upper() + remedy[1:] if remedy else rules_of(model)


def _text(model: type[BaseModel], error: ErrorDetails) -> Explained:
    given = error["input"]
    quoting = isinstance(given, bool | int | float)
    return f"must be a text, found {shown(given)}", "Put it in quotes" if quoting else rules_of(model)


def _literal(model: type[BaseModel], error: ErrorDetails) -> Explained:
    known = [word.strip("'") for word in error["ctx"]["expected"].replace(" or ", ", ").split(", ")]
    close = difflib.get_close_matches(str(error["input"])[:SHOWN], known, n=1)
    words = ", ".join(known)
    return f"must be one of {words}, found {shown(error['input'])}", f"Did you mean {close[0]}?" if close else rules_of(
        model
    )


def _number(words: str, bound: str) -> Callable[[type[BaseModel], ErrorDetails], Explained]:
    return lambda model, error: (
        f"must be {words} {error['ctx'][bound]}, found {shown(error['input'])}",
        rules_of(model),
    )


def _wrong(what: str, remedy: str | None = None) -> Callable[[type[BaseModel], ErrorDetails], Explained]:
    return lambda model, error: (f"must be {what}, found {shown(error['input'])}", remedy or rules_of(model))


def _count(number: int) -> str:
    return "one item" if number == 1 else f"{number} items"


def _short(model: type[BaseModel], error: ErrorDetails) -> Explained:
    return f"must have at least {_count(error['ctx']['min_length'])}, found {error['ctx']['actual_length']}", rules_of(
        model
    )


def _long(model: type[BaseModel], error: ErrorDetails) -> Explained:
    context = error["ctx"]
    return f"must have at most {_count(context['max_length'])}, found {context['actual_length'] or 'more'}", rules_of(
        model
    )


_MAPPING = _wrong("a mapping", "Write `key: value` pairs")

EXPLAIN: Mapping[str, Callable[[type[BaseModel], ErrorDetails], Explained]] = {
    "extra_forbidden": _extra,
    "missing": _missing,
    "value_error": _value,
    "string_type": _text,
    "literal_error": _literal,
    "bool_type": _wrong("true or false", "Write true or false"),
    "int_type": _wrong("a whole number"),
    "float_type": _wrong("a number"),
    "tuple_type": _wrong("a list", "Write `- …` lines, or [a, b]"),
    "dict_type": _MAPPING,
    "model_type": _MAPPING,
    "model_attributes_type": _MAPPING,
    "greater_than_equal": _number("at least", "ge"),
    "less_than_equal": _number("at most", "le"),
    "too_short": _short,
    "too_long": _long,
}


def _other(model: type[BaseModel], error: ErrorDetails) -> Explained:
    message = error["msg"]
    return f"{message[:1].lower()}{message[1:]}, found {shown(error['input'])}", rules_of(model)


def shown(value: object) -> str:
    """Return a value as it is written in YAML, short enough for a line."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return repr(value if len(value) <= SHOWN else value[: SHOWN - 1] + "…")
    if isinstance(value, int | float):
        return str(value)
    return "a mapping" if isinstance(value, Mapping) else "a list" if isinstance(value, list | tuple) else "neither"


def _follows(detail: ErrorDetails, all_of_them: list[ErrorDetails]) -> bool:
    """Whether an error only says that a list lacks the items that are at fault themselves."""
    where = detail["loc"]
    return detail["type"] == "too_short" and any(
        len(other["loc"]) > len(where) and other["loc"][: len(where)] == where for other in all_of_them
    )


def explained(error: ValidationError, model: type[BaseModel]) -> Iterator[tuple[Path_, str, str]]:
    """Yield (where, what, remedy) of each fault; one that only follows from another is left out."""
    details = error.errors()
    for detail in details:
        if not _follows(detail, details):
            # pydantic marks a fault of a mapping's key, as opposed to its value, by a part of its own.
            where = tuple(part for part in detail["loc"] if part != "[key]")
            yield where, *EXPLAIN.get(detail["type"], _other)(model, detail)


def problems_of(
    error: ValidationError, model: type[BaseModel], document: Document, base: Path_, file: str, task: str
) -> Iterator[Problem]:
    """Turn a validation error of the value at ``base`` into problems with lines and remedies."""
    for where, message, remedy in explained(error, model):
        key = ".".join(str(part) for part in where)
        yield Problem(file, document.line((*base, *where)), task, key, message, remedy)


def problem_of_yaml(error: BadYaml, file: str) -> Problem:
    """Turn a parse error into a problem."""
    return Problem(file, error.line, "", error.key, error.message, error.remedy)


def yaml_problems(document: Document, file: str) -> Iterator[Problem]:
    """Yield a problem for every value of a readable document that is none of ours: keys set twice, tags, merge keys."""
    for path, line, message, remedy in document.faults:
        yield Problem(file, line, "", ".".join(str(part) for part in path), message, remedy)
