"""Ctrl-C and SIGTERM: the first ends the sweep politely, and no later one disturbs that."""

from __future__ import annotations

import atexit
import signal
import sys
from typing import Any

import pytest

SIGNALS = (signal.SIGINT, signal.SIGTERM)
NAME = "wfbench-interrupts"
SAID = "wfbench: SIGTERM, ending the sweep"


class Interrupts:
    """Takes both signals over for the life of a pytest process.

    The handlers are functions, never ``SIG_IGN``, which the programs started during the shutdown would inherit.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.came: int | None = None
        before = [(number, signal.signal(number, self._first)) for number in SIGNALS]

        def restore() -> None:
            if self.came is not None:
                # The interpreter puts the system's own handlers back while it ends, which would take it for killed.
                atexit.register(_ignore)
                return
            for number, handler in before:
                signal.signal(number, handler)

        config.add_cleanup(restore)

    def pytest_keyboard_interrupt(self) -> None:
        """Say why it ends where that was no key: here the terminal is the user's again, and not captured."""
        terminal: Any = self._config.pluginmanager.getplugin("terminalreporter")
        if self.came == signal.SIGTERM and terminal is not None:
            terminal.write_line(SAID)
        elif self.came == signal.SIGTERM:
            sys.stderr.write(f"{SAID}\n")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """The end of a sweep is short, and is not to be cut: what it writes is what one came for."""
        self._settle()

    def _first(self, number: int, frame: object) -> None:
        self.came = number
        self._settle()
        raise KeyboardInterrupt

    def _settle(self) -> None:
        for number in SIGNALS:
            signal.signal(number, _later)


def heed_signals(config: pytest.Config) -> None:
    """Let rows stay, the partial report be written, and pytest exit 2, once one of the signals comes."""
    config.pluginmanager.register(Interrupts(config), NAME)


def is_interrupted(config: pytest.Config) -> bool:
    """Whether one came: pytest ends a collection in the usual way even then."""
    interrupts: Any = config.pluginmanager.getplugin(NAME)
    return interrupts is not None and interrupts.came is not None


def _later(number: int, frame: object) -> None:
    """The sweep is ending already."""


def _ignore() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
