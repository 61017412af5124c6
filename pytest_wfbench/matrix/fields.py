"""What fields are made of: texts, slugs, paths, durations and sizes, as a person writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError, ValidationInfo
from pydantic_core import InitErrorDetails

SLUG = re.compile(r"[a-z0-9][a-z0-9_.-]{0,79}\Z")
TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}\Z")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,79}\Z")
DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(s|m|h)\Z")
SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)(B|KiB|MiB|GiB)\Z")
SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
MAX_SECONDS = 1000 * 3600.0
MAX_SIZE = 1 << 50
MAX_PATH, MAX_NAME = 1024, 255

# Marks that mean something to pytest, and words of its -m expressions.
RESERVED_TAGS = frozenset(
    {"and", "or", "not", "skip", "skipif", "xfail", "usefixtures", "parametrize", "filterwarnings", "wfbench"}
)

# The context of a validation whose values were written by a person: durations need their unit then.
BY_HAND = "written by hand"

Location = tuple[str | int, ...]
Model = TypeVar("Model", bound=BaseModel)


class Frozen(BaseModel):
    """Base of every model of what is asked for: immutable, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, serialize_by_alias=True)


def _seconds(value: Any, info: ValidationInfo) -> Any:
    match = DURATION.match(value) if isinstance(value, str) else None
    if match:
        number = float(match[1]) * SECONDS[match[2]]
    elif isinstance(value, float) and info.context != BY_HAND:
        number = value
    else:
        raise ValueError("not a duration: write 90s, 20m or 2h")
    if not 0 < number <= MAX_SECONDS:
        raise ValueError("not a possible duration: write more than 0s and at most 1000h")
    return number


def _bytes(value: Any) -> Any:
    match = SIZE.match(value) if isinstance(value, str) else None
    if match:
        number = int(float(match[1]) * BYTES[match[2]])
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    else:
        raise ValueError("not a size: write 512MiB or 8GiB")
    if not 0 < number <= MAX_SIZE:
        raise ValueError("not a possible size: write at least 1B and at most 1048576GiB")
    return number


def _inside(value: str) -> str:
    path = PurePosixPath(value)
    normal = str(path)
    if not path.parts or path.is_absolute() or ".." in path.parts or normal.startswith("~"):
        raise ValueError("the path leaves its root: write a relative path without ..")
    if not value.isprintable() or value != value.strip() or normal != normal.strip():
        raise ValueError("the path holds control characters or white space at an end: write a plain path")
    if len(value.encode()) > MAX_PATH or any(len(part.encode()) > MAX_NAME for part in path.parts):
        raise ValueError(f"the path is too long: write at most {MAX_PATH} bytes, {MAX_NAME} a name")
    return normal


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be blank")
    return value


def _slug(value: str) -> str:
    if not SLUG.match(value):
        raise ValueError("not a slug: use at most 80 of a-z, 0-9, _, . and -, starting with a letter or digit")
    return value


def _tag(value: str) -> str:
    if not TAG.match(value):
        raise ValueError("not a tag: use at most 80 letters, digits, _ and -, starting with a letter or digit")
    if value in RESERVED_TAGS:
        raise ValueError("the tag means something to pytest itself: choose another word")
    return value


def _variable(value: str) -> str:
    if not VARIABLE.match(value):
        raise ValueError("not a variable's name: use letters, digits and _")
    return value


def items(value: Any) -> Any:
    """Return a YAML list as the tuple a frozen model holds."""
    return tuple(value) if isinstance(value, list) else value


Slug = Annotated[str, AfterValidator(_slug)]
Tag = Annotated[str, AfterValidator(_tag)]
Variable = Annotated[str, AfterValidator(_variable)]
Seconds = Annotated[float, BeforeValidator(_seconds)]
Size = Annotated[int, BeforeValidator(_bytes)]
InsidePath = Annotated[str, AfterValidator(_inside)]
Text = Annotated[str, AfterValidator(_text)]
Texts = Annotated[tuple[Text, ...], BeforeValidator(items)]
Tags = Annotated[tuple[Tag, ...], BeforeValidator(items)]
Paths = Annotated[tuple[InsidePath, ...], BeforeValidator(items)]

Rules = Callable[[Mapping[str, Any]], Iterator[tuple[Location, str]]]


def with_rules(value: Any, build: Callable[[Any], Model], rules: Rules) -> Model:
    """Build a model and apply its rules between fields, so that faults of both kinds are raised together.

    Args:
        value: the plain mapping; anything else goes to ``build`` alone.
        build: validates the fields.
        rules: yields (where, ``what: remedy``) for each rule that the plain mapping breaks. It must bear values of any
            type, and leave those alone that ``build`` refuses.
    """
    faults: list[InitErrorDetails] = []
    built: Model | None = None
    try:
        built = build(value)
    except ValidationError as error:
        faults.extend(_again(error))
    if isinstance(value, Mapping):
        for where, message in rules(value):
            faults.append(_fault(where, value, message))
    if faults or built is None:
        raise ValidationError.from_exception_data("fields and rules", faults)
    return built


def _fault(where: Location, value: Any, message: str) -> InitErrorDetails:
    return InitErrorDetails(type="value_error", loc=where, input=value, ctx={"error": ValueError(message)})


def _again(error: ValidationError) -> Iterator[InitErrorDetails]:
    for detail in error.errors():
        again = InitErrorDetails(type=detail["type"], loc=detail["loc"], input=detail["input"])
        if "ctx" in detail:
            again["ctx"] = detail["ctx"]
        yield again
