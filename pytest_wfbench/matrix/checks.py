"""What an answer is checked for without a judge, as a case file writes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import regex
from pydantic import AfterValidator, BeforeValidator, Field, ModelWrapValidatorHandler, model_validator

from pytest_wfbench.matrix.fields import Frozen, InsidePath, Location, Text, with_rules
from pytest_wfbench.matrix.jsonpath import BadPath, read_path

PATTERN = 4096
LARGEST = 1e15
# What a check looks for, and the keys that say more of it.
SUBJECTS: Mapping[str, tuple[str, ...]] = {
    "contains": (),
    "regex": (),
    "json_path": ("equals",),
    "number": (),
    "tool_used": (),
    "file": ("min_bytes",),
}


def _pattern(value: str) -> str:
    if len(value) > PATTERN:
        raise ValueError(f"the pattern is too long: write at most {PATTERN} characters")
    try:
        regex.compile(value)
    except (regex.error, OverflowError, RecursionError) as error:
        raise ValueError(f"not a regular expression ({error}): mend it") from None
    return value


def _path(value: str) -> str:
    try:
        read_path(value)
    except BadPath as error:
        raise ValueError(
            f"not a path that is known ({error}): write $.name, ['name'], [0], [-1] or [*] steps"
        ) from None
    return value


def _decimal(value: Any) -> Any:
    """A whole number is a number too."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


Decimal_ = Annotated[float, BeforeValidator(_decimal), Field(ge=-LARGEST, le=LARGEST)]


class Number(Frozen):
    """A number that the answer states, give or take ``tolerance``."""

    value: Decimal_
    tolerance: Annotated[float, BeforeValidator(_decimal), Field(ge=0, le=LARGEST)] = 0.0


class Check(Frozen):
    """One thing that an answer must have, or with ``not`` must not.

    Exactly one of ``contains``, ``regex``, ``json_path``, ``number``, ``tool_used`` and ``file`` is set. ``min_bytes``
    is the least size of the file. A ``json_path`` without ``equals`` only has to lead somewhere.
    """

    contains: Text | None = None
    regex: Annotated[Text, AfterValidator(_pattern)] | None = None
    json_path: Annotated[Text, AfterValidator(_path)] | None = None
    equals: Any = None
    number: Number | None = None
    tool_used: Text | None = None
    file: InsidePath | None = None
    min_bytes: int = Field(1, ge=0, le=1 << 40)
    not_: bool = Field(False, alias="not")

    @property
    def subject(self) -> str:
        """The key that says what is looked for."""
        return next(name for name in SUBJECTS if getattr(self, name) is not None)

    @model_validator(mode="wrap")
    @classmethod
    def _with_rules(cls, value: Any, build: ModelWrapValidatorHandler[Check]) -> Check:
        return with_rules(value, build, _check_rules)


def _check_rules(raw: Mapping[str, Any]) -> Iterator[tuple[Location, str]]:
    given = [name for name in SUBJECTS if raw.get(name) is not None]
    if not given:
        yield (), f"the check looks for nothing: write one of {', '.join(SUBJECTS)}"
    elif len(given) > 1:
        yield (), f"the check looks for {' and '.join(given)} at once: write one check for each"
    for subject, keys in SUBJECTS.items():
        for key in keys:
            if raw.get(key) not in (None, Check.model_fields[key].default) and given and subject not in given:
                yield (key,), f"{key} says nothing about {given[0]}: it belongs to {subject}"
