"""How git is told what a tree holds: in the words of ``fast-import``, bytes as they are.

No filter, attribute, hook or index has a part in it, and no working tree of anybody's. Paths are bytes: names need not
be text. Needs the standard library only, since it is used inside sandboxes too.
"""

# pathlib knows no paths of bytes, and its import costs each sandbox milliseconds.
# ruff: noqa: PTH103, PTH118

from __future__ import annotations

import os

ATTRIBUTES = b"* !text !eol !filter !diff !merge !ident !working-tree-encoding\n"
SIGNATURE = b"wfbench <wfbench@localhost> 1000000000 +0000"
PINNED = {
    "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_ATTR_NOSYSTEM": "1", "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none",
    "GIT_DEFAULT_HASH": "sha1", "GIT_DEFAULT_REF_FORMAT": "files", "LC_ALL": "C",
}  # fmt: skip


def quoted(path: bytes) -> bytes:
    """Return a path as ``fast-import`` reads it."""
    return b'"' + path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'


def commit_header(branch: bytes, parent: bytes | None, message: bytes) -> bytes:
    """Return the start of a commit with fixed identity and dates: the same tree and parent give the same id."""
    lines = b"commit %s\ncommitter %s\ndata %d\n%s\n" % (branch, SIGNATURE, len(message), message)
    return lines + (b"from %s\n" % parent if parent else b"")


def inline_entry(path: bytes, mode: int, data: bytes) -> bytes:
    """Return a file or link with its bytes; ``mode`` is git's."""
    return b"M %o inline %s\ndata %d\n%s\n" % (mode, quoted(path), len(data), data)


def object_entry(path: bytes, mode: bytes, name: bytes) -> bytes:
    """Return a file or link whose object exists already."""
    return b"M %s %s %s\n" % (mode, name, quoted(path))


def deletion(path: bytes) -> bytes:
    """Return the removal of a path and all below it, whether or not it is there."""
    return b"D %s\n" % quoted(path)


def bare_directory(path: str, objects: str) -> str:
    """Make the harness's own git directory at ``path``, which reads the objects of another and applies no attribute."""
    for name in ("objects/info", "objects/pack", "refs", "info"):
        os.makedirs(os.path.join(path, name))
    files = {
        "HEAD": b"ref: refs/heads/none\n",
        "config": b"[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
        "info/attributes": ATTRIBUTES,
        "objects/info/alternates": os.fsencode(objects) + b"\n",
    }
    for name, data in files.items():
        with open(os.path.join(path, name), "wb") as stream:
            stream.write(data)
    return path
