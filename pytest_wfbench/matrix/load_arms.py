"""``arms.yaml`` read into frozen arms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from pytest_wfbench.files import UnsafeFile, read_untrusted
from pytest_wfbench.matrix.arms import Arm
from pytest_wfbench.matrix.faults import problem_of_yaml, problems_of, repeated_keys
from pytest_wfbench.matrix.problems import Problem, shown_path
from pytest_wfbench.matrix.yamldoc import BadYaml, Document, read_yaml

ARMS_FILE = "arms.yaml"
ARMS_FILE_LIMIT = 1 << 20
BUILT_IN = Path(__file__).with_name("builtin_arms.yaml")


@dataclass(frozen=True)
class LoadedArms:
    """The arms of one file in its order, the line of each, and all problems."""

    file: Path
    arms: tuple[Arm, ...]
    lines: tuple[tuple[str, int], ...]
    problems: tuple[Problem, ...]

    def problem(self, arm: str, message: str, remedy: str) -> Problem:
        """Return a fault of one arm, at the line where it is declared."""
        line = dict(self.lines).get(arm, 0)
        return Problem(shown_path(self.file), line, "", f"arms.{arm}", message, remedy)


def arms_file_for(case_file: Path, named: Path | None) -> Path:
    """Return the arms file of a case file: the named one, else the one beside it, else the built-in set."""
    beside = case_file.with_name(ARMS_FILE)
    return named or (beside if beside.exists() else BUILT_IN)


def load_arms(path: Path) -> LoadedArms:
    """Read an arms file."""
    shown = shown_path(path)
    try:
        document = read_yaml(read_untrusted(path.parent, path.name, ARMS_FILE_LIMIT))
    except BadYaml as error:
        return LoadedArms(path, (), (), (problem_of_yaml(error, shown),))
    except UnsafeFile as error:
        return LoadedArms(path, (), (), (Problem(shown, 0, "", "", str(error), "Name a regular file of at most 1 MiB"),))
    except OSError as error:
        problem = Problem(shown, 0, "", "", f"cannot be read: {error.strerror}", "Check --wfbench-arms-file")
        return LoadedArms(path, (), (), (problem,))
    return _read_arms(path, document, shown)


def _read_arms(path: Path, document: Document, shown: str) -> LoadedArms:
    declared = document.value.get("arms") if isinstance(document.value, dict) else None
    if not isinstance(declared, dict) or not declared or len(document.value) != 1:
        problem = Problem(shown, 1, "", "arms", "not an arms file", "Write `arms:` with a mapping from name to arm")
        return LoadedArms(path, (), (), (*repeated_keys(document, shown), problem))
    arms: list[Arm] = []
    problems = list(repeated_keys(document, shown))
    for name, value in declared.items():
        found = list(_one_arm(name, value, document, shown))
        arms.extend(item for item in found if isinstance(item, Arm))
        problems.extend(item for item in found if isinstance(item, Problem))
    lines = tuple((name, document.line(("arms", name))) for name in declared)
    return LoadedArms(path, tuple(arms), lines, tuple(problems))


def _one_arm(name: str, value: object, document: Document, shown: str) -> Iterator[Arm | Problem]:
    base = ("arms", name)
    if not isinstance(value, dict):
        yield Problem(shown, document.line(base), "", f"arms.{name}", "not a mapping", "Write `sessions: […]` below it")
        return
    try:
        yield Arm.model_validate({"name": name, **value})
    except ValidationError as error:
        yield from problems_of(error, Arm, document, base, shown, f"arm {name}")
