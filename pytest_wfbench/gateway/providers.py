"""The providers a subject's model may name, and where their keys come from: the environment, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pytest_wfbench.gateway.control import Provider


class ProviderUnknown(Exception):
    """A model names a provider that cannot be reached; the message says which can."""


class KeyMissing(Exception):
    """A provider's key is not in the environment; the message names the variable."""


@dataclass(frozen=True)
class KnownProvider:
    """A provider: the variable that holds its key, the one that may hold its base URL, and the base URL otherwise."""

    name: str
    key_variable: str
    url_variable: str
    base_url: str


KNOWN: tuple[KnownProvider, ...] = (
    KnownProvider("anthropic", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    KnownProvider("openai", "OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com"),
)


def provider_of(model: str, environment: Mapping[str, str]) -> Provider:
    """Return the provider of a model ``<provider>/<name>``.

    Raises:
        ProviderUnknown: for a provider that is not in ``KNOWN``, or a model without one.
        KeyMissing: when its key is not in the environment.
    """
    name, slash, rest = model.partition("/")
    known = next((provider for provider in KNOWN if provider.name == name), None)
    if known is None or not slash or not rest:
        names = ", ".join(f"{provider.name}/…" for provider in KNOWN)
        raise ProviderUnknown(
            f"model {model!r} names no provider that can be reached: use {names} or replay/<cassette>"
        )
    key = environment.get(known.key_variable, "").strip()
    if not key:
        raise KeyMissing(f"model {model!r} needs a key: set {known.key_variable}")
    url = environment.get(known.url_variable, "").strip().rstrip("/") or known.base_url
    return Provider(name=name, base_url=url.removesuffix("/v1"), key=key)


def providers_of(models: Iterable[str], environment: Mapping[str, str]) -> Iterator[Provider]:
    """Yield the providers of some models, each once. Raises as ``provider_of``."""
    found = {provider.name: provider for provider in (provider_of(model, environment) for model in models)}
    yield from found.values()
