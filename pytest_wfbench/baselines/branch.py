"""Baselines on an orphan branch of a git repository: objects and one reference, neither a work tree nor an index."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_wfbench.baselines.store import KINDS, StoreError
from pytest_wfbench.workspace.git import GitFailed, run_git

TRIES = 60
LONGEST_PAUSE = 0.1
TREE, BLOB = "040000 tree", "100644 blob"
AUTHOR = ("-c", "user.name=wfbench", "-c", "user.email=wfbench@localhost")
MESSAGE = "A baseline is filed"


@dataclass(frozen=True)
class BranchStore:
    """A branch of the repository with this git directory; it is made when the first baseline is filed.

    A branch that is not there is read from ``origin`` as far as it was fetched, and goes on from there.
    """

    git_dir: Path
    branch: str

    @property
    def shown(self) -> str:
        """The repository and its branch."""
        return f"git:{self.git_dir}#{self.branch}"

    @property
    def reference(self) -> str:
        """The branch's whole name."""
        return f"refs/heads/{self.branch}"

    def names(self) -> Iterator[str]:
        """Yield the paths of the branch's newest commit."""
        commit = self._tip() or self._fetched()
        if commit is not None:
            listed = self._git("ls-tree", "-r", "-z", "--name-only", commit)
            yield from (name.decode(errors="replace") for name in listed.split(b"\0") if name)

    def read(self, name: str) -> bytes:
        """Return what the branch's newest commit has there."""
        return self._git("cat-file", "blob", f"{self._tip() or self._fetched()}:{name}")

    def write(self, name: str, data: bytes) -> None:
        """Commit a file. Whoever finds that the branch has moved meanwhile begins again from where it is now."""
        self._require_apart()
        blob = self._word("hash-object", "-w", "--stdin", stdin=data)
        for _ in range(TRIES):
            tip = self._tip()
            parent = tip or self._fetched()
            tree = self._with(f"{parent}:" if parent else None, name.split("/"), blob)
            if parent is not None and self._word("rev-parse", f"{parent}^{{tree}}") == tree:
                return
            parents = ("-p", parent) if parent else ()
            commit = self._word(*AUTHOR, "commit-tree", tree, *parents, "-m", MESSAGE)
            if self._moved(commit, tip or "0" * len(commit)):
                return
            time.sleep(random.uniform(0, LONGEST_PAUSE))
        raise StoreError(f"{self.shown} is written by others all the time: try again")

    def _moved(self, commit: str, before: str) -> bool:
        try:
            run_git(self.git_dir, "update-ref", self.reference, commit, before)
        except GitFailed as error:
            if (self._tip() or "0" * len(commit)) == before and "lock" not in str(error).lower():
                raise StoreError(f"{self.shown} cannot be written: {error}") from error
            return False
        return True

    def _with(self, tree: str | None, path: list[str], blob: str) -> str:
        """Write the tree that has ``blob`` at a path below ``tree``, and return its id."""
        name, *inner = path
        listed = self._git("ls-tree", "-z", tree).split(b"\0") if tree else []
        others = [line for line in listed if line and line.partition(b"\t")[2] != name.encode()]
        here = next((line for line in listed if line.partition(b"\t")[2] == name.encode()), b"")
        below = f"{tree}{name}/" if here.startswith(TREE.encode()) else None
        made = f"{TREE} {self._with(below, inner, blob)}" if inner else f"{BLOB} {blob}"
        lines = [*others, f"{made}\t{name}".encode()]
        return self._word("mktree", "-z", stdin=b"".join(line + b"\0" for line in lines))

    def _require_apart(self) -> None:
        """Refuse a branch that is none, is checked out, or holds other things."""
        try:
            run_git(self.git_dir, "check-ref-format", "--branch", self.branch)
        except GitFailed as error:
            raise StoreError(f"{self.branch!r} is no name of a branch: write git:DIR#BRANCH") from error
        if f"branch {self.reference}\n".encode() in self._git("worktree", "list", "--porcelain"):
            raise StoreError(f"{self.shown} is checked out: name a branch of its own, such as wfbench-baselines")
        commit = self._tip() or self._fetched()
        held = self._git("ls-tree", "-z", "--name-only", commit).decode(errors="replace").split("\0") if commit else []
        if other := sorted(set(held) - {*KINDS, ""}):
            raise StoreError(f"{self.shown} holds {other[0]!r}, which is no baseline: name a branch of its own")

    def _tip(self) -> str | None:
        return self._commit(self.reference)

    def _fetched(self) -> str | None:
        return self._commit(f"refs/remotes/origin/{self.branch}")

    def _commit(self, reference: str) -> str | None:
        told = self._git("for-each-ref", "--format=%(refname) %(objecttype) %(objectname)", reference)
        # A name matches all that lie below it, too.
        found = [line.split() for line in told.decode().splitlines() if line.startswith(f"{reference} commit ")]
        return found[0][2] if found else None

    def _word(self, *arguments: str, stdin: bytes = b"") -> str:
        return self._git(*arguments, stdin=stdin).decode().strip()

    def _git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        try:
            return run_git(self.git_dir, *arguments, stdin=stdin)
        except GitFailed as error:
            raise StoreError(f"{self.shown}: {error}") from error
