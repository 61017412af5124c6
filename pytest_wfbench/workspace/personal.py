"""Directories of this machine that no task may show to agents, whoever wrote its case file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_SYSTEM = ("/boot", "/dev", "/etc", "/proc", "/run", "/sys")
_OF_HOME = (
    ".aws", ".azure", ".config", ".docker", ".gnupg", ".kube", ".password-store", ".ssh", ".mozilla", ".terraform.d",
    ".claude", ".claude.json", ".codex", ".local/share/keyrings", ".local/share/opencode",
    ".netrc", ".git-credentials", ".npmrc", ".pypirc", ".cargo/credentials", ".cargo/credentials.toml",
    ".gem/credentials", ".gradle/gradle.properties", ".m2/settings.xml", ".bash_history", ".zsh_history",
)  # fmt: skip


def personal_part(path: Path) -> Path | None:
    """Return a directory with what is yours or the machine's own that a path holds or lies in; none if there is none.

    The harness may be able to read more than an agent ever could: root reads everything.
    """
    real = path.resolve()
    return next((p for p in _places() if real.is_relative_to(p) or p.is_relative_to(real)), None)


def _places() -> Iterator[Path]:
    yield from (Path(name) for name in _SYSTEM)
    with suppress(RuntimeError):  # A user without a home has nothing in it.
        home = Path.home()
        yield from (place.resolve() for name in _OF_HOME if (place := home / name).exists())
