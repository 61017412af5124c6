"""The repositories of tasks, resolved once and made into templates, before anything else is started."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pytest_wfbench.matrix.load import LoadedTask
from pytest_wfbench.matrix.load_arms import ARMS_FILE
from pytest_wfbench.matrix.problems import Problem, shown_path
from pytest_wfbench.sandbox.binary import BubblewrapMissing
from pytest_wfbench.sandbox.choice import make_sandbox
from pytest_wfbench.sandbox.identity import choose_identity, shelves
from pytest_wfbench.sandbox.machine import Check, uid_check
from pytest_wfbench.sandbox.preflight import obstacle
from pytest_wfbench.sandbox.spec import Sandbox, SandboxName
from pytest_wfbench.sweep.scripts import CASSETTES
from pytest_wfbench.workspace.program import ProgramFailed
from pytest_wfbench.workspace.repository import RepositoryProblem, resolve
from pytest_wfbench.workspace.template import Template, TemplateUnproven, make_template

PYTEST_CACHE = ".pytest_cache"
_MAKE_ROOM = "Free some space in the cache directory, or name another in WFBENCH_CACHE_DIR"
Key = tuple[Path, str | None, tuple[str, ...], tuple[Path, ...]]


# A question without a repository has an empty workspace.
NOTHING: Key = (Path("/nonexistent"), None, (), ())


class MachineUnfit(Exception):
    """No sandbox works here; the message is one line with the remedy."""

    def __init__(self, failed: Check) -> None:
        super().__init__(
            f"the sandbox does not work here: {failed.name}: {failed.detail}. {capitalised(failed.remedy)}"
        )


class _Fault(NamedTuple):
    message: str
    remedy: str


def snapshot(
    tasks: Sequence[LoadedTask], name: SandboxName = "bwrap", apart: Sequence[Path] = ()
) -> tuple[dict[str, Template], list[Problem]]:
    """Return the template of each task by id, made in the sandbox ``name``.

    Tasks with the same repository, ref and private paths share one. What the harness knows of a task is never part of
    a snapshot: the case file's own directory (or, where that is the repository, the case files, arms and cassettes in
    it), the oracle root, and ``apart``: absolute paths such as the results of earlier sweeps.

    Raises:
        MachineUnfit: when the sandbox does not work on this machine.
    """
    needing = [loaded for loaded in tasks if loaded.repository is not None or loaded.task.kind == "question"]
    if not needing:
        return {}, []
    if not (held := uid_check(choose_identity())).ok and held.needed:
        raise MachineUnfit(held)
    try:
        sandbox = make_sandbox(name)
    except BubblewrapMissing as error:
        message, _, remedy = str(error).partition(": ")
        raise MachineUnfit(Check("bubblewrap", False, message, remedy)) from error
    made: dict[Key, Template | _Fault] = {}
    templates: dict[str, Template] = {}
    problems: list[Problem] = []
    for loaded in needing:
        key = _key(loaded, (*apart, *(other.file for other in tasks))) if loaded.repository else NOTHING
        if key not in made:
            made[key] = _make(key, sandbox) if loaded.repository else _make_empty(sandbox)
        template = made[key]
        if isinstance(template, Template):
            templates[loaded.task.id] = template
        else:
            problems.append(loaded.problem("repo", template.message, template.remedy))
    return templates, problems


def _key(loaded: LoadedTask, apart: Sequence[Path]) -> Key:
    repository, cases = loaded.repository or loaded.file.parent, loaded.file.parent
    own = (cases, loaded.oracle_root, cases / ARMS_FILE, cases / CASSETTES, repository / PYTEST_CACHE, *apart)
    inside = {path for path in own if path and path != repository and path.is_relative_to(repository)}
    return repository, loaded.task.ref, loaded.task.private, tuple(sorted(inside))


def _make(key: Key, sandbox: Sandbox) -> Template | _Fault:
    repository, ref, private, own = key
    identity = choose_identity()
    apart = tuple(str(path.relative_to(repository)) for path in own)
    try:
        source = resolve(repository, ref, own)
        return make_template(source, private, shelves(identity, sandbox.name), sandbox, identity, apart)
    except RepositoryProblem as error:
        message, _, remedy = str(error).replace(str(repository), shown_path(repository)).rpartition(": ")
        return _Fault(message, capitalised(remedy))
    except TemplateUnproven as error:
        require_machine(sandbox.name)
        return _Fault(f"no clean snapshot of it can be made: {error}", "Report this with the repository's layout")
    except OSError as error:
        return _Fault(f"no snapshot of it can be made: {error}", _MAKE_ROOM)
    except ProgramFailed as error:
        require_machine(sandbox.name)
        return _Fault(f"its snapshot failed: {error}", "Run `wfbench doctor`")


def _make_empty(sandbox: Sandbox) -> Template | _Fault:
    with TemporaryDirectory(prefix="wfb-empty-") as directory:
        return _make((Path(directory), None, (), ()), sandbox)


def require_machine(name: SandboxName) -> None:
    """Say what the machine lacks, if it lacks something, rather than how that fails. Raises MachineUnfit."""
    if (failed := obstacle(name)) is not None:
        raise MachineUnfit(failed)


def capitalised(remedy: str | None) -> str:
    """Return a remedy as a sentence of its own."""
    remedy = remedy or "run `wfbench doctor`"
    return remedy[:1].upper() + remedy[1:]
