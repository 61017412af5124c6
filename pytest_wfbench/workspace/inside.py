"""What of the workspace's work happens inside a sandbox: finding out what an upper changed, and committing it.

Run there by the bare interpreter (``python -I -S``) and imported by the harness, so it needs the standard library only.
git is run on directories of the harness's own; the workspace's ``.git`` is read as text.
"""

# pathlib knows no paths of bytes, and its import costs each sandbox milliseconds.
# ruff: noqa: PTH103, PTH108, PTH118, PTH120

from __future__ import annotations

import binascii
import marshal
import os
import sys

from pytest_wfbench.sandbox.plain import Record
from pytest_wfbench.workspace.fastimport import (
    ATTRIBUTES,
    PINNED,
    bare_directory,
    commit_header,
)
from pytest_wfbench.workspace.light import Child, as_json, sha256
from pytest_wfbench.workspace.traces import changed_entries, compared_entries, is_below, whole_entries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LISTED = 10_000
_HEXADECIMAL = frozenset("0123456789abcdef")
_GIT = ("git", "-c", "core.logAllRefUpdates=false", "-c", "core.quotePath=false")


class Inquiry(Record):
    """What is asked of the workspace, which is the working directory: its start commit, and what is left out.

    ``prefixes`` are the paths that have an upper of their own, in the order in which these are numbered; ``since`` is
    none then. Else everything is compared with the start state, and what was touched at or after ``since`` (nanoseconds
    of the file system's clock) is looked at in any case. What is left out of the counts is said three times over:
    ``below`` are directories (or files), ``matching`` regular expressions over whole paths, and ``pathspecs`` mean both
    in git's words. ``skills`` are where skills lie: what the start state has there is read whole, whatever the traces
    say.
    """

    commit: str
    prefixes: tuple[bytes, ...]
    since: int | None
    below: tuple[bytes, ...] = ()
    matching: tuple[bytes, ...] = ()
    pathspecs: tuple[str, ...] = ()
    patch_limit: int = 0
    skills: tuple[bytes, ...] = ()

    def leaves_out(self, path: bytes) -> bool:
        """Whether a path is a plan's or a skill's."""
        return is_below(path, self.below) or (bool(self.matching) and _matches(self.matching, path))

    def is_skill(self, path: bytes) -> bool:
        """Whether a changed path is a skill's, or stands where a directory of skills would be."""
        return is_below(path, self.skills) or any(is_below(root, (path,)) for root in self.skills)


class Places(Record):
    """Where the start state and, numbered, the raw uppers lie."""

    start: str
    raw: str


class Answer(Record):
    """What the workspace changed. Counts, fingerprint and patch leave the excluded paths out.

    ``paths`` are (path, excluded) of the first changes; the patch is in base 64; ``head`` is the commit where HEAD
    points; ``only`` has git's mode and the size of the one changed file, if there is just one.
    """

    files: int
    insertions: int
    deletions: int
    fingerprint: str
    paths: tuple[tuple[str, bool], ...]
    patch: str
    truncated: bool
    head: str | None
    skills_changed: bool
    only: tuple[str, int] | None


class FileChange(Record):
    """One changed path; ``mode`` and ``name`` (of its object) are those it has now; a binary file has no lines."""

    path: bytes
    status: str
    mode: str
    name: str
    insertions: int
    deletions: int
    excluded: bool

    def identity(self) -> tuple[bytes, str, str, str]:
        """What two changes must agree in to be the same."""
        return self.path, self.status, self.mode, self.name


def _matches(patterns: tuple[bytes, ...], path: bytes) -> bool:
    import re

    return any(re.fullmatch(pattern, path, re.DOTALL) for pattern in patterns)


def entries(inquiry: Inquiry, places: Places) -> Iterator[bytes]:
    """Say what was changed, in ``fast-import``'s words."""
    if inquiry.since is not None:
        yield from compared_entries(os.fsencode(places.start), inquiry.since)
    for number, prefix in enumerate(inquiry.prefixes):
        yield from changed_entries(prefix, os.fsencode(os.path.join(places.raw, str(number))))
    for root in inquiry.skills:
        yield from whole_entries(root, os.fsencode(places.start))


def git(*arguments: str, git_dir: str) -> bytes:
    """Run git on a directory of the harness's own and return what it prints."""
    return _output(_reading(*arguments, git_dir=git_dir), arguments[0])


def _reading(*arguments: str, git_dir: str) -> Child:
    return Child([*_GIT, *arguments], _env(git_dir), 1)


def _output(child: Child, name: str) -> bytes:
    with open(child.pipe, "rb") as stream:
        data = stream.read()
    _expect(child, name)
    return data


def _expect(child: Child, name: str) -> None:
    if (status := child.wait()) != 0:
        raise SystemExit(f"git {name} ended with status {status}")


def _env(git_dir: str) -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "GIT_DIR": git_dir, **PINNED}


def import_changes(git_dir: str, inquiry: Inquiry, places: Places, branch: bytes, message: bytes) -> str:
    """Commit what was changed onto a branch, with the start commit as parent, and return the commit's id."""
    arguments = ["fast-import", "--quiet", "--force", "--done", "--depth=0"]
    child = Child([*_GIT, *arguments], _env(git_dir), 0)
    with open(child.pipe, "wb") as stream:
        stream.write(commit_header(branch, inquiry.commit.encode(), message))
        stream.writelines(entries(inquiry, places))
        stream.write(b"\ndone\n")
    _expect(child, "fast-import")
    return _small_text(os.path.join(git_dir, os.fsdecode(branch))).strip()


def list_changes(git_dir: str, inquiry: Inquiry, new: str) -> list[FileChange]:
    """Return every path in which a commit differs from the start, sorted, renames as a removal and an addition."""
    options = ("-r", "-z", "--raw", "--numstat", "--no-renames", "--no-abbrev")
    fields = iter(git("diff-tree", *options, inquiry.commit, new, git_dir=git_dir).split(b"\0"))
    kinds: dict[bytes, tuple[str, str, str]] = {}
    changes = []
    for field in fields:
        if field.startswith(b":"):
            _, mode, _, name, status = field.decode().split(" ")
            kinds[next(fields)] = (status, mode, name)
        elif field:
            inserted, deleted, path = field.split(b"\t", 2)
            lines = (_count(inserted), _count(deleted))
            changes.append(FileChange(path, *kinds[path], *lines, inquiry.leaves_out(path)))
    return sorted(changes, key=lambda change: change.path)


def _count(field: bytes) -> int:
    return 0 if field == b"-" else int(field)


def begin_patch(git_dir: str, inquiry: Inquiry, new: str) -> Child:
    """Start git on the patch of what is not left out; it works while the changes are listed."""
    options = ("--no-renames", "--no-color", "--no-ext-diff", "--no-textconv", "--full-index", "--binary", "-p", "-r")
    return _reading("diff-tree", *options, inquiry.commit, new, "--", ":/", *inquiry.pathspecs, git_dir=git_dir)


def end_patch(child: Child, limit: int) -> tuple[bytes, bool]:
    """Return the patch, and whether it was cut off at ``limit`` bytes."""
    with open(child.pipe, "rb") as stream:
        data = stream.read(limit + 1)
    status = child.wait()
    if status != 0 and len(data) <= limit:
        raise SystemExit(f"git diff-tree ended with status {status}")
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
    commit = head.strip()
    return commit if len(commit) == 40 and _HEXADECIMAL.issuperset(commit) else None


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
    patching = begin_patch(git_dir, inquiry, new)
    changes = list_changes(git_dir, inquiry, new)
    patch, truncated = end_patch(patching, inquiry.patch_limit)
    counted = [change for change in changes if not change.excluded]
    return Answer(
        files=len(counted),
        insertions=sum(change.insertions for change in counted),
        deletions=sum(change.deletions for change in counted),
        fingerprint=sha256(repr([change.identity() for change in counted]).encode()).hexdigest(),
        paths=tuple((os.fsdecode(change.path), change.excluded) for change in changes[:LISTED]),
        patch=binascii.b2a_base64(patch, newline=False).decode(),
        truncated=truncated,
        head=read_head(),
        skills_changed=any(inquiry.is_skill(change.path) for change in changes),
        only=_only(changes),
    )


def _only(changes: list[FileChange]) -> tuple[str, int] | None:
    """Return git's mode and the size in bytes of a file that alone was changed; none if it is gone."""
    if len(changes) != 1 or changes[0].status == "D":
        return None
    return changes[0].mode, os.lstat(changes[0].path).st_size


def seal(inquiry: Inquiry, message: bytes, places: Places) -> str:
    """Commit what was changed in the workspace's own git, which nobody but the harness has had in hand yet."""
    git_dir = ".git"
    attributes = os.path.join(git_dir, "info", "attributes")
    os.makedirs(os.path.dirname(attributes), exist_ok=True)
    with open(attributes, "wb") as stream:
        stream.write(ATTRIBUTES)
    commit = import_changes(git_dir, inquiry, places, b"refs/heads/main", message)
    git("read-tree", "-i", "-m", commit, git_dir=git_dir)
    # It says by its status which files have changed; all that is wanted here is a fresh index.
    refreshing = _reading("--work-tree", ".", "update-index", "-q", "--refresh", git_dir=git_dir)
    os.close(refreshing.pipe)
    refreshing.wait()
    os.unlink(attributes)
    return commit


def main(task: str, start: str, raw: str, message: str = "") -> None:
    """Read an inquiry, write the answer as JSON. ``message`` is that of the commit that ``seal`` makes."""
    inquiry, places = Inquiry(*marshal.load(sys.stdin.buffer)), Places(start, raw)
    done = seal(inquiry, message.encode(), places) if task == "seal" else answer(inquiry, places).plain()
    sys.stdout.write(as_json(done))
