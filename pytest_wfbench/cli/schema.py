"""``wfbench schema``: the JSON Schema of what is read and written."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from types import MappingProxyType

import click

MODELS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "row": ("pytest_wfbench.evidence.row", "Row"),
        "sweep": ("pytest_wfbench.evidence.manifest", "Sweep"),
        "task": ("pytest_wfbench.matrix.task", "Task"),
        "baseline": ("pytest_wfbench.evidence.baseline", "Baseline"),
        "promotion": ("pytest_wfbench.promotion.model", "Promotion"),
    }
)


@click.command("schema")
@click.argument("name", type=click.Choice(sorted(MODELS)))
def command(name: str) -> None:
    """Print the JSON Schema of a row, a sweep manifest, a task, a baseline or a promotion.

    \b
    Example:
        wfbench schema row > row.schema.json
    """
    module, model = MODELS[name]
    schema = getattr(importlib.import_module(module), model).model_json_schema(by_alias=True)
    plain = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    click.echo(json.dumps(plain, indent=1, ensure_ascii=False))
