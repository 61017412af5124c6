"""The stand-ins for what is too dear to import in every sandbox: they do what the library does."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_wfbench.workspace.light import Child, as_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=10,
)


def exactly(value: Any) -> Any:
    """A value with its types: true is equal to 1."""
    return [exactly(item) for item in value] if isinstance(value, list) else (type(value), value)


class TestJson:
    @given(VALUES)
    def test_reads_back(self, value: Any) -> None:
        """What is written is read as what it was, in ASCII, surrogates and all."""
        text = as_json(value)
        assert text.isascii()
        assert exactly(json.loads(text)) == exactly(value)

    @pytest.mark.parametrize("value", [0, 1, True, False, None, "\udcff\U0001f600", (), [0, [1, '\n"\\']]])
    def test_as_the_library(self, value: Any) -> None:
        """The library reads it as it reads its own."""
        assert exactly(json.loads(as_json(value))) == exactly(json.loads(json.dumps(value)))


class TestChild:
    @pytest.mark.parametrize(("ending", "status"), [("raise SystemExit(7)", 7), ("os.kill(os.getpid(), 9)", -9)])
    def test_output(self, ending: str, status: int) -> None:
        """What it prints is read from the pipe; its status is the negative of a signal that ended it."""
        program = f"import os; print('said', flush=True); {ending}"
        child = Child([sys.executable, "-c", program], dict(os.environ), 1)
        with open(child.pipe, "rb") as stream:
            assert stream.read() == b"said\n"
        assert child.wait() == status

    def test_input(self) -> None:
        """What is written to the pipe is its input."""
        child = Child([sys.executable, "-c", "raise SystemExit(len(input()))"], dict(os.environ), 0)
        with open(child.pipe, "wb") as stream:
            stream.write(b"four\n")
        assert child.wait() == 4

    def test_broken_pipe(self) -> None:
        """A program whose output nobody reads dies of it, as it would from a shell."""
        child = Child(["yes"], dict(os.environ), 1)
        os.close(child.pipe)
        assert child.wait() == -13
