"""The subjects of a sweep: who is asked for, whether the agent is here, and whether the model can be reached."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pytest_wfbench.agents.base import AgentUnavailable, Runtime
from pytest_wfbench.agents.registry import UnknownAgent, get_agent
from pytest_wfbench.gateway.providers import ProviderUnusable, provider_of
from pytest_wfbench.matrix.problems import Problem
from pytest_wfbench.matrix.subject import BadSubject, Subject, moves, parse_subject
from pytest_wfbench.options import Options
from pytest_wfbench.sweep.plan import FileArms
from pytest_wfbench.sweep.scripts import places_of

DEFAULT_SUBJECT = "mini:replay/demo"


def read_subjects(
    files: Sequence[Path], options: Options, directory: Path
) -> tuple[tuple[Subject, ...], list[Problem]]:
    """Return the subjects asked for, or the demo's where its cassettes lie beside the cases."""
    given = options.subject
    if not given and any(path.is_dir() for path in list(places_of("demo", files, directory))[:-1]):
        given = (DEFAULT_SUBJECT,)
    if not given:
        remedy = "Name one, for example --wfbench-subject claude-code:anthropic/claude-sonnet-4-5"
        return (), [Problem("--wfbench-subject", 0, "", "", "no subject", remedy)]
    subjects: list[Subject] = []
    problems: list[Problem] = []
    for text in given:
        try:
            subject = parse_subject(text)
            get_agent(subject.agent)
        except (BadSubject, UnknownAgent) as error:
            problems.append(Problem("--wfbench-subject", 0, "", "", str(error), "Mend the option"))
            continue
        if subject in subjects:
            problems.append(Problem("--wfbench-subject", 0, "", "", f"{subject} is named twice", "Name it once"))
        subjects.append(subject)
    return tuple(subjects), problems


def find_runtimes(
    subjects: Sequence[Subject], directory: Path, probe: bool
) -> tuple[dict[str, Runtime], list[Problem]]:
    """Find each subject's agent on this machine, unless ``probe`` is off."""
    found: dict[str, Runtime] = {}
    problems: list[Problem] = []
    for subject in subjects if probe else ():
        try:
            found[str(subject)] = get_agent(subject.agent).find(subject.model, directory)
        except AgentUnavailable as error:
            message, _, remedy = str(error).removeprefix(f"{subject} ").partition("; ")
            told = remedy[:1].upper() + remedy[1:]
            problems.append(Problem(str(subject), 0, "", "", message, told or "See docs/agents.md"))
    return found, problems


def key_problems(subjects: Sequence[Subject]) -> Iterator[Problem]:
    """A key that is missing is said before anything is started."""
    for subject in subjects:
        if subject.cassette or not get_agent(subject.agent).uses_model:
            continue
        try:
            provider_of(subject.model, os.environ)
        except ProviderUnusable as error:
            yield from (Problem(str(subject), 0, "", "", fault.message, fault.remedy) for fault in error.faults)


def moving_problems(subjects: Sequence[Subject], arms: Iterable[FileArms]) -> Iterator[Problem]:
    """A gate weighs a candidate on one named model: an alias could be another one by the time of the last cell."""
    gated = sorted({arm.name for entry in arms for arm in entry.chosen if arm.candidate_of})
    for subject in subjects if gated else ():
        if get_agent(subject.agent).uses_model and not subject.cassette and moves(subject.model):
            message = f"{subject.model} is an alias that moves, so no gate can weigh {', '.join(gated)} on it"
            yield Problem(str(subject), 0, "", "", message, "Name the model's version, or leave the candidate arms out")
