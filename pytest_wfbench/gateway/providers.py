"""The providers a subject's model may name, where they are, and where their keys come from: the environment alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

from pytest_wfbench.gateway.control import Provider
from pytest_wfbench.wires import ANTHROPIC, CHAT, RESPONSES

UNFIT = re.compile(r"[^\x21-\x7e]")
# Where an address means "any", its clients mean this machine.
ANYWHERE: Mapping[str, str] = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}


class Fault(NamedTuple):
    """Why a model cannot be reached, and what to do. Neither ever holds the value of a variable."""

    message: str
    remedy: str


class ProviderUnusable(Exception):
    """A model's provider is unknown, or the environment does not say how to reach it: every fault of it at once."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(f"{fault.message}: {fault.remedy}" for fault in self.faults))


@dataclass(frozen=True)
class KnownProvider:
    """A provider: the variable of its key (none: it takes none), that of its base URL, and the base URL otherwise.

    ``speaks`` are the wire formats of its own: a request in another one is translated. Without a ``base_url`` the
    variable must be set. ``bare_port`` is the port of an address without a scheme, which only such a provider may have.
    """

    name: str
    speaks: frozenset[str]
    key_variable: str | None
    url_variable: str
    base_url: str | None
    bare_port: int | None = None


EVERY = frozenset({ANTHROPIC, RESPONSES, CHAT})
KNOWN: tuple[KnownProvider, ...] = (
    KnownProvider(
        "anthropic", frozenset({ANTHROPIC}), "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https://api.anthropic.com"
    ),
    KnownProvider("openai", EVERY - {ANTHROPIC}, "OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com"),
    KnownProvider("litellm", EVERY, "LITELLM_PROXY_API_KEY", "LITELLM_PROXY_URL", None),
    KnownProvider("openrouter", EVERY, "OPENROUTER_API_KEY", "OPENROUTER_BASE_URL", "https://openrouter.ai/api"),
    KnownProvider("ollama", frozenset({CHAT}), None, "OLLAMA_HOST", "http://127.0.0.1:11434", 11434),
    KnownProvider("opencode-go", frozenset({CHAT}), "OPENCODE_GO_API_KEY", "OPENCODE_GO_BASE_URL", None),
)
BY_NAME: Mapping[str, KnownProvider] = {provider.name: provider for provider in KNOWN}


def provider_of(model: str, environment: Mapping[str, str]) -> Provider:
    """Return the provider of a model ``<provider>/<name>``.

    Raises:
        ProviderUnusable: for a provider that is not in ``KNOWN`` or a model without one, and for a key or a base URL
            that is missing or cannot be one.
    """
    name, slash, rest = model.partition("/")
    known = BY_NAME.get(name)
    if known is None or not slash or not rest:
        names = ", ".join(f"{provider.name}/…" for provider in KNOWN)
        message = f"model {model!r} names no provider that can be reached"
        raise ProviderUnusable([Fault(message, f"Use {names} or replay/<cassette>")])
    url, at_url = _base_url(known, environment)
    key, at_key = _key(known, environment)
    missing = [*at_url, *at_key]
    if missing:
        raise ProviderUnusable(Fault(f"model {model!r} {fault.message}", fault.remedy) for fault in missing)
    return Provider(name=name, base_url=url, key=key)


def providers_of(models: Iterable[str], environment: Mapping[str, str]) -> Iterator[Provider]:
    """Yield the providers of some models, each once. Raises as ``provider_of``."""
    found = {provider.name: provider for provider in (provider_of(model, environment) for model in models)}
    yield from found.values()


def _key(known: KnownProvider, environment: Mapping[str, str]) -> tuple[str, list[Fault]]:
    if known.key_variable is None:
        return "", []
    key = environment.get(known.key_variable, "").strip()
    if not key:
        return "", [Fault("needs a key", f"Set {known.key_variable}")]
    if UNFIT.search(key):
        return "", [Fault(f"has a key with white space or control characters in it: {known.key_variable}", "Mend it")]
    return key, []


def _base_url(known: KnownProvider, environment: Mapping[str, str]) -> tuple[str, list[Fault]]:
    """Return the base URL without its last slash and ``/v1``, which requests have themselves."""
    text = environment.get(known.url_variable, "").strip() or known.base_url
    if text is None:
        return "", [
            Fault("needs the URL of its proxy", f"Set {known.url_variable}, for example to https://llm.example")
        ]
    if known.bare_port is not None and "://" not in text:
        text = _with_scheme(text, known.bare_port)
    if (wrong := _wrong_with(text)) is not None:
        remedy = f"Write http(s)://host[:port] there; keys go into {known.key_variable or 'no variable: it takes none'}"
        return "", [Fault(f"has a base URL that {wrong}: {known.url_variable}", remedy)]
    return text.rstrip("/").removesuffix("/v1").rstrip("/"), []


def _with_scheme(text: str, port: int) -> str:
    """Return Ollama's way to write an address as a URL: ``host``, ``host:port`` or ``:port``."""
    host, colon, given = text.rstrip("/").rpartition(":")
    if not colon or given.endswith("]"):
        host, given = text.rstrip("/"), str(port)
    bare = host.strip("[]")
    return f"http://{ANYWHERE.get(bare, host or '127.0.0.1')}:{given or port}"


def _wrong_with(text: str) -> str | None:
    """Say what makes a text no base URL, without a word of it: it may hold a secret."""
    if UNFIT.search(text):
        return "holds white space, control or non-ASCII characters"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return "does not read"
    if parts.scheme not in ("http", "https"):
        return "does not begin with http:// or https://"
    if parts.username is not None or parts.password is not None:
        return "holds credentials"
    if not parts.hostname or port == 0:
        return "names no host"
    return "has a query or a fragment" if parts.query or parts.fragment or "?" in text or "#" in text else None
