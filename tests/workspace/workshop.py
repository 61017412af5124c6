"""The steps from a small repository to a cell's change, for tests."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_wfbench.sandbox.bubblewrap import Bubblewrap
from pytest_wfbench.sandbox.host import HostSandbox
from pytest_wfbench.sandbox.spec import Command, Finished, Mount
from pytest_wfbench.workspace.churn import Change, changed
from pytest_wfbench.workspace.copies import CopyWorkspace
from pytest_wfbench.workspace.overlay import OverlayWorkspace, Workspace, open_workspace
from pytest_wfbench.workspace.repository import resolve
from pytest_wfbench.workspace.startstate import StartState, make_start
from pytest_wfbench.workspace.template import Template, make_template

Files = Mapping[str, str | bytes]
FILES: Files = {
    "README.md": "hello\n",
    "src/app.py": "one\ntwo\nthree\n",
    "src/deep/er/x.txt": "x\n",
    "old/a": "a\n",
    "old/b": "b\n",
    "ignored/file": "i\n",
    ".gitignore": "ignored/\n*.log\n",
    ".claude/skills/work/SKILL.md": "# work\n",
    ".claude/skills/work/ref/notes.md": "notes\n",
    ".claude/settings.json": "{}\n",
}


@dataclass(frozen=True)
class Workshop:
    """The steps from a directory to a cell's change, with the sandbox and the cache filled in."""

    sandbox: Bubblewrap | HostSandbox
    root: Path

    @property
    def cache(self) -> Path:
        return self.root / "cache"

    def write(self, name: str, files: Files = FILES) -> Path:
        directory = self.root / name
        for relative, content in files.items():
            path = directory / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return directory

    def git(self, directory: Path, *arguments: str) -> str:
        setting = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main", "-c", "gc.auto=0")
        done = subprocess.run(["git", *setting, *arguments], cwd=directory, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def repository(self, name: str, files: Files = FILES) -> Path:
        directory = self.write(name, files)
        self.git(directory, "init", "-q")
        self.git(directory, "add", "-A", "-f")
        self.git(directory, "commit", "-q", "-m", "first")
        return directory

    def template(self, path: Path, ref: str | None = None, private: tuple[str, ...] = ()) -> Template:
        return make_template(resolve(path, ref), private, self.cache, self.sandbox, self.sandbox.identity)

    def start(self, template: Template | None = None, **steps: Any) -> StartState:
        template = template or self.template(self.write("plain"))
        identity = self.sandbox.identity
        return make_start(template, sandbox=self.sandbox, identity=identity, cache=self.cache, **steps)

    def open(self, start: StartState | None = None) -> OverlayWorkspace | CopyWorkspace:
        scratch = self.root / "scratch"
        scratch.mkdir(exist_ok=True)
        return open_workspace(start or self.start(), scratch, self.sandbox.identity)

    def shell(self, mounts: tuple[Mount, ...], script: str, timeout: float = 30) -> Finished:
        return self.sandbox.run(Command(("/bin/bash", "-c", script), mounts, timeout))

    def work(self, workspace: Workspace, script: str) -> Finished:
        ended = self.shell(workspace.session_mounts(), "set -e\n" + script)
        assert ended.ok, ended.stderr
        return ended

    def changed(self, workspace: Workspace, *plans: str) -> Change:
        return changed(workspace, self.sandbox, plans)

    def change(self, script: str, *plans: str) -> Change:
        """Do one thing in a fresh workspace and say what changed."""
        workspace = self.open()
        self.work(workspace, script)
        return self.changed(workspace, *plans)
