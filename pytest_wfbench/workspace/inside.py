"""What of the workspace's work happens inside a sandbox: finding out what an upper changed, and committing it.

Run there by the bare interpreter (``python -I -S``) and imported by the harness, so it needs the standard library only.
git is run on directories of the harness's own; the workspace's ``.git`` is read as text.
"""

# pathlib knows no paths of bytes, and its import costs each sandbox milliseconds.
# ruff: noqa: PTH103, PTH108, PTH118, PTH120

from __future__ import annotations

import binascii
import hashlib
import json
import marshal
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

from pytest_wfbench.workspace.fastimport import (
    ATTRIBUTES,
    PINNED,
    bare_directory,
    commit_header,
)
from pytest_wfbench.workspace.traces import changed_entries, compared_entries

LISTED = 10_000
_GIT = ("git", "-c", "core.logAllRefUpdates=false", "-c", "core.quotePath=false")


class Inquiry(NamedTuple):
    """What is asked of the workspace, which is the working directory: its start commit, and what is left out.

    ``prefixes`` are the paths that have an upper of their own, in the order in which these are numbered; ``since`` is
    none then. Else everything is compared with the start state, and what was touched at or after ``since`` (nanoseconds
    of the file system's clock) is looked at in any case. ``excluded`` are regular expressions over whole paths.
    """

    commit: str
    prefixes: tuple[bytes, ...]
    since: int | None
    excluded: tuple[bytes, ...] = ()
    patch_limit: int = 0


class Places(NamedTuple):
    """Where the start state and, numbered, the raw uppers lie."""

    start: str
    raw: str


class FileChange(NamedTuple):
    """One changed path; ``mode`` and ``name`` (of its object) are those it has now; a binary file has no lines."""

    path: bytes
    status: str
    mode: str
    name: str
    insertions: int
    deletions: int
    excluded: bool


class Answer(NamedTuple):
    """What was changed. The counts, the fingerprint and the patch leave the excluded paths out.

    ``paths`` are (path, excluded) of the first changes, ``patch`` is in base 64, ``head`` where HEAD points.
    """

    files: int
    insertions: int
    deletions: int
    fingerprint: str
    paths: tuple[tuple[str, bool], ...]
    patch: str
    truncated: bool
    head: str | None


def entries(inquiry: Inquiry, places: Places) -> Iterator[bytes]:
    """Say what was changed, in ``fast-import``'s words."""
    if inquiry.since is not None:
        yield from compared_entries(os.fsencode(places.start), inquiry.since)
    for number, prefix in enumerate(inquiry.prefixes):
        yield from changed_entries(prefix, os.fsencode(os.path.join(places.raw, str(number))))


def git(*arguments: str, git_dir: str, checked: bool = True) -> bytes:
    """Run git on a directory of the harness's own and return what it prints."""
    return subprocess.run([*_GIT, *arguments], env=_env(git_dir), check=checked, stdout=subprocess.PIPE).stdout


def _env(git_dir: str) -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "GIT_DIR": git_dir, **PINNED}


def import_changes(git_dir: str, inquiry: Inquiry, places: Places, branch: bytes, message: bytes) -> str:
    """Commit what was changed onto a branch, with the start commit as parent, and return the commit's id."""
    arguments = ["fast-import", "--quiet", "--force", "--done", "--depth=0"]
    with subprocess.Popen([*_GIT, *arguments], stdin=subprocess.PIPE, env=_env(git_dir)) as process:
        assert process.stdin is not None
        process.stdin.write(commit_header(branch, inquiry.commit.encode(), message))
        process.stdin.writelines(entries(inquiry, places))
        process.stdin.write(b"\ndone\n")
        process.stdin.close()
    if process.returncode != 0:
        raise SystemExit(f"git fast-import ended with status {process.returncode}")
    return _small_text(os.path.join(git_dir, os.fsdecode(branch))).strip()


def list_changes(git_dir: str, old: str, new: str, excluded: tuple[bytes, ...]) -> list[FileChange]:
    """Return every path in which two commits differ, sorted, renames as a removal and an addition."""
    out = git("diff-tree", "-r", "-z", "--raw", "--numstat", "--no-renames", "--no-abbrev", old, new, git_dir=git_dir)
    fields = iter(out.split(b"\0"))
    kinds: dict[bytes, tuple[str, str, str]] = {}
    changes = []
    for field in fields:
        if field.startswith(b":"):
            _, mode, _, name, status = field.decode().split(" ")
            kinds[next(fields)] = (status, mode, name)
        elif field:
            inserted, deleted, path = field.split(b"\t", 2)
            left_out = any(re.fullmatch(pattern, path, re.DOTALL) for pattern in excluded)
            changes.append(FileChange(path, *kinds[path], _count(inserted), _count(deleted), left_out))
    return sorted(changes)


def _count(field: bytes) -> int:
    return 0 if field == b"-" else int(field)


def read_patch(git_dir: str, old: str, new: str, left_out: list[bytes], limit: int) -> tuple[bytes, bool]:
    """Return the patch without some paths, and whether it was cut off at ``limit`` bytes."""
    options = ("--no-renames", "--no-color", "--no-ext-diff", "--no-textconv", "--full-index", "--binary", "-p", "-r")
    paths = [os.fsdecode(b":(exclude,literal)" + path) for path in left_out]
    command = [*_GIT, "diff-tree", *options, old, new, "--", ":/", *paths]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=_env(git_dir)) as process:
        assert process.stdout is not None
        data = process.stdout.read(limit + 1)
        if len(data) > limit:
            process.kill()
    return data[:limit], len(data) > limit


def read_head(base: str = ".git") -> str | None:
    """Return the commit that the workspace's HEAD names, read as text: its git is never run."""
    head = _small_text(os.path.join(base, "HEAD"))
    if head.startswith("ref: "):
        name = head[5:].strip()
        packed = _small_text(os.path.join(base, "packed-refs"))
        lines = (line.split(" ", 1) for line in packed.splitlines() if " " in line)
        known = {ref: commit for commit, ref in lines}
        loose = "" if ".." in name or name.startswith("/") else _small_text(os.path.join(base, name))
        head = loose or known.get(name, "")
    return head.strip() if re.fullmatch(r"[0-9a-f]{40}", head.strip()) else None


def _small_text(path: str) -> str:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as stream:
            return stream.read(1 << 20).decode("utf-8", "replace")
    except OSError:
        return ""


def answer(inquiry: Inquiry, places: Places) -> Answer:
    """Compute what the workspace changed, in a git directory that is gone with the sandbox."""
    git_dir = bare_directory(os.path.join(os.environ["TMPDIR"], "git"), os.path.join(places.start, ".git/objects"))
    new = import_changes(git_dir, inquiry, places, b"refs/heads/cell", b"cell")
    changes = list_changes(git_dir, inquiry.commit, new, inquiry.excluded)
    counted = [change for change in changes if not change.excluded]
    left_out = [change.path for change in changes if change.excluded]
    patch, truncated = b"", False
    if counted:
        patch, truncated = read_patch(git_dir, inquiry.commit, new, left_out, inquiry.patch_limit)
    return Answer(
        files=len(counted),
        insertions=sum(change.insertions for change in counted),
        deletions=sum(change.deletions for change in counted),
        fingerprint=hashlib.sha256(repr([tuple(change[:4]) for change in counted]).encode()).hexdigest(),
        paths=tuple((os.fsdecode(change.path), change.excluded) for change in changes[:LISTED]),
        patch=binascii.b2a_base64(patch, newline=False).decode(),
        truncated=truncated,
        head=read_head(),
    )


def seal(inquiry: Inquiry, places: Places) -> str:
    """Commit what was changed in the workspace's own git, which nobody but the harness has had in hand yet."""
    git_dir = ".git"
    attributes = os.path.join(git_dir, "info", "attributes")
    os.makedirs(os.path.dirname(attributes), exist_ok=True)
    with open(attributes, "wb") as stream:
        stream.write(ATTRIBUTES)
    commit = import_changes(git_dir, inquiry, places, b"refs/heads/main", b"start state")
    git("read-tree", "-i", "-m", commit, git_dir=git_dir)
    git("--work-tree", ".", "update-index", "-q", "--refresh", git_dir=git_dir, checked=False)
    os.unlink(attributes)
    return commit


def main(task: str, start: str, raw: str) -> None:
    """Read an inquiry, write the answer as JSON."""
    inquiry = Inquiry(*marshal.load(sys.stdin.buffer))
    json.dump({"answer": answer, "seal": seal}[task](inquiry, Places(start, raw)), sys.stdout)
