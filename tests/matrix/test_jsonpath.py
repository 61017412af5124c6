"""The paths that checks can follow."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_wfbench.matrix.jsonpath import BadPath, look_up, read_path

VALUE: dict[str, Any] = {"a": [{"b": 1}, {"b": 2, "c": None}], "it's": {"x": "y"}, "ü-1": 3}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$", [VALUE]),
        ("$.a[0].b", [1]),
        ("$.a[-1]['b']", [2]),
        ("$.a[*].b", [1, 2]),
        ("$.a.*.b", [1, 2]),
        ("$.a[5]", []),
        ("$.a[1].c", [None]),
        ("$['it\\'s'][\"x\"]", ["y"]),
        ("$.ü-1", [3]),
        ("$.a.b", []),
        ("$[0]", []),
    ],
)
def test_leads_where_it_says(path: str, found: list[Any]) -> None:
    """A path leads to every value that it names, and to none where there is none."""
    assert look_up(VALUE, path) == found


@pytest.mark.parametrize(
    "path", ["", "a", "$.", "$..a", "$[", "$[1:2]", "$[?(@.a)]", "$.a b", "$['a", "$" + ".a" * 101]
)
def test_anything_else_is_refused(path: str) -> None:
    """What is not understood is never taken for something else."""
    with pytest.raises(BadPath):
        read_path(path)
