"""The tokens that a scripted answer reports, in neutral names: those that its provider can report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

ProviderName = Literal["anthropic", "openai", "litellm", "openrouter", "ollama", "opencode-go"]
Tokens = Annotated[int, Field(ge=0)]


class Reported(BaseModel):
    """What an answer reports, in neutral names; a field that is left out is not reported.

    ``cache_write_hour`` is how much of ``cache_write_input`` was written for an hour, where that is told.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    ordinary_input: Tokens | None = None
    cache_read_input: Tokens | None = None
    cache_write_input: Tokens | None = None
    cache_write_hour: Tokens | None = None
    total_input: Tokens | None = None
    output: Tokens | None = None
    reasoning_output: Tokens | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        parts = self._parts()
        if parts is not None and self.total_input not in (None, parts):
            raise ValueError(f"total_input is not the sum of the three inputs: write {parts}, or leave it out")
        if (self.cache_write_hour or 0) > (self.cache_write_input or 0):
            raise ValueError("cache_write_hour is a part of cache_write_input: it cannot be more")
        return self

    def _parts(self) -> int | None:
        parts = (self.ordinary_input, self.cache_read_input, self.cache_write_input)
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None

    @property
    def whole_input(self) -> int | None:
        """All input, where it is stated or its three parts are."""
        return self.total_input if self.total_input is not None else self._parts()


def unreportable(provider: ProviderName, usage: Reported) -> str | None:
    """Say what of a usage its provider never reports, and what to write; none where it may report all of it."""
    fault = _FAULTS[provider](usage)
    return fault and f"{provider} {fault}"


def _of_anthropic(usage: Reported) -> str | None:
    if usage.reasoning_output is not None:
        return "reports no reasoning tokens: leave reasoning_output out"
    if usage.total_input is not None and None in _inputs(usage):
        return "reports no total: write its three parts"
    return None


def _of_openai(usage: Reported) -> str | None:
    if usage.ordinary_input is not None and None in _inputs(usage):
        return "reports a total and what of it was cached: write both cache fields, or total_input alone"
    if usage.cache_write_hour is not None:
        return "does not report cache_write_hour: leave it out"
    return None


def _of_either(usage: Reported) -> str | None:
    return None


def _inputs(usage: Reported) -> tuple[int | None, ...]:
    return usage.ordinary_input, usage.cache_read_input, usage.cache_write_input


# Those that speak either format do so as they are asked.
_FAULTS: Mapping[ProviderName, Callable[[Reported], str | None]] = {
    "anthropic": _of_anthropic,
    "openai": _of_openai,
    "ollama": _of_openai,
    "litellm": _of_either,
    "openrouter": _of_either,
    "opencode-go": _of_either,
}
