"""Which agent releases the harness is tested with, and where ``scripts/agents.sh`` puts them."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

PINS = Path(__file__).parent / "pins"
APPLICATION = "pytest-wfbench"
SYSTEM_CACHE = Path("/var/cache") / APPLICATION

PACKAGES: Mapping[str, str] = {
    "claude-code": "@anthropic-ai/claude-code",
    "opencode": "opencode-linux-x64",
    "codex": "@openai/codex",
}


def cache_root(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the cache directory: ``WFBENCH_CACHE_DIR``, else the system's for root, else the user's.

    Root's own home is closed to the uid that sandboxes run under, hence the system's directory.
    """
    if configured := environ.get("WFBENCH_CACHE_DIR"):
        return Path(configured).absolute()
    if os.geteuid() == 0:
        return SYSTEM_CACHE
    from platformdirs import user_cache_path

    return user_cache_path(APPLICATION)


def lock_digest() -> str:
    """Return the first 16 hex digits of the SHA-256 of the lock file."""
    return hashlib.sha256((PINS / "package-lock.json").read_bytes()).hexdigest()[:16]


def agents_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the directory that holds ``node_modules`` of the pinned agents once they are installed."""
    return cache_root(environ) / "agents" / lock_digest()


def pinned_version(agent: str) -> str | None:
    """Return the release of an agent that the tests run, or none where npm does not carry it."""
    package = PACKAGES.get(agent)
    manifest = json.loads((PINS / "package.json").read_text())
    dependencies = manifest["dependencies"] | manifest["optionalDependencies"]
    version = dependencies.get(package) if package else None
    return version if isinstance(version, str) else None


def untested(version: str) -> str | None:
    """Return the tested release where a version, as ``Runtime`` has it, is not it; none where it is, or unknown."""
    agent, _, number = version.rpartition(" ")
    pinned = pinned_version(agent)
    return pinned if pinned is not None and number != pinned else None


if __name__ == "__main__":
    sys.stdout.write(f"{agents_directory()}\n")
