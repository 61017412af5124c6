"""What a sweep asks of its agents beyond a prompt: effort, options, tools to go without, releases that are tested."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from pytest_wfbench.agents.base import Runtime
from pytest_wfbench.agents.pinned import untested
from pytest_wfbench.agents.registry import UnknownAgent, get_agent
from pytest_wfbench.matrix.arms import Arm
from pytest_wfbench.matrix.problems import Problem
from pytest_wfbench.matrix.subject import Subject
from pytest_wfbench.options import Options
from pytest_wfbench.usage.prices import BadPrices, PriceTable

EFFORT, OPTION, STRICT = "--wfbench-effort", "--wfbench-agent-option", "--wfbench-strict-versions"
WORDING = re.compile(r"(?P<agent>[^\s.=]+)\.(?P<name>[a-z0-9_]+)\s*=\s*(?P<value>\S.*?)\s*\Z")


def agent_options(given: Sequence[str], agent: str) -> dict[str, str]:
    """Return what was set for an agent, by name; the last of two values for a name counts."""
    read = (match for text in given if (match := WORDING.match(text.strip())))
    return {match["name"]: match["value"] for match in read if match["agent"] == agent}


def wish_problems(subjects: Sequence[Subject], options: Options) -> Iterator[Problem]:
    """Yield a problem for each wish that would be lost on its way: what is asked for is done, or refused."""
    for text in options.agent_option:
        yield from _option_problems(text)
    if options.effort:
        for subject in subjects:
            yield from _effort_problems(subject, options.effort)


def _option_problems(text: str) -> Iterator[Problem]:
    match = WORDING.match(text.strip())
    if match is None:
        yield _problem(OPTION, f"{text!r} does not read AGENT.NAME=VALUE", "For example codex.verbosity=low")
        return
    try:
        known = get_agent(match["agent"]).traits.options
    except UnknownAgent as error:
        yield _problem(OPTION, str(error), "Mend the option")
        return
    pattern = known.get(match["name"])
    if pattern is None:
        remedy = f"It has {', '.join(sorted(known))}" if known else "It has none"
        yield _problem(OPTION, f"{match['agent']} has no option {match['name']!r}", remedy)
    elif not re.fullmatch(pattern, match["value"]):
        message = f"{match['agent']}.{match['name']} cannot be {match['value']!r}"
        yield _problem(OPTION, message, f"Give a value that matches {pattern}")


def _effort_problems(subject: Subject, effort: str) -> Iterator[Problem]:
    known = get_agent(subject.agent).traits.efforts
    if effort not in known:
        remedy = f"It knows {', '.join(known)}" if known else "Leave out the option, or this subject"
        yield _problem(EFFORT, f"{subject.agent} cannot take the effort {effort!r}", remedy)
    elif subject.cassette is None and _reasons(subject.model) is False:
        message = f"{subject.model} has no reasoning effort: LiteLLM would drop {effort!r}"
        yield _problem(EFFORT, message, "Leave out the option, or this subject")


def _reasons(model: str) -> bool | None:
    """Return whether LiteLLM's table says that a model reasons; none where it does not have the model."""
    try:
        models = PriceTable.load().models
    except BadPrices:
        return None
    entry = models.get(model) or models.get(model.partition("/")[2])
    return None if entry is None else entry.get("supports_reasoning") is True


def version_problems(runtimes: Mapping[str, Runtime], options: Options) -> Iterator[Problem]:
    """Yield a problem for each agent of an untested release, where that is asked for."""
    for subject, runtime in runtimes.items() if options.strict_versions else ():
        if tested := untested(runtime.version):
            message = f"{runtime.version} is not a tested release: tested is {tested}"
            yield Problem(subject, 0, "", "", message, f"Run `make agents`, or leave out {STRICT}")


def undeniable(agent: str, arm: Arm) -> tuple[str, ...]:
    """Return the tools of an arm's ``deny`` that an agent has and cannot go without."""
    denies = get_agent(agent).traits.denies
    return () if denies is None else tuple(tool for tool in arm.tools.deny if tool not in denies)


def _problem(option: str, message: str, remedy: str) -> Problem:
    return Problem(option, 0, "", "", message, remedy)
