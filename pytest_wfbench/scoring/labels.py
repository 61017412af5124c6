"""The hidden labels of a review task: what is really wrong with the change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from pytest_wfbench.matrix.fields import items
from pytest_wfbench.scoring.artifact import Line, Name, RelativePath, Severity, Strict

MOST_LABELS = 100

Where = tuple[str | int, ...]


class InvalidLabels(ValueError):
    """Labels that cannot be scored against; the message is one line with the first key and what is wrong with it.

    ``faults`` are all of them: where, and what.
    """

    def __init__(self, faults: Sequence[tuple[Where, str]]) -> None:
        self.faults = tuple(faults)
        where, said = self.faults[0]
        key = ".".join(map(str, where))
        super().__init__(f"labels: {key + ': ' if key else ''}{said}")


class Label(Strict):
    """One defect; lines are inclusive."""

    id: Name
    severity: Severity
    path: RelativePath
    line_start: Line
    line_end: Line
    category: Name

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.line_end < self.line_start:
            raise ValueError("line_end lies before line_start")
        return self


class Labels(Strict):
    """All defects of a change; none of them makes it a clean control."""

    schema_version: Literal[1]
    findings: Annotated[tuple[Label, ...], BeforeValidator(items)] = Field(max_length=MOST_LABELS)

    @model_validator(mode="after")
    def _unique(self) -> Self:
        if len({label.id for label in self.findings}) < len(self.findings):
            raise ValueError("two labels have the same id")
        return self


def read_labels(data: bytes) -> Labels:
    """Return labels from the bytes of their file.

    Raises:
        InvalidLabels: when they are no JSON, or not exactly labels.
    """
    try:
        return Labels.model_validate_json(data)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        raise InvalidLabels([(fault["loc"], fault["msg"].removeprefix("Value error, ")) for fault in found]) from None
