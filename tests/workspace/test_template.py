"""Templates: the same tree gives the same snapshot, and nothing but the tree is in it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_wfbench.sandbox.spec import WORKSPACE, Bind, Overlay
from pytest_wfbench.workspace import template as module
from pytest_wfbench.workspace.repository import Directory, RepositoryProblem
from pytest_wfbench.workspace.template import Template, TemplateUnproven, make_template
from tests.workspace.workshop import FILES, Workshop


def git(shop: Workshop, template: Template, *arguments: str) -> str:
    """Run git on a template as an agent would."""
    mounts = (Overlay((template.path,), WORKSPACE, "tmp"),)
    ended = shop.shell(mounts, " ".join(["git", *arguments]))
    return ended.stdout.decode() + ended.stderr.decode()


def tree(path: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in path.rglob("*")
        if file.is_file() and ".git" not in file.relative_to(path).parts
    }


class TestContent:
    def test_directory(self, shop: Workshop) -> None:
        """A directory's files are there, ignored ones too, with their bytes; its commit is the harness's."""
        template = shop.template(shop.write("plain"))
        assert tree(template.path) == {name: str(text).encode() for name, text in FILES.items()}
        assert template.base_commit is None
        assert git(shop, template, "status", "--porcelain") == ""

    def test_same_tree_same_snapshot(self, shop: Workshop) -> None:
        """A directory, its copy elsewhere, a commit and a bundle of the same tree give the same snapshot."""
        repository = shop.repository("repo")
        shop.git(repository, "bundle", "create", "-q", str(shop.root / "x.bundle"), "main")
        one, two = shop.template(shop.write("a")), shop.template(shop.write("b"))
        assert one == two
        three, four = shop.template(repository, "main"), shop.template(shop.root / "x.bundle", "main")
        assert three == four
        assert one.snapshot_commit == three.snapshot_commit
        assert three.base_commit == shop.git(repository, "rev-parse", "main")

    def test_digest(self, shop: Workshop) -> None:
        """The digest changes with a byte, a mode, a link's target and the private paths."""
        plain = shop.write("plain")
        digests = [shop.template(plain).digest]
        (plain / "README.md").chmod(0o755)
        digests.append(shop.template(plain).digest)
        (plain / "link").symlink_to("x")
        digests.append(shop.template(plain).digest)
        (plain / "link").unlink()
        (plain / "link").symlink_to("y")
        digests.append(shop.template(plain).digest)
        digests.append(shop.template(plain, private=("old",)).digest)
        assert len(set(digests)) == len(digests)

    def test_links_and_modes(self, shop: Workshop) -> None:
        """Links stay links and are not followed; executables stay executable."""
        plain = shop.write("plain")
        (plain / "link").symlink_to("/etc/passwd")
        (plain / "dirlink").symlink_to("/etc")
        (plain / "run").write_text("#!/bin/sh\n")
        (plain / "run").chmod(0o755)
        os.mkfifo(plain / "pipe")
        path = shop.template(plain).path
        assert (path / "link").readlink() == Path("/etc/passwd")
        assert (path / "dirlink").readlink() == Path("/etc")
        assert os.access(path / "run", os.X_OK)
        assert not (path / "pipe").exists()

    def test_bytes_as_they_are(self, shop: Workshop) -> None:
        """No attribute of the tree changes a byte on the way, from a directory or a commit."""
        files = {".gitattributes": "* text eol=crlf ident\n", "a": "x\n", "b": "x\r\n", "c": "$Id$\n"}
        for template in (shop.template(shop.write("p", files)), shop.template(raw_repository(shop, files), "main")):
            assert tree(template.path) == {name: text.encode() for name, text in files.items()}

    def test_odd_names(self, shop: Workshop) -> None:
        """File names need not be text."""
        files = {"new\nline": "1", 'quo"te': "2", "bad\udcff": "3", " x": "4", "back\\slash": "5"}
        for template in (shop.template(shop.write("p", files)), shop.template(shop.repository("r", files), "main")):
            assert tree(template.path) == {name: text.encode() for name, text in files.items()}

    def test_nested_git_is_left_out(self, shop: Workshop) -> None:
        """No git directory of the source is in the snapshot, and no submodule."""
        plain = shop.write("plain")
        shop.repository("plain/sub", {"f": "x"})
        template = shop.template(plain)
        assert (template.path / "sub/f").exists()
        assert not (template.path / "sub/.git").exists()
        outer = shop.repository("outer", {"g": "x"})
        shop.repository("outer/sub", {"f": "x"})
        shop.git(outer, "add", "sub")
        shop.git(outer, "commit", "-q", "-m", "submodule")
        assert tree(shop.template(outer, "main").path) == {"g": b"x"}

    def test_excluded_paths(self, shop: Workshop) -> None:
        """A directory is taken without the paths that hold cases and oracles."""
        plain = shop.write("plain")
        source = Directory(plain, (plain / "old",))
        template = make_template(source, (), shop.cache, shop.sandbox, shop.sandbox.identity)
        assert not (template.path / "old").exists()

    def test_index_is_fresh(self, shop: Workshop) -> None:
        """No file looks changed to a cell's first git command, and none is as young as the index."""
        template = shop.template(shop.write("plain"))
        assert git(shop, template, "diff-files", "--raw") == ""
        assert git(shop, template, "--version >/dev/null; cp -a . /tmp/c; cd /tmp/c; git diff-files --raw") == ""
        newest = max(file.lstat().st_mtime for file in template.path.rglob("*") if ".git" not in file.parts)
        assert newest == 1_000_000_000 < (template.path / ".git/index").stat().st_mtime - 2


def raw_repository(shop: Workshop, files: dict[str, str]) -> Path:
    """Make a repository whose blobs are the bytes as they are, whatever the attributes say."""
    path = shop.repository("raw", {"x": "x"})
    (path / "x").unlink()
    (path / ".git/info").mkdir(exist_ok=True)
    (path / ".git/info/attributes").write_text("* !text !eol !ident\n")
    shop.write("raw", files)
    shop.git(path, "add", "-A")
    shop.git(path, "commit", "-q", "-m", "raw")
    return path


class TestIsolation:
    def test_private_paths(self, shop: Workshop) -> None:
        """Private paths are gone from the disk, the tree and the objects."""
        files = {**FILES, "secret/key": "top secret\n", "a/secret": "not private\n"}
        repository = shop.repository("repo", files)
        for template in (shop.template(shop.write("p", files), private=("secret",)),
                         shop.template(repository, "main", private=("secret/", "old/a"))):  # fmt: skip
            assert not (template.path / "secret").exists()
            assert (template.path / "a/secret").exists()
            blob = shop.git(repository, "rev-parse", "main:secret/key")
            assert "Not a valid object" in git(shop, template, "cat-file", "-p", blob)
        assert not (template.path / "old/a").exists()
        assert (template.path / "old/b").exists()

    def test_history_is_gone(self, shop: Workshop) -> None:
        """Earlier commits, other branches, remotes, reflogs and hooks are not there."""
        path = shop.repository("repo")
        first = shop.git(path, "rev-parse", "HEAD")
        shop.git(path, "checkout", "-q", "-b", "solution")
        shop.write("repo", {"solution.py": "answer\n"})
        shop.git(path, "add", "-A")
        shop.git(path, "commit", "-q", "-m", "solution")
        solution = shop.git(path, "rev-parse", "HEAD")
        shop.git(path, "remote", "add", "origin", "https://example.invalid/x")
        template = shop.template(path, "main")
        for name in (first, solution, "solution"):
            assert "ot a valid object" in git(shop, template, "cat-file", "-e", name) + git(
                shop, template, "cat-file", "-p", name
            )
        assert git(shop, template, "log", "--all", "--format=%H") == template.snapshot_commit + "\n"
        assert git(shop, template, "reflog") == ""
        assert git(shop, template, "remote") == ""
        assert not (template.path / ".git/hooks").exists()

    def test_only_the_tree_is_published(self, shop: Workshop) -> None:
        """What the snapshot was made from is not kept beside it."""
        template = shop.template(shop.repository("repo"), "main")
        assert {path.name for path in template.path.parent.iterdir()} == {"tree", "record.json"}

    def test_ownership(self, shop: Workshop) -> None:
        """The tree belongs to the uid that sandboxes run under."""
        template = shop.template(shop.write("plain"))
        assert {path.lstat().st_uid for path in template.path.rglob("*")} == {shop.sandbox.identity.uid}

    def test_not_copied_by_links(self, shop: Workshop) -> None:
        """No file of the source is linked into the template."""
        template = shop.template(shop.repository("repo"), "main")
        assert {path.stat().st_nlink for path in template.path.rglob("*") if path.is_file()} == {1}


class TestProof:
    @pytest.mark.parametrize(
        ("sabotage", "message"),
        [
            ("echo unreachable | git hash-object -w --stdin", "unreachable"),
            ("git tag other", "other references"),
            ("git commit-tree -p HEAD -m x HEAD^{tree} | xargs git update-ref refs/heads/main", "parents"),
            ("git config remote.o.url x", "remote"),
            ("echo /x > .git/objects/info/alternates", "alternates"),
            ("mkdir .git/logs", "reflog"),
            ("ln .git/HEAD .git/LINK", "hard links"),
            ("echo x > secret", "private"),
        ],
    )
    def test_bad_snapshot(self, shop: Workshop, monkeypatch: pytest.MonkeyPatch, sabotage: str, message: str) -> None:
        """A snapshot that breaks a promise is not published."""
        names = "GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x"
        monkeypatch.setattr(module, "_POPULATE", module._POPULATE + f"\nexport {names}\n{sabotage}\n")
        with pytest.raises(TemplateUnproven, match=message):
            shop.template(shop.write("plain"), private=("secret",))
        assert list((shop.cache / "templates").glob("*/tree")) == []

    def test_readable_original(self, shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
        """A snapshot in which the original commit can be read is not published."""
        path = shop.repository("repo")
        data = subprocess.run(
            ["git", "cat-file", "commit", "HEAD"], cwd=path, check=True, capture_output=True, text=True
        ).stdout
        plant = f"printf '%s' {data!r} > /tmp/c; git hash-object -t commit -w --literally /tmp/c; "
        plant = plant.replace("\\n", "\n")
        monkeypatch.setattr(module, "_POPULATE", module._POPULATE + plant)
        with pytest.raises(TemplateUnproven, match="original commit"):
            shop.template(path, "main")


class TestCache:
    def test_second_use(self, shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
        """A template is made once; a process killed half-way leaves nothing that is taken for one."""
        plain = shop.write("plain")
        template = shop.template(plain)
        key = template.path.parent.name
        monkeypatch.setattr(module, "_populate", None)
        assert shop.template(plain) == template
        os.rename(template.path.parent, template.path.parent.with_name(f".{key}"))  # noqa: PTH104
        monkeypatch.undo()
        assert shop.template(plain) == template

    def test_unreadable_source(self, shop: Workshop) -> None:
        """A source that grew too large is refused with a remedy."""
        plain = shop.write("plain")
        (plain / "huge").touch()
        os.truncate(plain / "huge", 2 << 30)
        with pytest.raises(RepositoryProblem, match="name a `ref`"):
            shop.template(plain)

    def test_unreachable_cache(self, shop: Workshop, private_root: Path) -> None:
        """Cache and source may lie below a directory that only the harness can enter."""
        inner = replace(shop, root=private_root)
        template = inner.template(inner.repository("repo"), "main")
        ended = shop.shell((Bind(template.path, WORKSPACE),), "cat README.md")
        assert ended.stdout == b"hello\n"

    @pytest.fixture
    def private_root(self, tmp_path: Path) -> Path:
        path = tmp_path / "private" / "inner"
        path.mkdir(parents=True)
        path.parent.chmod(0o700)
        return path
