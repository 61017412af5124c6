"""A cell's side of a gateway that is lost, and comes back or does not."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pytest_wfbench.gateway.api import GatewayLost, Labels, OpenRequest, Route
from pytest_wfbench.gateway.client import Gateway
from pytest_wfbench.gateway.patient import PatientGateway
from pytest_wfbench.gateway.supervisor import GatewayConfig, RunningGateway, start_gateway

MODEL = "replay/x"
SCRIPT = "model: m\nprovider: anthropic\nturns:\n  - {text: hello, usage: {ordinary_input: 1, output: 1}}\n"
REQUEST = OpenRequest(
    cell_id="c", labels=Labels(task="t", arm="a", session="work", run=1, agent="mini"), models=(MODEL,), seconds=60
)


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[RunningGateway]:
    """A gateway without LiteLLM that has a sweep."""
    (tmp_path / "a.yaml").write_text(SCRIPT)
    with start_gateway(GatewayConfig(proxy=False)) as running:
        begin(running, tmp_path)
        yield running


def begin(gateway: RunningGateway, directory: Path) -> None:
    gateway.begin("s", directory / "usage.jsonl", (Route(model=MODEL, cassettes=directory),))


def kill(gateway: RunningGateway) -> None:
    os.kill(gateway.pid, signal.SIGKILL)
    gateway.end_cause()


class TestVigil:
    def test_it_tells_of_the_end(self, begun: RunningGateway) -> None:
        """A vigil is quiet while the gateway lives, and set once it was killed."""
        with begun.watch() as vigil:
            assert (vigil.is_set(), vigil.cause()) == (False, None)
            kill(begun)
            assert vigil.wait(5)
            assert "has ended" in (vigil.cause() or "") or "does not answer" in (vigil.cause() or "")
        assert begun.end_cause() == "the gateway's process ended by signal 9"

    def test_it_leaves_nothing(self, begun: RunningGateway) -> None:
        """The gateway lets go of a vigil whose keeper has gone."""
        process = psutil.Process(begun.pid)
        with begun.watch():
            begun.status()
            during = process.num_fds()
        deadline = time.monotonic() + 5
        while process.num_fds() >= during and time.monotonic() < deadline:
            time.sleep(0.02)
        assert process.num_fds() < during


class TestReturn:
    def test_a_session_waits_for_the_next(self, begun: RunningGateway, tmp_path: Path) -> None:
        """Opening waits until another gateway has taken over, at the same address; doors of the first are lost."""
        cell = PatientGateway(begun.address, lambda: None)
        old = cell.open(REQUEST)
        kill(begun)
        with pytest.raises(GatewayLost, match="does not answer"):
            cell.close(old)
        opened: list[Path] = []
        waiting = threading.Thread(target=lambda: opened.append(cell.open(REQUEST).socket))
        waiting.start()
        begun.stop(replaced=True)
        after = begun.successor()
        begin(after, tmp_path)
        assert opened == []
        after.take_over()
        waiting.join(10)
        assert [path.exists() for path in opened] == [True]
        with pytest.raises(GatewayLost, match="was lost, and this is another one"):
            Gateway(begun.address).close(old)
        after.stop()

    def test_not_when_the_sweep_was_given_up(self, begun: RunningGateway) -> None:
        """Nobody waits for a gateway that will not come back; the cause is the sweep's."""
        kill(begun)
        began = time.monotonic()
        with pytest.raises(GatewayLost, match="lost twice"):
            PatientGateway(begun.address, lambda: "lost twice").open(REQUEST)
        assert time.monotonic() - began < 2
