"""Repositories that hold more than a task shows: old bytes, other names of private files, links that lead out."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pytest_wfbench.sandbox.bubblewrap import make_bubblewrap
from pytest_wfbench.workspace.repository import RepositoryProblem
from tests.workspace.workshop import Workshop

pytestmark = pytest.mark.slow

MARK = "MARK-"
PRIVATE = f"{MARK}PRIVATE {'of the task ' * 20}\n"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(make_bubblewrap(), tmp_path_factory.mktemp("history"))


FIX = "SECRETFIX"
FILES = {
    "a.py": "open\n",
    "tests/hidden/test_it.py": PRIVATE,
    "tests/test_it.py": "x\n",
    ".gitattributes": "*.big filter=lfs\n",
}
HISTORY = f"""
git log --all --oneline -S {FIX}; git log --all --grep {FIX}; git reflog --all; git stash list; git notes list
git tag; git branch -a | grep -v '^[*] main$'; git fsck --unreachable --lost-found --no-progress
git show "$BASE" "$FIXED" stash@{{0}} refs/notes/commits refs/replace/"$BASE" 2>/dev/null
git cat-file --batch-all-objects --batch-check --unordered | while read -r name kind size; do
  git cat-file -p "$name" | grep -aqE '{FIX}|{MARK}PRIVATE' && echo "object $name"
done
grep -rlaE '{FIX}|{MARK}PRIVATE' .
for f in objects/info/alternates shallow info/grafts modules lfs worktrees logs refs/stash refs/notes refs/replace
do test -e .git/$f && echo "git has $f"; done
git config --list --show-scope | grep -E 'remote|submodule|lfs|include|alternate'
test -d .git || echo 'no directory of its own'
true
"""


def history(shop: Workshop, name: str) -> tuple[Path, str, str]:
    """A repository with a fix in every corner that git has: (path, commit before it, commit of it)."""
    path = shop.repository(name, FILES)
    base = shop.git(path, "rev-parse", "HEAD")
    (path / "a.py").write_text(f"{FIX}\n")
    shop.git(path, "commit", "-qam", FIX)
    fixed = shop.git(path, "rev-parse", "HEAD")
    shop.git(path, "tag", "-a", "v1", "-m", FIX)
    shop.git(path, "notes", "add", "-m", FIX, base)
    (path / "a.py").write_text(f"{FIX} in a stash\n")
    shop.git(path, "stash")
    (path / ".git/lfs/objects").mkdir(parents=True)
    (path / ".git/lfs/objects/x").write_text(FIX)
    shop.git(path, "update-ref", "-d", "refs/heads/gone")
    shop.git(path, "hash-object", "-w", "--stdin", "--path=x")
    return path, base, fixed


def looted(shop: Workshop, path: Path, base: str, fixed: str, ref: str | None) -> bytes:
    template = shop.template(path, ref, ("tests/hidden",))
    workspace = shop.open(shop.start(template))
    ended = shop.shell(workspace.session_mounts(), f"BASE={base} FIXED={fixed}\n{HISTORY}cat a.py tests/test_it.py")
    assert ended.ok, ended.stderr
    return ended.stdout


class TestHistory:
    def test_every_corner(self, shop: Workshop) -> None:
        """Log, reflog, tags, stash, notes, packs, LFS objects and unreachable objects of the original are not there."""
        path, base, fixed = history(shop, "corners")
        shop.git(path, "repack", "-adq")
        assert looted(shop, path, base, fixed, base) == b"open\nx\n"

    def test_replaced(self, shop: Workshop) -> None:
        """A replace ref and a graft of the original do not change what the snapshot is taken from."""
        path, base, fixed = history(shop, "replaced")
        shop.git(path, "replace", base, fixed)
        (path / ".git/info").mkdir(exist_ok=True)
        (path / ".git/info/grafts").write_text(f"{base} {fixed}\n")
        assert looted(shop, path, base, fixed, base) == b"open\nx\n"

    def test_borrowed(self, shop: Workshop) -> None:
        """Repositories that borrow (alternates, worktrees, a shallow clone, a .git file) lend nothing."""
        path, base, fixed = history(shop, "lender")
        shop.git(path, "worktree", "add", "-q", "--detach", str(shop.root / "worktree"), base)
        shop.git(path, "branch", "before", base)
        for name, options in {"shared": ["--shared"], "shallow": ["--depth=1", "--branch=before"]}.items():
            source = f"file://{path}" if name == "shallow" else str(path)
            subprocess.run(["git", "clone", "-q", *options, source, str(shop.root / name)], check=True)
        for name in ("worktree", "shared", "shallow"):
            assert looted(shop, shop.root / name, base, fixed, base) == b"open\nx\n", name

    def test_a_repository_inside(self, shop: Workshop) -> None:
        """A git directory inside a plain directory, whatever its name looks like, is not part of the snapshot."""
        path = shop.write("plain", {"a.py": "open\n", "tests/test_it.py": "x\n"})
        for name in ("sub/.git", ".git"):
            (path / name / "objects").mkdir(parents=True)
            (path / name / "objects/x").write_text(FIX)
        (path / "tests/hidden").mkdir()
        (path / "tests/hidden/t").write_text(PRIVATE)
        assert looted(shop, path, "HEAD", "HEAD", None) == b"open\nx\n"


class TestLinks:
    def test_out_of_the_repository(self, shop: Workshop) -> None:
        """A link that points out of the repository is a link of the same words, and leads nowhere in the sandbox."""
        secret = shop.root / "secret.txt"
        secret.write_text(f"{MARK}OUT\n")
        path = shop.write("linked", {"a": "x\n"})
        for name, target in {"one": str(secret), "two": "../secret.txt", "three": str(path), "dir": ".."}.items():
            (path / name).symlink_to(target)
        workspace = shop.open(shop.start(shop.template(path)))
        script = f"cat one two three/a dir/secret.txt dir/*/secret.txt; readlink one two; grep -ra {MARK}OUT . ; true"
        ended = shop.shell(workspace.session_mounts(), script)
        assert ended.stdout.decode().splitlines() == [str(secret), "../secret.txt"]


@pytest.mark.parametrize("kind", ["copy", "hard link"])
@pytest.mark.parametrize("committed", [False, True])
def test_other_names_of_private_files(shop: Workshop, kind: str, committed: bool) -> None:
    """A repository that shows the bytes of a private file under another name is refused, with both names."""
    path = shop.write(f"{kind}-{committed}", {"hidden/t.py": PRIVATE, "a": "x\n", "hidden/empty": "", "empty": ""})
    if kind == "copy":
        (path / "twin.py").write_text(PRIVATE)
    else:
        os.link(path / "hidden/t.py", path / "twin.py")
    if committed:
        shop.git(path, "init", "-q")
        shop.git(path, "add", "-A")
        shop.git(path, "commit", "-qm", "x")
    with pytest.raises(RepositoryProblem, match=r"'twin.py' holds the bytes of the private 'hidden/t.py'"):
        shop.template(path, "HEAD" if committed else None, ("hidden",))
    template = shop.template(path, "HEAD" if committed else None, ("hidden", "twin.py"))
    assert sorted(one.name for one in template.path.iterdir()) == [".git", "a", "empty"]
