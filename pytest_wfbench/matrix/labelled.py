"""Answers that people have labelled, read for the calibration of a judge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, ValidationError, field_validator

from pytest_wfbench.files import UnsafeFile, read_untrusted
from pytest_wfbench.matrix.faults import problem_of_yaml, problems_of, yaml_problems
from pytest_wfbench.matrix.fields import BY_HAND, Frozen, Slug, Text, items
from pytest_wfbench.matrix.problems import InvalidCases, Problem, shown_path
from pytest_wfbench.matrix.yamldoc import BadYaml, read_yaml

LIMIT = 4 << 20
MOST = 2000


class Labelled(Frozen):
    """One answer to a question, and what people say of it."""

    id: Slug
    prompt: Text
    rubric: Text
    answer: Text
    label: Literal["pass", "fail"]


class LabelledFile(Frozen):
    """A whole file: labels of both kinds, or there is nothing to measure."""

    PAGE: ClassVar[str] = "docs/smoke.md"

    answers: Annotated[tuple[Labelled, ...], BeforeValidator(items)] = Field(min_length=1, max_length=MOST)

    @field_validator("answers")
    @classmethod
    def _telling(cls, value: tuple[Labelled, ...]) -> tuple[Labelled, ...]:
        if len({answer.id for answer in value}) < len(value):
            raise ValueError("an id is used twice: rename one of them")
        if len(labels := {answer.label for answer in value}) == 1:
            (only,) = labels
            raise ValueError(f"every answer is labelled {only}, so chance cannot be told: add some of the other label")
        return value


def read_labelled(path: Path) -> tuple[Labelled, ...]:
    """Read a file of labelled answers.

    Raises:
        InvalidCases: with every fault of it.
    """
    shown = shown_path(path)
    try:
        document = read_yaml(read_untrusted(path.parent, path.name, LIMIT))
    except BadYaml as error:
        raise InvalidCases([problem_of_yaml(error, shown)]) from None
    except (UnsafeFile, OSError) as error:
        told = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        raise InvalidCases([Problem(shown, 0, "", "", told, "Name a regular file of at most 4 MiB")]) from None
    if faults := list(yaml_problems(document, shown)):
        raise InvalidCases(faults)
    try:
        return LabelledFile.model_validate(document.value, context=BY_HAND).answers
    except ValidationError as error:
        raise InvalidCases(list(problems_of(error, LabelledFile, document, (), shown, ""))) from None
