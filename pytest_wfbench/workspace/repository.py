"""Where a task's files come from: a plain directory, or a commit of a git repository or bundle."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_wfbench.workspace.git import GitFailed, run_git
from pytest_wfbench.workspace.personal import personal_part

_BUNDLE = re.compile(rb"# v[23] git bundle\n")


class RepositoryProblem(Exception):
    """A task's repository cannot be used; the message names it and the remedy."""


@dataclass(frozen=True)
class Directory:
    """A plain directory, taken as it is. ``excluded`` are absolute paths inside it that are left out."""

    path: Path
    excluded: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Commit:
    """A commit, by its full id, of a repository that is on disk; ``objects`` is its object directory."""

    path: Path
    commit: str
    objects: Path


@dataclass(frozen=True)
class Bundle:
    """A commit that a git bundle holds."""

    path: Path
    commit: str


Source = Directory | Commit | Bundle


def resolve(path: Path, ref: str | None, excluded: tuple[Path, ...] = ()) -> Source:
    """Say what a task's ``repo`` and ``ref`` mean, once and for all: a reference becomes a commit.

    Args:
        path: a directory, a git repository (with or without a working tree) or a bundle.
        ref: a branch, tag or commit; none for a plain directory.
        excluded: paths that a plain directory is to be taken without, such as the one that holds the oracle.

    Raises:
        RepositoryProblem: with the remedy.
    """
    if not path.exists():
        raise RepositoryProblem(f"{path}: no such repository: correct `repo`, which is relative to its case file")
    if (personal := personal_part(path)) is not None:
        raise RepositoryProblem(f"{path}: no agent is shown {personal}: name a directory without it")
    if path.is_file():
        return _bundle(path, ref)
    git_dir = git_directory(path)
    if git_dir is not None:
        return _commit(path, git_dir, ref)
    if ref is not None:
        raise RepositoryProblem(f"{path}: not a git repository, so it has no {ref!r}: remove `ref`, or `git init` it")
    return Directory(path.resolve(), tuple(place.resolve() for place in excluded))


def _commit(path: Path, git_dir: Path, ref: str | None) -> Commit:
    if ref is None:
        raise RepositoryProblem(f"{path}: a git repository needs `ref`: name a branch, tag or commit")
    try:
        wanted = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        commit = run_git(git_dir, *wanted).decode().strip()
        objects = os.fsdecode(run_git(git_dir, "rev-parse", "--git-path", "objects").rstrip(b"\n"))
    except GitFailed as error:
        raise RepositoryProblem(f"{path}: `ref` {ref!r} names no commit: fetch it, or correct it ({error})") from error
    _refuse_borrowing(path, git_dir, Path(objects))
    return Commit(path.resolve(), commit, Path(objects).resolve())


def _refuse_borrowing(path: Path, git_dir: Path, objects: Path) -> None:
    """Refuse a repository whose objects lie, by a ``.git`` file, a link or as alternates, where no task may look.

    Raises:
        RepositoryProblem: naming the place.
    """
    told = os.fsdecode(run_git(git_dir, "count-objects", "-v")).splitlines()
    lent = [line.removeprefix("alternate: ") for line in told if line.startswith("alternate: ")]
    if any(name.startswith('"') for name in lent):
        raise RepositoryProblem(f"{path}: borrows objects from a path that is no plain text: clone it without --shared")
    holders = [objects, *(Path(name) for name in lent)]
    for place in (git_dir, *holders, *(link for holder in holders for link in _links_in(holder))):
        if (personal := personal_part(place)) is not None:
            raise RepositoryProblem(f"{path}: no agent is shown {personal}: name a repository with objects of its own")


def _links_in(directory: Path) -> Iterator[Path]:
    waiting = [directory]
    while waiting:
        with os.scandir(waiting.pop()) as found:
            for entry in found:
                if entry.is_symlink():
                    yield Path(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))


def _bundle(path: Path, ref: str | None) -> Bundle:
    with path.open("rb") as stream:
        if not _BUNDLE.match(stream.readline(64)):
            raise RepositoryProblem(f"{path}: neither a directory nor a git bundle: make one with `git bundle create`")
    if ref is None:
        raise RepositoryProblem(f"{path}: a bundle needs `ref`: see `git bundle list-heads {path}`")
    try:
        lines = run_git(Path("/nonexistent"), "bundle", "list-heads", str(path.resolve())).decode().splitlines()
    except GitFailed as error:
        raise RepositoryProblem(f"{path}: a broken bundle: make it anew ({error})") from error
    heads = {name: commit for commit, name in (line.split(" ", 1) for line in lines)}
    for name in (ref, f"refs/heads/{ref}", f"refs/tags/{ref}"):
        if name in heads:
            return Bundle(path.resolve(), heads[name])
    if ref in heads.values():
        return Bundle(path.resolve(), ref)
    raise RepositoryProblem(f"{path}: the bundle has no {ref!r}, only {', '.join(sorted(heads))}: correct `ref`")


def git_directory(path: Path) -> Path | None:
    """Return the git directory of a path without asking git, which would look further up."""
    inner = path / ".git"
    if inner.is_file():
        text = inner.read_text(errors="replace").strip()
        return (path / text.removeprefix("gitdir:").strip()).resolve() if text.startswith("gitdir:") else None
    for candidate in (inner, path):
        if (candidate / "HEAD").is_file() and (candidate / "objects").is_dir() and (candidate / "refs").is_dir():
            return candidate.resolve()
    return None
