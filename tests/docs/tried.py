"""Which attacks and faults are tried, as pytest collects them, and which tests there are at all."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
AREAS = ("tests/attack", "tests/faults")
RAIDERS = "Raiders"


def collected() -> Counter[str]:
    """Return how many tests, each parameter counted, pytest collects in each file of the areas."""
    argv = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    ended = subprocess.run([*argv, *AREAS], cwd=ROOT, env=env, capture_output=True, text=True, timeout=300)
    if ended.returncode:
        raise RuntimeError(ended.stdout[-3000:] + ended.stderr[-1000:])
    return Counter(line.partition("::")[0] for line in ended.stdout.splitlines() if "::" in line)


def tried_rows() -> Iterator[str]:
    """Yield the rows of the table of what is tried: about, hostile scripts, tests, file; and their sums."""
    tests = collected()
    scripts = {name: hostile_scripts(ROOT / name) for name in tests}
    for name in sorted(tests):
        about = (ast.get_docstring(ast.parse((ROOT / name).read_text())) or "").partition("\n")[0].rstrip(".")
        yield f"| {about} | {scripts[name] or '–'} | {tests[name]} | `{name}` |"
    yield f"| all | {sum(scripts.values())} | {sum(tests.values())} | – |"


def hostile_scripts(path: Path) -> int:
    """Count the scripts that a module lets loose as agents: in what it gives to ``Raiders``, by name or in place."""
    tree = ast.parse(path.read_text())
    given = {node for call in ast.walk(tree) if (node := _scripts_of(call))}
    local = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id.islower()
    }
    expressions = [local.get(node.id, node) if isinstance(node, ast.Name) else node for node in given]
    names = {part.id for node in expressions for part in ast.walk(node) if isinstance(part, ast.Name)}
    in_place = sum(len(node.keys) for node in expressions if isinstance(node, ast.Dict))
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts)) if names else None
    values = [getattr(module, name, None) for name in sorted(names) if name.isupper()]
    return in_place + sum(len(value) for value in values if isinstance(value, Mapping))


def _scripts_of(call: ast.AST) -> ast.expr | None:
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == RAIDERS):
        return None
    named = [word.value for word in call.keywords if word.arg == "scripts"]
    return next(iter([*call.args, *named]), None)


def defined_tests(path: Path) -> set[str]:
    """Return the ids of the tests that a file defines, without parameters: ``path::Class::test``, ``path::test``."""
    name = path.relative_to(ROOT).as_posix()
    found = set()
    for node in ast.parse(path.read_text()).body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{name}::{node.name}" if isinstance(node, ast.ClassDef) else name
        for function in inner:
            if isinstance(function, ast.FunctionDef) and function.name.startswith("test"):
                found |= {f"{prefix}::{function.name}", prefix}
    return found - {name}
