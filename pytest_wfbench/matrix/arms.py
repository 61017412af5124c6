"""One way of working on a task, as data."""

from __future__ import annotations

import string
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from pytest_wfbench.matrix.task import Frozen, InsidePath, Seconds, Slug, TaskKind, Text, Texts, _items

PROMPT_FIELDS = frozenset({"task", "plan", "output"})
SKILL_ROOT = ".claude/skills"


class SessionSpec(Frozen):
    """One invocation of the agent.

    ``prompt`` is a template over ``{task}``, ``{plan}`` and ``{output}``. ``produces`` is a glob that must match exactly
    one new or changed file, with nothing else changed; the next session sees its path as ``{plan}``. ``timeout`` is in
    seconds; none means the task's.
    """

    name: Slug
    prompt: Text = "{task}"
    skill: Slug | None = None
    produces: InsidePath | None = None
    timeout: Seconds | None = None

    @field_validator("prompt")
    @classmethod
    def _known_fields(cls, value: str) -> str:
        names = {name for _, name, _, _ in string.Formatter().parse(value) if name is not None}
        if unknown := sorted(names - PROMPT_FIELDS):
            raise ValueError(f"unknown field {{{unknown[0]}}}: the prompt may use {{task}}, {{plan}} and {{output}}")
        return value


class Tools(Frozen):
    """Agent tools an arm goes without."""

    deny: Texts = ()


class Arm(Frozen):
    """One way of working: its sessions, skills, tools, plugin and overlay."""

    name: Slug
    sessions: Annotated[tuple[SessionSpec, ...], BeforeValidator(_items)] = Field(min_length=1)
    skills: Annotated[tuple[Slug, ...], BeforeValidator(_items)] = ()
    tools: Tools = Tools()
    mcp: Literal["inherit", "none"] = "inherit"
    plugin: bool = False
    overlay: bool = False
    candidate_of: Slug | None = None
    kinds: Annotated[tuple[TaskKind, ...], BeforeValidator(_items)] = ("implementation",)
    default: bool = False

    @model_validator(mode="after")
    def _coherent(self) -> Arm:
        if unknown := sorted({s.skill for s in self.sessions if s.skill} - set(self.skills)):
            raise ValueError(f"session skill {unknown[0]} is not among the arm's skills")
        if len({session.name for session in self.sessions}) != len(self.sessions):
            raise ValueError("two sessions have the same name")
        produced = False
        for session in self.sessions:
            if "{plan}" in session.prompt and not produced:
                raise ValueError(f"session {session.name} uses {{plan}} before any session produces one")
            produced = produced or session.produces is not None
        if self.overlay and not self.candidate_of:
            raise ValueError("an arm with an overlay must say candidate_of: its incumbent")
        return self
