"""Where a model's provider is, and what the environment must say of it."""

from __future__ import annotations

import pytest

from pytest_wfbench.gateway.providers import KNOWN, ProviderUnusable, provider_of, providers_of
from pytest_wfbench.gateway.proxy import configuration, litellm_name
from pytest_wfbench.wires import ANTHROPIC, CHAT, RESPONSES

TEAM = "litellm/team-model"
KEY = "sk-team-0123456789abcdef"
ROOT = "https://llm.example"


def faults(model: str, **environment: str) -> list[str]:
    with pytest.raises(ProviderUnusable) as caught:
        provider_of(model, environment)
    return [f"{fault.message}. {fault.remedy}" for fault in caught.value.faults]


class TestBaseUrl:
    @pytest.mark.parametrize(
        ("text", "url"),
        [
            (ROOT, ROOT),
            (f"{ROOT}/", ROOT),
            (f"{ROOT}/v1", ROOT),
            (f" {ROOT}/v1/ ", ROOT),
            (f"{ROOT}:4000/team/v1", f"{ROOT}:4000/team"),
            ("http://[::1]:4000", "http://[::1]:4000"),
        ],
    )
    def test_root(self, text: str, url: str) -> None:
        """The proxy's root is what is meant, with or without a last slash or /v1."""
        provider = provider_of(TEAM, {"LITELLM_PROXY_URL": text, "LITELLM_PROXY_API_KEY": KEY})
        assert (provider.name, provider.base_url, provider.key) == ("litellm", url, KEY)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("llm.example", "does not begin with http:// or https://"),
            ("ftp://llm.example", "does not begin with http:// or https://"),
            ("file:///etc/passwd", "does not begin with http:// or https://"),
            (KEY, "does not begin with http:// or https://"),
            (f"https://user:{KEY}@llm.example", "holds credentials"),
            (f"https://{KEY}@llm.example", "holds credentials"),
            ("https://", "names no host"),
            ("https://:4000", "names no host"),
            ("https://llm.example:0", "names no host"),
            ("https://llm.example:port", "does not read"),
            ("https://llm.example:99999", "does not read"),
            ("https://[llm", "does not read"),
            ("https://llm.exa mple", "white space"),
            ("https://llm.example\r\nx: y", "white space"),
            ("https://llm.exämple", "non-ASCII"),
            (f"https://llm.example/?key={KEY}", "query"),
            ("https://llm.example/#", "fragment"),
        ],
    )
    @pytest.mark.parametrize(("model", "variable"), [(TEAM, "LITELLM_PROXY_URL"), ("openai/gpt", "OPENAI_BASE_URL")])
    def test_garbage(self, model: str, variable: str, text: str, words: str) -> None:
        """What is no base URL is refused, by the variable's name, and not repeated: it may hold a key."""
        (told,) = faults(model, **{variable: text, "LITELLM_PROXY_API_KEY": KEY, "OPENAI_API_KEY": KEY})
        assert words in told
        assert variable in told
        assert KEY not in told

    @pytest.mark.parametrize(
        ("host", "url"),
        [
            (None, "http://127.0.0.1:11434"),
            ("", "http://127.0.0.1:11434"),
            ("127.0.0.1:8000", "http://127.0.0.1:8000"),
            ("box", "http://box:11434"),
            ("[::1]", "http://[::1]:11434"),
            ("0.0.0.0", "http://127.0.0.1:11434"),
            ("0.0.0.0:8000", "http://127.0.0.1:8000"),
            (":8000", "http://127.0.0.1:8000"),
            ("https://box.example/", "https://box.example"),
        ],
    )
    def test_ollama(self, host: str | None, url: str) -> None:
        """OLLAMA_HOST is read as Ollama reads it; nothing need be set."""
        provider = provider_of("ollama/qwen3:8b", {} if host is None else {"OLLAMA_HOST": host})
        assert (provider.base_url, provider.key) == (url, "")


class TestKeys:
    def test_all_that_is_missing(self) -> None:
        """Every variable that is missing is named at once."""
        url, key = faults(TEAM)
        assert "Set LITELLM_PROXY_URL" in url
        assert key == f"model {TEAM!r} needs a key. Set LITELLM_PROXY_API_KEY"

    @pytest.mark.parametrize("known", [known for known in KNOWN if known.key_variable], ids=lambda known: known.name)
    def test_blank(self, known: object) -> None:
        """A blank key is none; one with a line break in it is no key, and is not repeated."""
        variable, name = known.key_variable, known.name  # type: ignore[attr-defined]
        url = {known.url_variable: ROOT}  # type: ignore[attr-defined]
        assert f"Set {variable}" in faults(f"{name}/x", **url, **{variable: " \n"})[0]
        (told,) = faults(f"{name}/x", **url, **{variable: f"{KEY}\r\nhost: evil"})
        assert (variable in told, KEY in told) == (True, False)

    @pytest.mark.parametrize("model", ["gpt", "nobody/gpt", "openai/", "/gpt", "litellm"])
    def test_unknown(self, model: str) -> None:
        """A model without a provider that can be reached is told which can."""
        (told,) = faults(model, OPENAI_API_KEY=KEY)
        assert all(f"{known.name}/…" in told for known in KNOWN)

    def test_each_once(self) -> None:
        """Several models of one provider share it."""
        models = ("openai/a", "openai/b", "ollama/c:1")
        assert [p.name for p in providers_of(models, {"OPENAI_API_KEY": KEY})] == ["openai", "ollama"]


class TestNames:
    @pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
    @pytest.mark.parametrize("wire", [ANTHROPIC, RESPONSES, CHAT])
    def test_configured(self, known: object, wire: str) -> None:
        """Whatever a door asks LiteLLM for is in its configuration."""
        groups = {entry["model_name"] for entry in configuration()["model_list"]}
        name = litellm_name(known.name, "m/x", wire)  # type: ignore[attr-defined]
        assert name.endswith("/m/x")
        assert f"{name.removesuffix('/m/x')}/*" in groups
