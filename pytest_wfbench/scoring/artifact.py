"""``review-output.json``: what a review found, read strictly, with a message of its own for each way to be wrong."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from pytest_wfbench.matrix.fields import items

ARTIFACT = "review-output.json"
ARTIFACT_LIMIT = 256 << 10
MOST_FINDINGS = 100

Severity = Literal["critical", "high", "medium", "low"]
Verdict = Literal["approve", "comment", "request_changes"]
WEIGHTS: Mapping[Severity, int] = {"critical": 8, "high": 5, "medium": 2, "low": 1}


def is_blocking(severity: Severity) -> bool:
    """Whether a severity is critical or high; an artifact's own flag says nothing."""
    return severity in ("critical", "high")


class InvalidArtifact(ValueError):
    """A review that is no evidence; the message is one line that says what is wrong with it."""


def _of_bytes(most: int) -> AfterValidator:
    def check(value: str) -> str:
        if not value.strip():
            raise ValueError("is blank")
        if len(value.encode("utf-8", "surrogatepass")) > most:
            raise ValueError(f"is longer than {most} bytes")
        return value

    return AfterValidator(check)


def _relative(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    path = value.replace("\\", "/")
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts or path[1:2] == ":":
        raise ValueError("is not relative to the repository")
    return path


Name = Annotated[str, _of_bytes(128)]
Prose = Annotated[str, _of_bytes(4096)]
RelativePath = Annotated[str, BeforeValidator(_relative), _of_bytes(512)]
Line = Annotated[int, Field(ge=1)]


class Strict(BaseModel):
    """Exactly the keys it names, of exactly their types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Finding(Strict):
    """One thing the review found; lines are inclusive."""

    id: Name
    severity: Severity
    path: RelativePath
    line: Line
    end_line: Line
    category: Name
    scenario: Prose
    evidence: Prose
    recommendation: Prose
    blocking: bool

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.end_line < self.line:
            raise ValueError("end_line lies before line")
        return self


class Artifact(Strict):
    """A whole review."""

    schema_version: Literal[1]
    verdict: Verdict
    findings: Annotated[tuple[Finding, ...], BeforeValidator(items)] = Field(max_length=MOST_FINDINGS)

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        if len({finding.id for finding in self.findings}) < len(self.findings):
            raise ValueError("two findings have the same id")
        if self.verdict == "approve" and self.findings:
            raise ValueError("the verdict is approve, but there are findings")
        if self.verdict == "request_changes" and not any(finding.blocking for finding in self.findings):
            raise ValueError("the verdict is request_changes, but no finding is blocking")
        return self


def read_artifact(data: bytes | None) -> Artifact:
    """Return a review from the bytes of its file; none where it was never written.

    Raises:
        InvalidArtifact: when it is anything but a whole, coherent review.
    """
    if data is None:
        raise InvalidArtifact(f"{ARTIFACT} was never written")
    if not data.strip():
        raise InvalidArtifact(f"{ARTIFACT} is empty")
    if len(data) > ARTIFACT_LIMIT:
        raise InvalidArtifact(f"{ARTIFACT} has {len(data):,} bytes: more than 256 KiB")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InvalidArtifact(f"{ARTIFACT} is not UTF-8: byte {error.start}") from None
    return _shaped(_json(text))


def _json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_no_number)
    except RecursionError:
        raise InvalidArtifact(f"{ARTIFACT} is not JSON: nested too deeply") from None
    except json.JSONDecodeError as error:
        raise InvalidArtifact(f"{ARTIFACT} is not JSON: {error.msg} in line {error.lineno}") from None
    except ValueError as error:
        raise InvalidArtifact(f"{ARTIFACT} has the wrong shape: {error}") from None


def _without_repeats(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key[:60]!r} is there twice")
        found[key] = value
    return found


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _shaped(value: Any) -> Artifact:
    if not isinstance(value, dict):
        raise InvalidArtifact(f"{ARTIFACT} has the wrong shape: not an object")
    findings = value.get("findings")
    if isinstance(findings, list) and len(findings) > MOST_FINDINGS:
        raise InvalidArtifact(f"{ARTIFACT} has {len(findings):,} findings: more than {MOST_FINDINGS}")
    try:
        return Artifact.model_validate(value)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part)[:60] for part in fault["loc"])
        said = fault["msg"].removeprefix("Value error, ")
        raise InvalidArtifact(f"{ARTIFACT} has the wrong shape: {where + ': ' if where else ''}{said}") from None
