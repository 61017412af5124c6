"""Results directories whose rows and manifests speak to whoever reads them: no verb passes it on as it is."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_wfbench.cli import main
from pytest_wfbench.evidence.event import Event

pytestmark = pytest.mark.slow

FORGED = "FORGED promote"
SPEECH = f"x\u202e\x1b[2J\x9b\u200b\n{FORGED}\n::set-output name=a::b\n##[group]x\r{FORGED}"
VERBS = ("report", "gate", "comment", "cost", "power")
Files = dict[str, Any]


def _everywhere(files: Files, name: str, value: Any) -> None:
    for row in files["results.jsonl"]:
        row[name] = value


def arms(files: Files) -> None:
    _everywhere(files, "arm", SPEECH)


def subjects(files: Files) -> None:
    _everywhere(files, "subject", SPEECH)
    files["sweep.json"]["subjects"][0]["subject"] = SPEECH


def tasks(files: Files) -> None:
    _everywhere(files, "task", SPEECH)


def shards(files: Files) -> None:
    files["sweep.json"]["shard"] = SPEECH


def candidates(files: Files) -> None:
    files["sweep.json"]["candidate"]["required_arms"] = [SPEECH]


def words_of_rows(files: Files) -> None:
    for name in ("reason", "agent_version", "requested_model", "price_table", "host", "kind"):
        _everywhere(files, name, SPEECH)
    for name in ("models_answered", "skills_used", "skills_expected"):
        _everywhere(files, name, [SPEECH])


def keys_of_rows(files: Files) -> None:
    files["results.jsonl"][0][SPEECH] = 1


def keys_of_manifests(files: Files) -> None:
    files["sweep.json"][SPEECH] = 1


def events(files: Files) -> None:
    usage = {"input_tokens": 1, "output_tokens": 1}
    event = Event(
        sweep_id="s", cell_id=files["results.jsonl"][0]["cell_id"], session="work", call_id="1", status="success",
        wire="anthropic-messages", started_at="2026-01-02T03:04:05.000Z", completed_at="2026-01-02T03:04:06.000Z",
        answered_model=SPEECH, native_usage=usage,
    )  # fmt: skip
    files["usage.jsonl"] = [json.loads(event.model_dump_json())]


PLANTS: tuple[Callable[[Files], None], ...] = (
    arms, subjects, tasks, shards, candidates, words_of_rows, keys_of_rows, keys_of_manifests, events,
)  # fmt: skip


@pytest.mark.parametrize("plant", PLANTS, ids=[plant.__name__ for plant in PLANTS])
def test_nothing_speaks(
    demo: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], plant: Callable[[Files], None]
) -> None:
    """No verb prints or writes what moves a cursor, hides, begins a line of its own, or orders a CI runner."""
    demo.write(tmp_path)
    rows = (tmp_path / "results.jsonl").read_text().splitlines()
    files: Files = {
        "sweep.json": json.loads((tmp_path / "sweep.json").read_text()),
        "results.jsonl": [json.loads(line) for line in rows],
    }
    plant(files)
    for name, value in files.items():
        lines = value if isinstance(value, list) else [value]
        (tmp_path / name).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    told = 0
    for verb in VERBS:
        main([verb, str(tmp_path), *(["--sims", "5"] if verb == "power" else [])])
        printed = capsys.readouterr()
        written = [path.read_text() for name in ("report.md", "comment.md") if (path := tmp_path / name).exists()]
        for text in (printed.out, printed.err, *written):
            invisible = {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - set("\n")
            assert not invisible, verb
            assert not re.search(rf"^\s*(?:{FORGED}|::)|##\[", text, re.MULTILINE), verb
            told += "FORGED" in text
    assert told
