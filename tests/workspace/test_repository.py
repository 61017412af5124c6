"""What ``repo`` and ``ref`` mean, and the remedy where they mean nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_wfbench.workspace.repository import Bundle, Commit, Directory, RepositoryProblem, resolve
from tests.workspace.workshop import Workshop


class TestResolve:
    def test_directory(self, shop: Workshop) -> None:
        """A plain directory is taken as it is."""
        path = shop.write("plain")
        assert resolve(path, None, (path / "old",)) == Directory(path, (path / "old",))

    @pytest.mark.parametrize("ref", ["main", "v1", "HEAD", "main~0"])
    def test_references(self, shop: Workshop, ref: str) -> None:
        """A branch, a tag and anything else that names a commit become its full id."""
        path = shop.repository("repo")
        shop.git(path, "tag", "-a", "-m", "x", "v1")
        found = resolve(path, ref)
        assert isinstance(found, Commit)
        assert found.commit == shop.git(path, "rev-parse", "HEAD")

    def test_kinds_of_repository(self, shop: Workshop) -> None:
        """A bare repository, a linked working tree and a bundle name the same commit."""
        path = shop.repository("repo")
        shop.git(path, "clone", "-q", "--bare", str(path), str(shop.root / "bare.git"))
        shop.git(path, "worktree", "add", "-q", str(shop.root / "linked"), "HEAD")
        shop.git(path, "bundle", "create", "-q", str(shop.root / "x.bundle"), "main")
        head = shop.git(path, "rev-parse", "HEAD")
        for name, ref in (("bare.git", "main"), ("linked", "main"), ("x.bundle", "main"), ("x.bundle", head)):
            found = resolve(shop.root / name, ref)
            assert isinstance(found, Commit | Bundle)
            assert found.commit == head

    @pytest.mark.parametrize(
        ("name", "ref", "message"),
        [
            ("nowhere", "main", "correct `repo`"),
            ("repo", None, "needs `ref`"),
            ("repo", "no-such", "names no commit: fetch it"),
            ("repo", "--upload-pack=x", "names no commit"),
            ("repo", "HEAD^{tree}", "names no commit"),
            ("plain", "main", "remove `ref`"),
            ("file", "main", "git bundle create"),
            ("x.bundle", None, "git bundle list-heads"),
            ("x.bundle", "other", "refs/heads/main"),
        ],
    )
    def test_remedies(self, shop: Workshop, name: str, ref: str | None, message: str) -> None:
        """Each way to be wrong names the path and what to do."""
        path = shop.repository("repo")
        shop.git(path, "bundle", "create", "-q", str(shop.root / "x.bundle"), "main")
        shop.write("plain")
        (shop.root / "file").write_text("x")
        with pytest.raises(RepositoryProblem, match=message) as caught:
            resolve(shop.root / name, ref)
        assert name in str(caught.value)

    def test_hostile_configuration(self, shop: Workshop, tmp_path: Path) -> None:
        """Reading a repository runs none of the programs that its configuration names."""
        path = shop.repository("repo")
        (tmp_path / "evil.sh").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\ncat\n")
        (tmp_path / "evil.sh").chmod(0o755)
        names = (
            "core.fsmonitor",
            "core.pager",
            "core.sshCommand",
            "core.alternateRefsCommand",
            "filter.x.smudge",
            "core.editor",
            "filter.x.process",
            "remote.origin.uploadpack",
            "credential.helper",
            "diff.external",
            "gpg.program",
        )
        for name in names:
            shop.git(path, "config", name, str(tmp_path / "evil.sh"))
        (path / ".git/info").mkdir(exist_ok=True)
        (path / ".git/info/attributes").write_text("* filter=x diff=x export-subst\n")
        for hook in ("post-checkout", "reference-transaction", "post-index-change"):
            (path / ".git/hooks").mkdir(exist_ok=True)
            (path / ".git/hooks" / hook).symlink_to(tmp_path / "evil.sh")
        template = shop.template(path, "main")
        assert (template.path / "README.md").read_text() == "hello\n"
        assert not (tmp_path / "ran").exists()

    def test_lazy_clone(self, shop: Workshop, tmp_path: Path) -> None:
        """A clone without its blobs is an error with a remedy; nothing is fetched."""
        path = shop.repository("repo")
        shop.git(path, "config", "uploadpack.allowFilter", "true")
        shop.git(path, "clone", "-q", "--no-checkout", "--filter=blob:none", f"file://{path}", str(tmp_path / "lazy"))
        with pytest.raises(RepositoryProblem, match="is the clone complete"):
            shop.template(tmp_path / "lazy", "main")
