"""Agent and model, as one value."""

from __future__ import annotations

import re
from dataclasses import dataclass

REPLAY = "replay/"
MOVING = frozenset({"latest", "auto"})
# Providers whose models without a tag are the latest ones.
TAGGED = frozenset({"ollama"})
EXAMPLE = "write AGENT:MODEL, for example mini:replay/demo"


class BadSubject(ValueError):
    """A subject that does not read ``AGENT:MODEL``."""


@dataclass(frozen=True, order=True)
class Subject:
    """An agent's name and what follows its colon: a LiteLLM model id, ``replay/<cassette>`` or a script's path."""

    agent: str
    model: str

    def __str__(self) -> str:
        """As it is typed."""
        return f"{self.agent}:{self.model}"

    @property
    def cassette(self) -> str | None:
        """The cassette's name where the model is replayed, else none."""
        return self.model.removeprefix(REPLAY) if self.model.startswith(REPLAY) else None


def parse_subject(text: str) -> Subject:
    """Read ``AGENT:MODEL``.

    Raises:
        BadSubject: when a part is missing, or for anything but visible ASCII: a subject stands in file names and node
            ids, and two that look the same must be the same.
    """
    agent, colon, model = text.partition(":")
    if not colon or not agent or not model:
        raise BadSubject(f"{text!r} is not a subject: {EXAMPLE}")
    if not text.isascii() or not text.isprintable() or " " in text:
        raise BadSubject(f"{text!a} is not a subject: it holds white space, control or non-ASCII characters")
    if model.endswith("/"):
        raise BadSubject(f"{text!r} is not a subject: nothing stands after its last slash; {EXAMPLE}")
    return Subject(agent, model)


def moves(model: str) -> bool:
    """Whether a model's name may stand for another one tomorrow: an alias, or no tag where that means the latest."""
    provider, _, name = model.lower().partition("/")
    last = re.split(r"[/:@-]", name or provider)[-1]
    return last in MOVING or (provider in TAGGED and ":" not in name)
