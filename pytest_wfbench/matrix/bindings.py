"""The digests that bind a row to what was asked for. Paths in them are relative: another checkout changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_wfbench.digests import digest_bytes, digest_tree, digest_value
from pytest_wfbench.matrix.load import LoadedTask


@dataclass(frozen=True)
class TaskBinding:
    """Digests of one task: of its prompt, of its oracle's bytes, command and file list, and of all of it together.

    A review's oracle are its labels.
    """

    prompt: str
    oracle: str | None
    oracle_command: str | None
    oracle_manifest: str | None
    task: str


def bind_task(loaded: LoadedTask, variation: int) -> TaskBinding:
    """Return the digests of a task in one wording."""
    task, spec = loaded.task, loaded.task.oracle
    told = task.steps_of(variation)
    prompt = digest_value(told[0] if len(told) == 1 else list(told))
    deciding = loaded.hidden.deciding
    oracle = loaded.hidden.oracle_digest if task.hides else None
    command = digest_value([spec.command, spec.results]) if spec else None
    manifest = digest_value([[entry.name, len(entry.data)] for entry in deciding]) if task.hides else None
    parts: dict[str, Any] = {
        "prompt": prompt,
        "oracle": [oracle, command, manifest],
        "expected": sorted(loaded.hidden.expected.tests) if loaded.hidden.expected else None,
        "setup": task.setup,
        "verify": task.verify,
        "private": sorted(task.private),
        "timeout": task.timeout.model_dump(),
        "limits": task.limits.model_dump(),
        "provider_tools": sorted(task.provider_tools),
        "dependencies": sorted([entry.source, entry.target] for entry in task.dependencies),
        "mcp": {name: server.model_dump() for name, server in task.mcp.items()},
    }
    if task.kind == "question":
        parts |= {"rubric": task.rubric, "checks": [check.model_dump(mode="json") for check in task.checks]}
    if patch := loaded.hidden.patch:
        parts |= {"patch": digest_bytes(patch.data)}
    return TaskBinding(prompt, oracle, command, manifest, digest_value(parts))


def overlay_digest(files: Mapping[str, bytes]) -> str | None:
    """Return the digest of a candidate overlay, or none where there is none."""
    return digest_tree(files.items()) if files else None


def proof_digest(loaded: LoadedTask) -> str:
    """Return what an expectation is bound to: the oracle's bytes and its command."""
    command = loaded.task.oracle.command if loaded.task.oracle else ""
    return digest_tree([("command", command.encode()), *((e.name, e.data) for e in loaded.hidden.oracle)])
