"""A directory on a disk of its own, small enough to fill, for one pytest and its children."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LEFT_OUT = ("CI", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_TESTRUNUID", "PYTEST_CURRENT_TEST")
MOUNT = 'mount -t tmpfs -o size="$SIZE",mode=0777 none "$DISK" || exit 99'


@dataclass(frozen=True)
class Ended:
    status: int
    output: str


def run_on_small_disk(
    suite: Path, disk: Path, size: str, arguments: Sequence[str], environment: Mapping[str, str] | None = None
) -> Ended:
    """Run pytest on a suite where ``disk`` is a disk of ``size``; what it holds in the end is copied beside it.

    Whoever runs this may mount, in name spaces of its own; pytest itself then has no more rights than usual.
    """
    disk.mkdir(parents=True, exist_ok=True)
    mine = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-current-user", "--mount", "--keep-caps"]
    drop = "" if os.geteuid() == 0 else "setpriv --ambient-caps=-all --inh-caps=-all "
    command = shlex.join([sys.executable, "-m", "pytest", "cases", "-p", "no:cacheprovider", *arguments])
    script = f'{MOUNT}\n{drop}{command}; status=$?\ncp -a "$DISK" "$DISK.kept"; exit $status'
    env = {name: value for name, value in os.environ.items() if name not in LEFT_OUT} | dict(environment or {})
    ran = subprocess.run(
        [*mine, "sh", "-c", script], cwd=suite, env={**env, "DISK": str(disk), "SIZE": size},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
    )  # fmt: skip
    assert ran.returncode != 99, f"this user cannot mount: {ran.stdout!r}"
    return Ended(ran.returncode, ran.stdout.decode(errors="replace"))
