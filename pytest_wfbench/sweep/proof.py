"""The proof of the oracles and labels of case files: their states as workspaces, and what is recorded of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pytest_wfbench.files import write_atomic
from pytest_wfbench.matrix.hidden import Expectation, expectation_path
from pytest_wfbench.matrix.load import SUFFIX, LoadedTask, load_cases
from pytest_wfbench.matrix.problems import InvalidCases
from pytest_wfbench.sandbox.bubblewrap import make_bubblewrap
from pytest_wfbench.sandbox.identity import Identity, choose_identity, shelves
from pytest_wfbench.sandbox.spec import Bounds, Command, Mount, Sandbox
from pytest_wfbench.scoring.oracle import Oracle
from pytest_wfbench.scoring.prove import PatchRefused, Proof, Prover, StateResult
from pytest_wfbench.sweep.context import bounds_of
from pytest_wfbench.sweep.dependencies import with_dependencies
from pytest_wfbench.sweep.reviewed import review_faults
from pytest_wfbench.sweep.scratch import scratch_directory
from pytest_wfbench.sweep.snapshot import require_machine, snapshot
from pytest_wfbench.workspace.ground import Ground, survey
from pytest_wfbench.workspace.startstate import SetupFailed, StartState, make_start
from pytest_wfbench.workspace.template import Template

PLANT_SECONDS = 60.0


def load_for_proof(paths: Sequence[Path]) -> tuple[LoadedTask, ...]:
    """Read the tasks that have an oracle or labels from case files, and from directories of them.

    Raises:
        InvalidCases: with every fault of every file.
    """
    files = [file for path in paths for file in (sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else [path])]
    loaded = load_cases([file.absolute() for file in files])
    if loaded.problems:
        raise InvalidCases(loaded.problems)
    return tuple(task for task in loaded.tasks if task.task.hides)


def proofs(tasks: Sequence[LoadedTask], *, repeat: int, sabotage: bool) -> Iterator[tuple[LoadedTask, Proof]]:
    """Prove one oracle after the other.

    Raises:
        InvalidCases: when a repository cannot be had.
        MachineUnfit: when no sandbox works on this machine.
    """
    require_machine("bwrap")
    templates, problems = snapshot(tasks)
    templates, unfit = with_dependencies(tasks, templates, ())
    problems += unfit
    if problems:
        raise InvalidCases(problems)
    sandbox, identity = make_bubblewrap(), choose_identity()
    with scratch_directory(identity) as scratch:
        ground = survey(sandbox, scratch, identity)
        for loaded in tasks:
            bounds = bounds_of(loaded.task.limits)
            states = TaskStates(loaded, templates[loaded.task.id], sandbox, ground, bounds)
            if loaded.task.labels:
                yield loaded, _review_proof(loaded, states)
            else:
                yield loaded, Prover(loaded, states, sandbox, states.oracle(), bounds, repeat, sabotage).prove()


def _review_proof(loaded: LoadedTask, states: TaskStates) -> Proof:
    """Say what is wrong with a review's change and labels, each on a line of its own."""
    faults: list[str | None] = [str(problem) for problem in review_faults(loaded, states.make)]
    results = tuple(StateResult("patched", None, None, (), fault) for fault in faults or [None])
    return Proof(loaded.task.id, "labels", results, None)


@dataclass(frozen=True)
class TaskStates:
    """The repository of a task in any state: the ref, with a patch on it, or with a program run in it."""

    loaded: LoadedTask
    template: Template
    sandbox: Sandbox
    ground: Ground
    bounds: Bounds

    @property
    def identity(self) -> Identity:
        """Whom sandboxes run as."""
        return self.ground.identity

    def oracle(self) -> Oracle:
        """Return the task's oracle."""
        spec = self.loaded.task.oracle
        if spec is None:
            raise ValueError(f"task {self.loaded.task.id} has no oracle")
        owner = (self.identity.uid, self.identity.gid)
        timeout = self.loaded.task.timeout.oracle
        return Oracle(spec, self.loaded.hidden, self.sandbox, self.ground.scratch, owner, timeout, self.bounds)

    @contextmanager
    def open(self, patch: bytes | None, program: str | None) -> Iterator[tuple[Mount, ...]]:
        """Give the check mounts of a state. Raises PatchRefused."""
        workspace = self.ground.open(self._start(patch))
        try:
            if program is not None:
                self._run(program, workspace.session_mounts())
            yield workspace.check_mounts()
        finally:
            workspace.remove()

    def _start(self, patch: bytes | None) -> StartState:
        try:
            return self.make(patch)
        except SetupFailed as error:
            raise PatchRefused(" ".join(str(error).split())) from error

    def make(self, patch: bytes | None) -> StartState:
        """Return the task's repository after its setup and with a patch on it. Raises SetupFailed."""
        task = self.loaded.task
        return make_start(
            self.template,
            setup=task.setup,
            patch=patch,
            timeout=task.timeout.setup,
            bounds=self.bounds,
            sandbox=self.sandbox,
            identity=self.identity,
            cache=shelves(self.identity, self.sandbox.name),
            copies=self.ground.copies,
        )

    def _run(self, program: str, mounts: tuple[Mount, ...]) -> None:
        ended = self.sandbox.run(Command(("python3", "-I", "-c", program), mounts, PLANT_SECONDS))
        if not ended.ok:
            raise PatchRefused("the plant could not be planted: " + ended.stderr.decode(errors="replace")[-300:])


def record_expectation(loaded: LoadedTask, expectation: Expectation) -> bool:
    """Write which tests must run beside the oracle; whether anything changed."""
    if loaded.task.oracle is None or loaded.oracle_root is None or loaded.hidden.expected == expectation:
        return False
    path = loaded.oracle_root / expectation_path(loaded.task.oracle)
    write_atomic(path, expectation.model_dump_json(indent=1) + "\n")
    return True
