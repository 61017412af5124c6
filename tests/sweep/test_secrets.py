"""Keys in files that are committed."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_wfbench.sweep.secrets import written_keys

OWN = "team-key-0123456789"


def problems(directory: Path, text: str, **environment: str) -> list[str]:
    file = directory / "x.cases.yaml"
    file.write_text(text)
    return [str(problem) for problem in written_keys([file, file], environment)]


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("sk-ant-api03-abcdefgh_ijklmnop", "an Anthropic key"),
        ("sk-or-v1-0123456789abcdef", "an OpenRouter key"),
        ("sk-proj-abcdefghijklmnop", "an OpenAI key"),
        ("sk-0123456789abcdefghij", "a provider's key (sk-…)"),
        ("sk-abcdefghijklmnop1_x", "a provider's key (sk-…)"),
        ("AIza" + "x1" * 17 + "y", "a Google key"),
        ("gsk_" + "a1" * 15, "a provider's key"),
        ("hf_" + "a1" * 10, "a Hugging Face token"),
        (OWN, "the value of LITELLM_PROXY_API_KEY"),
    ],
)
@pytest.mark.parametrize("line", ["    env: {{API_KEY: {}}}", "  prompt: use '{}' there", "# {}", 'x: "Bearer {}"'])
def test_refused(tmp_path: Path, key: str, name: str, line: str) -> None:
    """A key is refused wherever in a file it stands, by what it is and where, and is not repeated."""
    (told,) = problems(tmp_path, f"tasks:\n{line.format(key)}\n", LITELLM_PROXY_API_KEY=OWN)
    assert f"x.cases.yaml:2: holds {name}." in told
    assert key not in told


@pytest.mark.parametrize(
    "text",
    [
        "prompt: make sk-learn-compatible-estimators pass",
        "prompt: task-0123456789abcdefghij",
        "prompt: risk-based-0123456789-scoring",
        "prompt: read OPENAI_API_KEY from the environment",
        "prompt: sk-short1",
        "prompt: the free route",
    ],
)
def test_words(tmp_path: Path, text: str) -> None:
    """Words that only look a little like one pass; so does the value of a variable that is too short to be a key."""
    assert problems(tmp_path, text, OPENAI_API_KEY="free", OPENROUTER_API_KEY="") == []


def test_unreadable(tmp_path: Path) -> None:
    """A file that is not there, or is none, is said by whoever reads it for its content."""
    (tmp_path / "link.yaml").symlink_to(tmp_path / "nowhere")
    assert list(written_keys([tmp_path / "gone.yaml", tmp_path, tmp_path / "link.yaml"], {})) == []
