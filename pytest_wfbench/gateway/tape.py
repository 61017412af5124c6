"""A session's conversation as a cassette in the making: what was answered, turn by turn, as YAML on the disk."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import yaml

from pytest_wfbench.files import write_atomic
from pytest_wfbench.gateway.api import Labels
from pytest_wfbench.gateway.cassette import Failure, Turn, inputs_of
from pytest_wfbench.gateway.conversation import side_of, subagents
from pytest_wfbench.matrix.yamldoc import UNSTORABLE

# A conversation, none being the main one, and how many answers precede the request in it.
Place = tuple[str | None, int]
SILENCE = Turn(
    error=Failure(status=400, type="not_recorded", message="nothing was asked in this session when it was recorded")
)
OLDER = ".attempt-"
ODD_ENDS = ("\r", "\x85", "\u2028", "\u2029")
UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


def file_name(cell_id: str, session: str) -> str:
    """Return the name of a session's cassette. Cell ids are path-safe and differ; sessions are few, and short."""
    return f"{cell_id}.{UNSAFE.sub('-', session)[:40]}.yaml"


class _Dumper(yaml.SafeDumper):
    """Quotes every text, so that none is taken for a number or a word of YAML's; lines are left as they are."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    storable = UNSTORABLE.sub("\ufffd", text)
    # In lines left as they are, what YAML takes for another line's end would become one.
    lines = "\n" in storable and not any(end in storable for end in ODD_ENDS)
    return dumper.represent_scalar("tag:yaml.org,2002:str", storable, style="|" if lines else '"')


_Dumper.add_representer(str, _write_text)


class _Key(str):
    """A key of the schema, which needs no quotes."""

    __slots__ = ()


_Dumper.add_representer(_Key, lambda dumper, key: dumper.represent_scalar("tag:yaml.org,2002:str", str(key)))


def to_yaml(value: Any) -> str:
    """Return YAML that the reader of cassettes reads as this value."""
    return yaml.dump(value, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=1 << 20)


@dataclass
class Take:
    """One answer to one request, as far as it came: ``turn`` is none until it ended."""

    turn: Turn | None = None


@dataclass(frozen=True)
class Voice:
    """Who answers: a cassette's ``provider`` and ``model``."""

    provider: str
    model: str


@dataclass
class Tape:
    """One cassette. Every answer that ended is in the file when ``keep`` returns. Safe to use from several threads."""

    path: Path
    labels: Labels
    voice: Voice
    redact: Callable[[Any], Any]
    takes: dict[Place, list[Take]] = field(default_factory=dict)
    _texts: dict[Place, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> None:
        """Write the cassette of a session that asks for nothing; those of earlier attempts are put aside."""
        if self.path.exists():
            names = (self.path.with_name(f"{self.path.name}{OLDER}{number}") for number in count(1))
            self.path.replace(next(name for name in names if not name.exists()))
        write_atomic(self.path, self._head() + to_yaml([_plain_turn(SILENCE, None, self.redact)]))

    def side(self, opening: str) -> str | None:
        """Return whose conversation this opens: a subagent's that was started here, or none for the main one."""
        with self._lock:
            told = [take.turn for takes in self.takes.values() for take in takes if take.turn]
        return side_of(subagents(inputs_of(told)), opening)

    def take(self, place: Place) -> Take:
        """Enter a request, in the order in which they come: ``place`` is its conversation, and its turn of that."""
        with self._lock:
            self.takes.setdefault(place, []).append(taken := Take())
        return taken

    def keep(self, place: Place, take: Take, turn: Turn) -> None:
        """Enter what was answered, and write it down. Raises OSError."""
        with self._lock:
            take.turn = turn
            told = [taken.turn for taken in self.takes[place] if taken.turn]
            self._texts[place] = to_yaml([_plain_turn(together(told), place[0], self.redact)])
            write_atomic(self.path, self._head() + "".join(self._texts[place] for place in self._in_order()))

    def _in_order(self) -> Iterator[Place]:
        """Yield the main conversation first, then the others as they began; each by its turns."""
        sides = dict.fromkeys(side for side, _ in self.takes)
        for side in sorted(sides, key=lambda side: side is not None):
            yield from sorted(place for place in self._texts if place[0] == side)

    def _head(self) -> str:
        match = self.labels.model_dump()
        head = {"model": self.voice.model, "provider": self.voice.provider, "match": match}
        return to_yaml(_keyed(head)) + "turns:\n"


def together(answers: Sequence[Turn]) -> Turn:
    """Return one turn that answers one request after the other so. The last one is given ever after."""
    last, earlier = answers[-1], answers[:-1]
    errors = {answer.error for answer in earlier}
    if earlier and len(errors) == 1 and None not in errors:
        (error,) = errors
        if last == earlier[-1]:
            return last
        if error is not None and not (last.error or last.cut):
            return last.model_copy(update={"error": error.model_copy(update={"times": len(earlier)})})
    return last.model_copy(update={"first": tuple(earlier)})


def _plain_turn(turn: Turn, on: str | None, redact: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a turn as a person would write it: without what goes without saying, and without secrets."""
    fields: Mapping[str, Any] = {
        "on": on,
        "model": turn.model,
        "first": [_plain_turn(earlier, None, redact) for earlier in turn.first],
        "text": redact(turn.text),
        "tools": [_plain_tool(redact(tool.name), redact(tool.input), redact(tool.raw)) for tool in turn.tools],
        "usage": _known(turn.usage) if turn.usage is not None else None,
        "stop": turn.stop,
        "delay": turn.delay,
        "error": _known(turn.error.model_copy(update={"message": redact(turn.error.message)})) if turn.error else None,
        "cut": turn.cut,
    }
    return _keyed({name: value for name, value in fields.items() if value or (name == "usage" and value is not None)})


def _plain_tool(name: str, given: Mapping[str, Any], raw: str | None) -> dict[str, Any]:
    return _keyed({"name": name, "input": given} if raw is None else {"name": name, "raw": raw})


def _known(block: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return _keyed({name: value for name, value in block if value is not None})


def _keyed(values: Mapping[str, Any]) -> dict[str, Any]:
    return {_Key(name): _keyed(value) if name == "match" else value for name, value in values.items()}
