"""What a session and its items carry from hook to hook."""

from __future__ import annotations

import pytest

from pytest_wfbench.evidence.row import Row
from pytest_wfbench.matrix.cells import Cell
from pytest_wfbench.sweep.context import SweepContext

SWEEP = pytest.StashKey[SweepContext]()
CELL = pytest.StashKey[Cell]()
ROW = pytest.StashKey[Row]()
EARLIER = pytest.StashKey[list[Row]]()
OPENING = pytest.StashKey[float]()
