"""``arms.yaml`` read into frozen arms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from pytest_wfbench.files import UnsafeFile, read_untrusted
from pytest_wfbench.matrix.arms import SKILL_ROOT, Arm
from pytest_wfbench.matrix.faults import explained, problem_of_yaml, unknown_key, yaml_problems
from pytest_wfbench.matrix.fields import BY_HAND, Paths
from pytest_wfbench.matrix.problems import Problem, shown_path
from pytest_wfbench.matrix.yamldoc import BadYaml, Document, Path_, read_yaml

ARMS_FILE = "arms.yaml"
ARMS_FILE_LIMIT = 1 << 20
TOP = ("arms", "mirrors")
_MIRRORS: TypeAdapter[tuple[str, ...]] = TypeAdapter(Paths)
BUILT_IN = Path(__file__).with_name("builtin_arms.yaml")


@dataclass(frozen=True)
class LoadedArms:
    """The arms of one file in its order, the line of each, all problems, and the directories that mirror the skills."""

    file: Path
    arms: tuple[Arm, ...]
    lines: tuple[tuple[str, int], ...]
    problems: tuple[Problem, ...]
    mirrors: tuple[str, ...] = ()

    def problem(self, arm: str, message: str, remedy: str) -> Problem:
        """Return a fault of one arm, at the line where it is declared."""
        line = dict(self.lines).get(arm, 0)
        return Problem(shown_path(self.file), line, "", f"arms.{arm}", message, remedy)


def arms_file_for(case_file: Path, named: Path | None) -> Path:
    """Return the arms file of a case file: the named one, else the one beside it, else the built-in set."""
    beside = case_file.with_name(ARMS_FILE)
    return named or (beside if beside.exists() or beside.is_symlink() else BUILT_IN)


def load_arms(path: Path) -> LoadedArms:
    """Read an arms file."""
    shown = shown_path(path)
    try:
        document = read_yaml(read_untrusted(path.parent, path.name, ARMS_FILE_LIMIT))
    except BadYaml as error:
        return LoadedArms(path, (), (), (problem_of_yaml(error, shown),))
    except UnsafeFile as error:
        message = str(error).removeprefix(f"{path.name}: ")
        return LoadedArms(path, (), (), (Problem(shown, 0, "", "", message, "Name a regular file of at most 1 MiB"),))
    except OSError as error:
        problem = Problem(shown, 0, "", "", f"cannot be read: {error.strerror}", "Check --wfbench-arms-file")
        return LoadedArms(path, (), (), (problem,))
    return _read_arms(path, document, shown)


def _read_arms(path: Path, document: Document, shown: str) -> LoadedArms:
    value = document.value if isinstance(document.value, dict) else {}
    given = value.get("arms")
    declared: dict[str, Any] = given if isinstance(given, dict) else {}
    problems = [*yaml_problems(document, shown), *_top_problems(value, document, shown)]
    arms: list[Arm] = []
    for name, written in declared.items():
        for item in _one_arm(name, written, declared, document, shown):
            (arms if isinstance(item, Arm) else problems).append(item)  # type: ignore[arg-type]
    lines = tuple((name, document.line(("arms", name))) for name in declared)
    mirrors, faults = _mirrors(value, document, shown)
    return LoadedArms(path, tuple(arms), lines, (*problems, *faults), mirrors)


def _top_problems(value: Mapping[str, Any], document: Document, shown: str) -> Iterator[Problem]:
    if not isinstance(value.get("arms"), dict) or not value["arms"]:
        yield Problem(
            shown, document.line(("arms",)), "", "arms", "no arms", "Write `arms:` with a mapping from name to arm"
        )
    for key in sorted(value.keys() - set(TOP)):
        yield Problem(shown, document.line((key,)), "", key, *unknown_key(key, TOP))


def _mirrors(value: Mapping[str, Any], document: Document, shown: str) -> tuple[tuple[str, ...], tuple[Problem, ...]]:
    """Return the directories that repeat ``SKILL_ROOT``, and what is wrong with them."""
    mirrors: tuple[str, ...] | None
    try:
        mirrors = _MIRRORS.validate_python(value.get("mirrors", ()), context=BY_HAND)
    except ValidationError:
        mirrors = None
    if mirrors is None or SKILL_ROOT in mirrors or len(set(mirrors)) < len(mirrors):
        remedy = f"Write paths inside the repository, each once and none of them {SKILL_ROOT}"
        problem = Problem(
            shown, document.line(("mirrors",)), "", "mirrors", "must be a list of different directories", remedy
        )
        return (), (problem,)
    return mirrors, ()


def _one_arm(
    name: str, written: object, declared: Mapping[str, Any], document: Document, shown: str
) -> Iterator[Arm | Problem]:
    def problem(where: Path_, message: str, remedy: str) -> Problem:
        path = ("arms", name, *where)
        return Problem(shown, document.line(path), "", ".".join(map(str, path)), message, remedy)

    if not isinstance(written, dict):
        yield problem((), "must be a mapping", "Write `sessions: […]` below it")
        return
    if "name" in written:
        yield problem(("name",), *unknown_key("name", [key for key in Arm.model_fields if key != "name"]))
    incumbent = written.get("candidate_of")
    if isinstance(incumbent, str) and incumbent not in declared:
        yield problem(("candidate_of",), f"no arm is named {incumbent!r}", f"Arms of the file: {', '.join(declared)}")
    try:
        yield Arm.model_validate(written | {"name": name}, context=BY_HAND)
    except ValidationError as error:
        for where, message, remedy in explained(error, Arm):
            yield problem(() if where == ("name",) else where, message, remedy)
