"""Which paths a snapshot leaves out, and when it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_wfbench.workspace.hiding import TELLING_BYTES, Hiding
from pytest_wfbench.workspace.repository import RepositoryProblem

LARGE, SMALL = b"x" * TELLING_BYTES, b"x" * (TELLING_BYTES - 1)


@pytest.mark.parametrize("written", ["a/b", "./a/b", "a/b/", "a//b"])
def test_hides(written: str) -> None:
    """A path is hidden with all below it, however it is written; what only begins like it is not."""
    for hiding in (Hiding([written], []), Hiding([], [written])):
        assert [path for path in (b"a/b", b"a/b/c", b"a", b"a/bc", b"b") if hiding.hides(path)] == [b"a/b", b"a/b/c"]


def test_copies() -> None:
    """The bytes of a private file are refused under another name; small ones, and the harness's own files, are not."""
    hiding = Hiding(["hidden"], ["cases"])
    with pytest.raises(RepositoryProblem, match="'twin' holds the bytes of the private 'hidden/t'"):
        hiding.refuse_copies(Path("r"), [(b"twin", LARGE), (b"hidden/t", LARGE)], len)
    hiding.refuse_copies(Path("r"), [(b"twin", SMALL), (b"hidden/t", SMALL)], len)
    hiding.refuse_copies(Path("r"), [(b"twin", LARGE), (b"cases/t", LARGE)], len)
    hiding.refuse_copies(Path("r"), [(b"hidden/u", LARGE), (b"hidden/t", LARGE), (b"cases/t", LARGE)], len)
