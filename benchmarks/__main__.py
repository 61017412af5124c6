"""``python -m benchmarks [NAME...]``: prints figures; exit 1 where a bound does not hold, 4 for a name of none."""

from __future__ import annotations

import importlib
import sys

NAMES = ("startup", "workspace", "cells", "memory", "gateway", "rows", "reviews")


def main(names: list[str]) -> int:
    if unknown := sorted({*names} - {*NAMES}):
        print(f"no benchmark {', '.join(unknown)}: name some of {', '.join(NAMES)}, or none for all", file=sys.stderr)
        return 4
    held = True
    for name in names or NAMES:
        print(f"== {name}", flush=True)
        for figure in importlib.import_module(f"benchmarks.{name}").measure():
            sign = ">=" if figure.at_least else "<="
            asked = f"  ({sign} {figure.bound:g} asked)" if figure.bound is not None else ""
            mark = "ok  " if figure.holds else "MISS"
            print(f"{mark} {figure.name}: {figure.value:.2f} {figure.unit}{asked}", flush=True)
            held = held and figure.holds
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
