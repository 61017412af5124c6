"""Which store a text names: a directory, or ``git:`` and a repository, with or without ``#`` and a branch."""

from __future__ import annotations

from pathlib import Path

from pytest_wfbench.baselines.branch import BranchStore
from pytest_wfbench.baselines.directory import DirectoryStore
from pytest_wfbench.baselines.store import Store, StoreError
from pytest_wfbench.files import user_path
from pytest_wfbench.workspace.repository import git_directory

GIT = "git:"
BRANCH = "wfbench-baselines"


def open_store(text: str, directory: Path) -> Store:
    """Return the store; paths are relative to ``directory``. Nothing is made before it is written.

    Raises:
        StoreError: when it names no repository, or a file.
    """
    if not text.startswith(GIT):
        root = user_path(text, directory)
        if root.exists() and not root.is_dir():
            raise StoreError(f"{root} is a file: name a directory, or git: and a repository")
        return DirectoryStore(root)
    place, _, branch = text.removeprefix(GIT).partition("#")
    repository = user_path(place or ".", directory)
    found = git_directory(repository)
    if found is None:
        raise StoreError(f"{repository} is no git repository: write git:DIR#BRANCH, with its top directory")
    return BranchStore(found, branch or BRANCH)
