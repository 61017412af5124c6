"""The files of a task's oracle root: oracle, patches, a review's labels, and the proof of which tests must run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from pytest_wfbench.digests import digest_tree
from pytest_wfbench.files import UnsafeFile, read_untrusted, user_path
from pytest_wfbench.matrix.faults import explained
from pytest_wfbench.matrix.fields import items
from pytest_wfbench.matrix.problems import shown_path
from pytest_wfbench.matrix.task import OracleSpec, Task

ORACLE_BYTES = 4 << 20
PATCH_BYTES = 4 << 20
LABELS_BYTES = 1 << 20
NAMING = ("oracle", "reference", "reference_bad", "patch", "labels")
EXPECT_SUFFIX = ".expect.json"
ROOT_NAME = "oracles"

Where = tuple[str | int, ...]


class Captured(BaseModel):
    """A named file as it was when it was read."""

    model_config = ConfigDict(frozen=True, ser_json_bytes="base64", val_json_bytes="base64")

    name: str
    data: bytes


class Expectation(BaseModel):
    """Which tests passed on the reference, one at least; bound to the oracle's bytes and command."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = 1
    oracle_digest: str
    tests: Annotated[tuple[str, ...], BeforeValidator(items)] = Field(min_length=1)


class HiddenFiles(BaseModel):
    """Everything of a task that no sandbox may see before its time.

    ``patch`` is the change that a review is about, and ``labels`` what is wrong with it.
    """

    model_config = ConfigDict(frozen=True, ser_json_bytes="base64", val_json_bytes="base64")

    oracle: tuple[Captured, ...] = ()
    reference: Captured | None = None
    reference_bad: tuple[Captured, ...] = ()
    expected: Expectation | None = None
    patch: Captured | None = None
    labels: Captured | None = None

    @property
    def deciding(self) -> tuple[Captured, ...]:
        """The files that decide what a cell is worth: those of the oracle, or a review's labels."""
        return (*self.oracle, *([self.labels] if self.labels else []))

    @property
    def oracle_digest(self) -> str:
        """Digest of the names and bytes of the files that decide."""
        return digest_tree((entry.name, entry.data) for entry in self.deciding)


@dataclass(frozen=True)
class HiddenFault:
    """A fault of a hidden file; ``path`` is where it is named in the task."""

    path: Where
    message: str
    remedy: str


def find_oracle_root(case_file: Path, named: object) -> Path:
    """Return the oracle root: as named by the case file, else the nearest ``oracles/`` beside it or above."""
    if isinstance(named, str):
        return user_path(named, case_file.parent)
    for directory in case_file.absolute().parents:
        if (directory / ROOT_NAME).is_dir():
            return directory / ROOT_NAME
        if (directory / ".git").exists():
            break
    return case_file.absolute().parent / ROOT_NAME


def expectation_path(spec: OracleSpec) -> PurePosixPath:
    """Return where the expectation of an oracle lies, relative to the oracle root."""
    return PurePosixPath(spec.files[0].source).with_suffix(EXPECT_SUFFIX)


def read_hidden(task: Task, root: Path) -> tuple[HiddenFiles, list[HiddenFault]]:
    """Capture the hidden files of a task; a file that cannot be had is a fault and is left out."""
    faults: list[HiddenFault] = []
    if not root.is_dir():
        return HiddenFiles(), list(_no_root(task, root))
    oracle = tuple(_oracle_files(task, root, faults))
    hidden = HiddenFiles(
        oracle=oracle,
        reference=_named(root, task.reference, ("reference",), faults),
        reference_bad=tuple(
            patch
            for index, name in enumerate(task.reference_bad)
            if (patch := _named(root, name, ("reference_bad", index), faults))
        ),
        expected=_expected(task.oracle, root, faults) if task.oracle else None,
        patch=_named(root, task.patch, ("patch",), faults),
        labels=_named(root, task.labels, ("labels",), faults, LABELS_BYTES),
    )
    if sum(len(entry.data) for entry in oracle) > ORACLE_BYTES:
        faults.append(HiddenFault(("oracle", "files"), "more than 4 MiB together", "Make the oracle smaller"))
    return hidden, faults


def faults_of(named: Iterable[tuple[Where, str]], root: Path) -> list[HiddenFault]:
    """Return the faults of hidden files that a task names which is at fault elsewhere."""
    faults: list[HiddenFault] = []
    for where, name in named if root.is_dir() else ():
        _read(root, name, ORACLE_BYTES, where, faults)
    return faults


def _no_root(task: Task, root: Path) -> Iterator[HiddenFault]:
    """Say once what would be true of every file."""
    if first := next((name for name in NAMING if getattr(task, name)), None):
        remedy = f"Make the directory {ROOT_NAME}/ beside the case file, or name another with `oracle_root`"
        yield HiddenFault((first,), f"there is no oracle root {shown_path(root)}", remedy)


def _oracle_files(task: Task, root: Path, faults: list[HiddenFault]) -> Iterator[Captured]:
    for index, entry in enumerate(task.oracle.files if task.oracle else ()):
        where = ("oracle", "files", index, "source")
        if (data := _read(root, entry.source, ORACLE_BYTES, where, faults)) is not None:
            yield Captured(name=entry.target, data=data)


def _named(
    root: Path, name: str | None, where: Where, faults: list[HiddenFault], limit: int = PATCH_BYTES
) -> Captured | None:
    data = _read(root, name, limit, where, faults) if name else None
    return Captured(name=name, data=data) if name and data is not None else None


def _read(root: Path, name: str, limit: int, where: Where, faults: list[HiddenFault]) -> bytes | None:
    shown = shown_path(root)
    try:
        return read_untrusted(root, name, limit)
    except UnsafeFile as error:
        faults.append(HiddenFault(where, str(error), f"Name a regular file below {shown}, reached without a link"))
    except FileNotFoundError:
        faults.append(HiddenFault(where, f"{name}: no such file below {shown}", "Add the file or mend the path"))
    except OSError as error:
        faults.append(HiddenFault(where, f"{name}: cannot be read: {error.strerror}", "Check its permissions"))
    return None


def _expected(spec: OracleSpec, root: Path, faults: list[HiddenFault]) -> Expectation | None:
    name = str(expectation_path(spec))
    try:
        return Expectation.model_validate(json.loads(read_untrusted(root, name, ORACLE_BYTES)))
    except FileNotFoundError:
        return None
    except ValidationError as error:
        where, message, _ = next(explained(error, Expectation))
        reason = ": ".join([*map(str, where), message])
    except (UnsafeFile, OSError, ValueError, RecursionError) as error:
        reason = str(error)
    faults.append(
        HiddenFault(
            ("oracle",), f"{name} is no record of tests: {reason}", "Delete it and run `wfbench check` on the task"
        )
    )
    return None
