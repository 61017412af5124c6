"""Ctrl-C and SIGTERM: the first ends the sweep politely, and no later one disturbs that."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import pytest

SIGNALS = (signal.SIGINT, signal.SIGTERM)
STDERR = 2


class Interrupts:
    """Takes both signals over for the life of a pytest process.

    The handlers are functions, never ``SIG_IGN``, which the programs started during the shutdown would inherit.
    """

    def __init__(self, config: pytest.Config) -> None:
        before = [(number, signal.signal(number, self._first)) for number in SIGNALS]

        def restore() -> None:
            for number, handler in before:
                signal.signal(number, handler)

        config.add_cleanup(restore)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """The end of a sweep is short, and is not to be cut: what it writes is what one came for."""
        self._settle()

    def _first(self, number: int, frame: object) -> None:
        self._settle()
        if number == signal.SIGTERM:
            _say("SIGTERM, ending the sweep")
        raise KeyboardInterrupt

    def _settle(self) -> None:
        for number in SIGNALS:
            signal.signal(number, _later)


def heed_signals(config: pytest.Config) -> None:
    """Let rows stay, the partial report be written, and pytest exit 2, once one of the signals comes."""
    config.pluginmanager.register(Interrupts(config), "wfbench-interrupts")


def _later(number: int, frame: object) -> None:
    _say("the sweep is ending already")


def _say(text: str) -> None:
    # Not through a stream of Python's: the signal may have come in the middle of its own writing.
    with suppress(OSError):
        os.write(STDERR, f"\nwfbench: {text}\n".encode())
