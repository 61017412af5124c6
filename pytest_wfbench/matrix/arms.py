"""One way of working on a task, as data."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, ModelWrapValidatorHandler, field_validator, model_validator

from pytest_wfbench.matrix.fields import Frozen, InsidePath, Location, Seconds, Slug, Text, Texts, items, with_rules
from pytest_wfbench.matrix.task import TaskKind

PROMPT_FIELDS = frozenset({"task", "plan", "output"})
SKILL_ROOT = ".claude/skills"


class BadTemplate(ValueError):
    """A prompt that is no template over the fields it may use; the message is ``what: remedy``."""


def template_fields(prompt: str) -> frozenset[str]:
    """Return the fields a prompt uses.

    Raises:
        BadTemplate: for a lone brace, and for anything but a bare name of ``PROMPT_FIELDS`` between braces: neither
            attributes, items, positions, conversions nor formats can be reached.
    """
    try:
        parts = list(string.Formatter().parse(prompt))
    except ValueError:
        raise BadTemplate("a brace stands alone: write {{ or }} for a brace that is meant as such") from None
    used = [(name, spec, conversion) for _, name, spec, conversion in parts if name is not None]
    for name, spec, conversion in used:
        if name not in PROMPT_FIELDS or spec or conversion:
            written = name + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
            known = "{task}, {plan} and {output}"
            raise BadTemplate(f"unknown field {{{written}}}: use {known} only, and {{{{ or }}}} for a brace as such")
    return frozenset(name for name, _, _ in used)


class SessionSpec(Frozen):
    """One invocation of the agent.

    ``prompt`` is a template over ``{task}``, ``{plan}`` and ``{output}``. ``produces`` is a glob that must match one
    new or changed file exactly, with nothing else changed; the next session sees its path as ``{plan}``. ``timeout`` is
    in seconds; none means the task's.
    """

    name: Slug
    prompt: Text = "{task}"
    skill: Slug | None = None
    produces: InsidePath | None = None
    timeout: Seconds | None = None

    @field_validator("prompt")
    @classmethod
    def _known_fields(cls, value: str) -> str:
        template_fields(value)
        return value


class Tools(Frozen):
    """Agent tools an arm goes without."""

    deny: Texts = ()


class Arm(Frozen):
    """One way of working: its sessions, skills, tools, plugin and overlay.

    The ``skills`` of an arm with a ``plugin`` are the plugin's, not the repository's.
    """

    PAGE: ClassVar[str] = "docs/arms.md"

    name: Slug
    sessions: Annotated[tuple[SessionSpec, ...], BeforeValidator(items)] = Field(min_length=1)
    skills: Annotated[tuple[Slug, ...], BeforeValidator(items)] = ()
    tools: Tools = Tools()
    mcp: Literal["inherit", "none"] = "inherit"
    plugin: bool = False
    overlay: bool = False
    candidate_of: Slug | None = None
    kinds: Annotated[tuple[TaskKind, ...], BeforeValidator(items)] = Field(("implementation",), min_length=1)
    default: bool = False

    @property
    def plan_globs(self) -> tuple[str, ...]:
        """What its sessions hand over; no part of the churn."""
        return tuple(session.produces for session in self.sessions if session.produces)

    @model_validator(mode="wrap")
    @classmethod
    def _with_rules(cls, value: Any, build: ModelWrapValidatorHandler[Arm]) -> Arm:
        return with_rules(value, build, _arm_rules)


def _arm_rules(raw: Mapping[str, Any]) -> Iterator[tuple[Location, str]]:
    listed = raw.get("sessions")
    sessions = [
        (index, session)
        for index, session in enumerate(listed if isinstance(listed, list | tuple) else ())
        if isinstance(session, dict)
    ]
    yield from _skill_rules(raw, sessions)
    yield from _order_rules(sessions)
    yield from _question_rules(raw, sessions)
    yield from _review_rules(raw, sessions)
    overlay, incumbent = raw.get("overlay") is True, raw.get("candidate_of")
    if overlay and incumbent is None:
        yield ("overlay",), "an arm with an overlay has no incumbent: name it with `candidate_of`"
    if overlay and not raw.get("skills"):
        yield ("overlay",), "an arm with an overlay has no skills that it could be laid over: list them in `skills`"
    if overlay and raw.get("plugin") is True:
        yield ("overlay",), "the skills of an arm with a plugin are not the repository's: leave out `overlay`"
    if incumbent is not None and incumbent == raw.get("name"):
        yield ("candidate_of",), "an arm cannot be its own incumbent: name another arm"


def _skill_rules(raw: Mapping[str, Any], sessions: list[tuple[int, Any]]) -> Iterator[tuple[Location, str]]:
    skills = raw.get("skills", ())
    for index, session in sessions if isinstance(skills, list | tuple) else ():
        skill = session.get("skill")
        if isinstance(skill, str) and skill not in skills:
            yield ("sessions", index, "skill"), f"the skill {skill!r} is not among the arm's: add it to `skills`"


def _question_rules(raw: Mapping[str, Any], sessions: list[tuple[int, Any]]) -> Iterator[tuple[Location, str]]:
    """An answer is what one session says; files are no answer."""
    kinds = raw.get("kinds")
    if not isinstance(kinds, list | tuple) or "question" not in kinds:
        return
    if len(sessions) > 1:
        yield ("sessions",), "an arm for questions has one session, which answers: leave out `question`, or the others"
    for index, session in sessions:
        if session.get("produces") is not None:
            yield ("sessions", index, "produces"), "an arm for questions hands nothing over: leave out `produces`"


def _review_rules(raw: Mapping[str, Any], sessions: list[tuple[int, Any]]) -> Iterator[tuple[Location, str]]:
    """A review's workspace cannot be written to, and only a review has an output."""
    kinds = raw.get("kinds")
    reviews = isinstance(kinds, list | tuple) and "review" in kinds
    for index, session in sessions:
        if reviews and session.get("produces") is not None:
            yield ("sessions", index, "produces"), "an arm for reviews hands nothing over: leave out `produces`"
        if not reviews and "output" in _fields_of(session.get("prompt")):
            yield ("sessions", index, "prompt"), "{output} is where a review is written: add `review` to `kinds`"


def _order_rules(sessions: list[tuple[int, Any]]) -> Iterator[tuple[Location, str]]:
    names: list[object] = []
    produced = False
    for index, session in sessions:
        name = session.get("name")
        if isinstance(name, str) and name in names:
            yield ("sessions", index, "name"), f"two sessions have the name {name!r}: rename one of them"
        names.append(name)
        if not produced and "plan" in _fields_of(session.get("prompt")):
            yield ("sessions", index, "prompt"), "{plan} is used before a session makes one: give one `produces`"
        produced = produced or session.get("produces") is not None


def _fields_of(prompt: object) -> frozenset[str]:
    try:
        return template_fields(prompt) if isinstance(prompt, str) else frozenset()
    except BadTemplate:
        return frozenset()
