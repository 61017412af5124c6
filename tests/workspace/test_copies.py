"""Workspaces that are copies, in both sandboxes: the same promises as those of overlays."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_wfbench.sandbox.bubblewrap import Bubblewrap
from pytest_wfbench.sandbox.host import make_host
from pytest_wfbench.workspace.copies import CopyWorkspace, open_copy
from pytest_wfbench.workspace.copying import CopyFailed, copy_kind, copy_tree
from pytest_wfbench.workspace.program import ProgramFailed
from pytest_wfbench.workspace.startstate import SetupFailed, StartState
from tests.workspace.workshop import Workshop


class CopyShop(Workshop):
    """The workshop, for want of overlays."""

    def start(self, template: object = None, **steps: object) -> StartState:
        return super().start(template, copies=True, **steps)  # type: ignore[arg-type]

    def open(self, start: StartState | None = None) -> CopyWorkspace:
        scratch = self.root / "scratch"
        scratch.mkdir(exist_ok=True)
        return open_copy(start or self.start(), scratch, self.sandbox.identity)


@pytest.fixture(params=["bwrap", "host"])
def copies(request: pytest.FixtureRequest, sandbox: Bubblewrap, tmp_path: Path) -> CopyShop:
    return CopyShop(sandbox if request.param == "bwrap" else make_host(), tmp_path)


@pytest.fixture
def sealed(sandbox: Bubblewrap, tmp_path: Path) -> CopyShop:
    """Copies in bubblewrap, where read-only means something."""
    return CopyShop(sandbox, tmp_path)


CHANGES = [
    ("true", [], (0, 0, 0)),
    ("touch README.md; cp -p src/app.py x; mv x src/app.py", [], (0, 0, 0)),
    ("echo more >> README.md", ["README.md"], (1, 1, 0)),
    ("cp -p README.md /tmp/r$$; printf 'HELLO\\n' > README.md; touch -r /tmp/r$$ README.md", ["README.md"], (1, 1, 1)),
    ("rm src/app.py", ["src/app.py"], (1, 0, 3)),
    ("mkdir new; echo 1 > new/f", ["new/f"], (1, 1, 0)),
    ("rm -r old", ["old/a", "old/b"], (2, 0, 2)),
    ("rm -r old; mkdir old; echo c > old/c", ["old/a", "old/b", "old/c"], (3, 1, 2)),
    ("rm -r old; echo f > old", ["old", "old/a", "old/b"], (3, 1, 2)),
    ("rm README.md; mkdir README.md", ["README.md"], (1, 0, 1)),
    ("rm README.md; mkdir README.md; echo f > README.md/f", ["README.md", "README.md/f"], (2, 1, 1)),
    ("mv src lib", ["lib/app.py", "lib/deep/er/x.txt", "src/app.py", "src/deep/er/x.txt"], (4, 4, 4)),
    ("chmod +x README.md", ["README.md"], (1, 0, 0)),
    ("rm -r old; ln -s src old", ["old", "old/a", "old/b"], (3, 1, 2)),
    ("mkdir empty; mkfifo pipe", [], (0, 0, 0)),
    ("rm -rf .git; git init -q; echo x >> README.md", ["README.md"], (1, 1, 0)),
    ("mkdir sub; cd sub; git init -q; echo x > f", ["sub/f"], (1, 1, 0)),
]


class TestChurn:
    @pytest.mark.parametrize(("script", "files", "expected"), CHANGES)
    def test_each_kind(self, sealed: CopyShop, script: str, files: list[str], expected: tuple[int, int, int]) -> None:
        """What was changed is found by comparison with the start state, also where size and date were kept."""
        change = sealed.change(script)
        assert (change.churn.files, change.churn.insertions, change.churn.deletions) == expected
        assert list(change.files) == files

    def test_closed_directory(self, sealed: CopyShop) -> None:
        """What lies in a closed directory, which later commands could open again, does not go uncounted."""
        with pytest.raises(ProgramFailed, match="Permission denied"):
            sealed.change("echo x >> src/deep/er/x.txt; chmod 0 src/deep")

    def test_as_with_overlays(self, sealed: CopyShop, shop: Workshop) -> None:
        """The same change has the same fingerprint and patch as in an overlay."""
        script = "echo more >> README.md; rm -r old; mkdir new; echo 1 > new/f; git commit -qam x"
        one, other = sealed.change(script), shop.change(script)
        assert (one.fingerprint, one.patch) == (other.fingerprint, other.patch)
        assert one.something

    def test_in_both_sandboxes(self, copies: CopyShop) -> None:
        """Changes are found on the host as in bubblewrap; the agent's own commits do not hide them."""
        workspace = copies.open()
        copies.work(workspace, "echo more >> README.md; git rm -qr old; git commit -qam mine; echo x > untracked")
        change = copies.changed(workspace)
        assert list(change.files) == ["README.md", "old/a", "old/b", "untracked"]
        assert change.head not in (None, workspace.start.start_commit)
        assert b"\n+more\n" in change.patch


class TestCopy:
    def test_kind(self, copies: CopyShop) -> None:
        """The workspace says whether the file system could copy without bytes."""
        workspace = copies.open()
        assert workspace.kind == copy_kind(workspace.start.layers[0] / ".git/HEAD", workspace.directory)
        assert workspace.kind in ("reflink", "copy")

    def test_workspaces_are_apart(self, copies: CopyShop) -> None:
        """What one cell does is seen neither by another nor in the template, and begins from a clean git."""
        one, two = copies.open(), copies.open()
        copies.work(one, 'test -z "$(git status --porcelain)"; echo x > README.md; rm -rf src .git')
        copies.work(two, 'test "$(cat README.md)" = hello; test -d src; git log -1 >/dev/null')
        assert (one.start.layers[0] / "src/app.py").exists()

    def test_checks_throw_away(self, copies: CopyShop) -> None:
        """Verify and oracle each see what the agent left, and nothing of each other."""
        workspace = copies.open()
        copies.work(workspace, "echo left > README.md")
        for _ in range(2):
            ended = copies.shell(workspace.check_mounts(), "cat README.md; test ! -e of-verify; touch of-verify")
            assert (ended.status, ended.stdout) == (0, b"left\n")
        assert "of-verify" not in copies.changed(workspace).files

    def test_remove(self, copies: CopyShop) -> None:
        """Nothing is left of it, whatever modes the agent set."""
        workspace = copies.open()
        copies.work(workspace, "mkdir -p a/b; touch a/b/c; chmod 0 a/b a src")
        workspace.check_mounts()
        workspace.remove()
        assert not workspace.directory.exists()

    def test_links_are_not_followed(self, copies: CopyShop) -> None:
        """A link that the agent made is copied as a link."""
        workspace = copies.open()
        copies.work(workspace, "ln -s /etc/passwd p; ln -s /etc d")
        ended = copies.shell(workspace.check_mounts(), "readlink p d")
        assert ended.stdout == b"/etc/passwd\n/etc\n"

    def test_failure(self, tmp_path: Path) -> None:
        """A tree that is not there is a failure that says so."""
        with pytest.raises(CopyFailed, match="No such file"):
            copy_tree(tmp_path / "none", tmp_path / "copy")


class TestSkills:
    @pytest.mark.parametrize(
        "script",
        ["echo x >> .claude/skills/work/SKILL.md", "rm -r .claude/skills/work", "mv .claude/skills .claude/s",
         "mv .claude c", "rm -rf .claude/skills; test ! -e .claude/skills"],
    )  # fmt: skip
    def test_sealed(self, sealed: CopyShop, script: str) -> None:
        """In bubblewrap the skills can be neither changed nor moved away, nor can their parent."""
        workspace = sealed.open()
        assert sealed.shell(workspace.session_mounts(), script).status != 0
        assert sealed.shell(workspace.session_mounts(), "cat .claude/skills/work/SKILL.md").stdout == b"# work\n"
        assert sealed.work(workspace, "echo 1 > .claude/settings.json").ok

    def test_without_skills(self, copies: CopyShop) -> None:
        """Skills that vanish on the host do not keep verify from running."""
        workspace = copies.open()
        copies.shell(workspace.session_mounts(), "rm -rf .claude")
        assert copies.shell(workspace.check_mounts(), "true").ok


class TestStart:
    def test_steps(self, copies: CopyShop) -> None:
        """Setup and a candidate's files are committed in the start state, against which everything is compared."""
        start = copies.start(setup="echo s > made; rm -r old", overlay_files={"work/SKILL.md": b"# new\n"})
        assert start.start_commit != start.template.snapshot_commit
        workspace = copies.open(start)
        script = "cat made .claude/skills/work/SKILL.md; test ! -e old; git status --porcelain; git rev-parse HEAD"
        ended = copies.work(workspace, script)
        assert ended.stdout.decode().split("\n") == ["s", "# new", start.start_commit, ""]
        assert copies.changed(workspace).paths == ()
        assert (start.template.path / "old/a").exists()

    def test_same_commit_as_with_overlays(self, sealed: CopyShop, shop: Workshop) -> None:
        """A start state is the same commit however it is made, and both are kept."""
        template = shop.template(shop.write("plain"))
        setup = "echo s > made"
        assert sealed.start(template, setup=setup).start_commit == shop.start(template, setup=setup).start_commit

    def test_failure(self, copies: CopyShop) -> None:
        """A setup that fails leaves nothing behind."""
        with pytest.raises(SetupFailed, match="setup-failed"):
            copies.start(setup="exit 3")
        assert [path for path in (copies.cache / "start-copies").iterdir() if path.is_dir()] == []
