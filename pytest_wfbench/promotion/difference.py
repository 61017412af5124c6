"""How two promotion.json differ, leaf by leaf: one was written, the other follows from the rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

NEAR = 1e-6


def differences(said: Any, found: Any, where: str = "") -> Iterator[str]:
    """Yield a sentence for each leaf in which a JSON value differs from the one computed afresh.

    Numbers are alike up to a millionth: another machine's libraries may round otherwise.
    """
    if isinstance(said, dict) and isinstance(found, dict):
        for key in [*found, *(key for key in said if key not in found)]:
            yield from differences(said.get(key), found.get(key), f"{where}.{key}" if where else str(key))
    elif isinstance(said, list) and isinstance(found, list) and len(said) == len(found):
        for index, (one, other) in enumerate(zip(said, found, strict=True)):
            yield from differences(one, other, f"{where}[{index}]")
    elif not _alike(said, found):
        yield f"{where}: the file says {_shown(said)}, the rows say {_shown(found)}."


def _alike(said: Any, found: Any) -> bool:
    if isinstance(said, float | int) and isinstance(found, float | int) and bool not in (type(said), type(found)):
        return math.isclose(said, found, rel_tol=NEAR, abs_tol=NEAR)
    return type(said) is type(found) and bool(said == found)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"{len(value)} entries"
    return "nothing" if value is None else f"{value!r}"[:200]
