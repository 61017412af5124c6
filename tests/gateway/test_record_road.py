"""Recording over the whole road, with a real LiteLLM, up to the death of the gateway."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_wfbench.gateway.api import Labels, OpenRequest, Route
from pytest_wfbench.gateway.cassette import load_cassettes
from pytest_wfbench.gateway.supervisor import GatewayConfig, start_gateway

from .conftest import MODEL, SCRIPTS, USER, Session

pytestmark = pytest.mark.slow

PATHS = ("/v1/messages", "/v1/responses", "/v1/chat/completions")


class TestKilled:
    def test_nothing_is_lost(self, tmp_path: Path) -> None:
        """Whoever has an answer can count on its turn: it is on the disk when the gateway is killed the moment after.

        The source is a replay, in all three formats, streamed and not; what is recorded of it is what was played.
        """
        scripts, tape = tmp_path / "scripts", tmp_path / "tape"
        scripts.mkdir()
        for name in ("claude", "gpt", "retry"):
            (scripts / f"{name}.yaml").write_text(SCRIPTS[name])
        played = {script.file.stem: script.cassette.turns for script in load_cassettes(scripts).scripts}
        expected = {}
        with start_gateway(GatewayConfig()) as gateway:
            gateway.begin("sweep", tmp_path / "usage.jsonl", (Route(model=MODEL, cassettes=scripts),), tape)
            gateway.wait_ready()
            gateway.self_test()
            for number, path in enumerate(PATHS * 2):
                for task in ("claude", "gpt"):
                    cell = f"{task}-{number}"
                    labels = Labels(task=task, arm="a", session="work", run=number + 1, agent="mini")
                    request = OpenRequest(cell_id=cell, labels=labels, models=(MODEL,), seconds=60)
                    asked = {"input": "hi"} if path == "/v1/responses" else {"messages": [USER], "max_tokens": 9}
                    session = Session(gateway, gateway.open(request))
                    assert session.post(path, stream=number >= len(PATHS), **asked)[0] == 200
                    expected[task, number + 1] = played[task][:1]
            gateway.kill()
        found = {(s.cassette.match.task, s.cassette.match.run): s.cassette.turns for s in load_cassettes(tape).scripts}
        assert {key: [plain(turn) for turn in turns] for key, turns in found.items()} == {
            key: [plain(turn) for turn in turns] for key, turns in expected.items()
        }


def plain(turn: object) -> dict[str, object]:
    """A turn as plain values, its input as its whole: formats differ in which parts they tell."""
    values = turn.model_dump()  # type: ignore[attr-defined]
    usage = values["usage"]
    usage["total_input"] = turn.usage.whole_input  # type: ignore[attr-defined]
    usage.pop("ordinary_input")
    return dict(values)
