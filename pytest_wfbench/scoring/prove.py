"""Proof of an oracle: it fails where it must, passes where it must, and says the same every time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from pytest_wfbench.matrix.bindings import proof_digest
from pytest_wfbench.matrix.hidden import Captured, Expectation
from pytest_wfbench.matrix.load import LoadedTask
from pytest_wfbench.sandbox.spec import Bounds, Command, Mount, Sandbox
from pytest_wfbench.scoring.oracle import Oracle, OracleResult
from pytest_wfbench.scoring.sabotage import EXIT_AT_IMPORT, SABOTAGES, Sabotage

OracleKind = Literal["black-box", "in-process", "labels"]


class PatchRefused(Exception):
    """A patch does not apply to the task's repository; the message says why."""


class States(Protocol):
    """Gives the task's repository in a state: the ref, with a patch on it, or with a program run in it."""

    def open(self, patch: bytes | None, program: str | None) -> AbstractContextManager[tuple[Mount, ...]]:
        """Give the check mounts of a state. Raises PatchRefused."""
        ...


@dataclass(frozen=True)
class StateResult:
    """What verify and oracle said of one state. ``oracle`` has one entry a repeat; ``wanted`` is what it must be.

    A review's state has neither.
    """

    state: str
    wanted: bool | None
    verify: bool | None
    oracle: tuple[bool, ...]
    fault: str | None


@dataclass(frozen=True)
class Proof:
    """All states of one task. ``expectation`` is what its oracle must show from now on, for ``results: junit``.

    ``kind`` is ``in-process`` for those, and for an oracle of another kind that a planted end of the process fooled:
    the candidate runs inside it. That of a review is ``labels``.
    """

    task: str
    kind: OracleKind
    results: tuple[StateResult, ...]
    expectation: Expectation | None

    @property
    def faults(self) -> tuple[str, ...]:
        """Every way in which the oracle is no oracle."""
        return tuple(f"{result.state}: {result.fault}" for result in self.results if result.fault)


@dataclass(frozen=True)
class Prover:
    """Proves the oracle of one task. ``repeat`` is how often each state is judged, at least once."""

    loaded: LoadedTask
    states: States
    sandbox: Sandbox
    oracle: Oracle
    bounds: Bounds
    repeat: int = 1
    sabotage: bool = False

    def prove(self) -> Proof:
        """Run every state of the task."""
        hidden, spec = self.loaded.hidden, self.oracle.spec
        reference, expectation = self._reference(hidden.reference)
        proven = replace(self.oracle, hidden=hidden.model_copy(update={"expected": expectation}))
        results = [self._state("untouched", False, proven, None, None)]
        results.extend(reference)
        for patch in hidden.reference_bad:
            results.append(self._state(patch.name, False, proven, patch.data, None))
        planted = [self._planted(sabotage, proven) for sabotage in (SABOTAGES if self.sabotage else (EXIT_AT_IMPORT,))]
        kind: OracleKind = "in-process" if spec.results == "junit" or any(map(_fell, planted)) else "black-box"
        results.extend(planted if self.sabotage else ())
        return Proof(self.loaded.task.id, kind, tuple(results), expectation)

    def _planted(self, sabotage: Sabotage, oracle: Oracle) -> StateResult:
        return self._state(f"sabotage {sabotage.name}", False, oracle, None, sabotage.program)

    def _reference(self, patch: Captured | None) -> tuple[Sequence[StateResult], Expectation | None]:
        """Judge the reference, and learn from it which tests must run."""
        if patch is None:
            missing = "the task has no reference, so nothing shows that the oracle can pass"
            return (StateResult("reference", True, None, (), missing),), None
        expectation = None
        if self.oracle.spec.results == "junit":
            expectation, fault = self._learn(patch.data)
            if fault:
                return (StateResult("reference", True, None, (), fault),), None
        proven = replace(self.oracle, hidden=self.loaded.hidden.model_copy(update={"expected": expectation}))
        return (self._state("reference", True, proven, patch.data, None),), expectation

    def _learn(self, patch: bytes) -> tuple[Expectation | None, str | None]:
        try:
            with self.states.open(patch, None) as mounts:
                result = replace(self.oracle, hidden=self.loaded.hidden.model_copy(update={"expected": None})).judge(
                    mounts
                )
        except PatchRefused as error:
            return None, str(error)
        if not result.passed_tests:
            return None, result.reason or "no test passed on the reference"
        return Expectation(oracle_digest=proof_digest(self.loaded), tests=tuple(sorted(result.passed_tests))), None

    def _state(self, name: str, wanted: bool, oracle: Oracle, patch: bytes | None, program: str | None) -> StateResult:
        try:
            with self.states.open(patch, program) as mounts:
                verify = self._verify(mounts)
                results = tuple(oracle.judge(mounts) for _ in range(self.repeat))
        except PatchRefused as error:
            return StateResult(name, wanted, None, (), str(error))
        said = tuple(result.passed for result in results)
        return StateResult(name, wanted, verify, said, _fault(wanted, results))

    def _verify(self, mounts: tuple[Mount, ...]) -> bool | None:
        command = self.loaded.task.verify
        if command is None:
            return None
        timeout = self.loaded.task.timeout.verify
        return self.sandbox.run(Command(("/bin/sh", "-c", command), mounts, timeout, bounds=self.bounds)).ok


def _fell(planted: StateResult) -> bool:
    return True in planted.oracle


def _fault(wanted: bool, results: Sequence[OracleResult]) -> str | None:
    said = {result.passed for result in results}
    if len(said) > 1:
        return f"the oracle does not answer the same every time ({len(results)} runs)"
    if said == {wanted}:
        return None
    reason = next(iter(_reasons(results)), "")
    return f"the oracle fails where it must pass{reason}" if wanted else "the oracle passes where it must fail"


def _reasons(results: Sequence[OracleResult]) -> Iterator[str]:
    return (f" ({result.reason})" + (f": {result.said}" if result.said else "") for result in results if result.reason)
