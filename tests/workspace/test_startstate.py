"""The start state: what happens before a session, committed and frozen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.workspace import startstate as module
from pytest_wfbench.workspace.program import ProgramFailed
from pytest_wfbench.workspace.startstate import SetupFailed, StartState
from tests.workspace.workshop import Workshop

PATCH = b"""--- a/README.md
+++ b/README.md
@@ -1 +1,2 @@
 hello
+patched
--- /dev/null
+++ b/added.txt
@@ -0,0 +1 @@
+new
"""


def show(shop: Workshop, start: StartState, script: str) -> str:
    """Run a script in a fresh workspace of a start state and return what it prints."""
    ended = shop.shell(shop.open(start).session_mounts(), script)
    return (ended.stdout + ended.stderr).decode()


class TestSteps:
    def test_nothing(self, shop: Workshop) -> None:
        """Where nothing happens there is no layer, and the start is the snapshot."""
        template = shop.template(shop.write("plain"))
        start = shop.start(template)
        assert (start.layer, start.start_commit, start.digest) == (None, template.snapshot_commit, template.digest)

    def test_setup(self, shop: Workshop) -> None:
        """What setup did is there, committed, and git sees no difference, in ignored places too."""
        start = shop.start(setup="echo built > ignored/out; rm README.md; echo x >> src/app.py; rm -r old; mkdir old")
        script = "cat ignored/out; ls README.md old; tail -n 1 src/app.py; git status --porcelain; git rev-parse HEAD"
        lines = show(shop, start, script).splitlines()
        assert lines[:3] == ["built", "old:", "x"]
        assert lines[3] == start.start_commit
        assert "README.md" in lines[4]
        assert show(shop, start, "git ls-files ignored; git log --format=%s; git fsck --unreachable").split() == [
            "ignored/file",
            "ignored/out",
            "start",
            "state",
            "snapshot",
        ]

    def test_index_is_fresh(self, shop: Workshop) -> None:
        """No file looks changed to a cell's first git command."""
        start = shop.start(setup="echo built > ignored/out; echo x >> src/app.py")
        assert show(shop, start, "git diff-files --raw; git diff-index --raw HEAD") == ""

    def test_patch(self, shop: Workshop) -> None:
        """A patch is applied after setup and is the last commit."""
        start = shop.start(setup="echo x > x", patch=PATCH)
        assert show(shop, start, "cat README.md added.txt x") == "hello\npatched\nnew\nx\n"
        assert "+patched" in show(shop, start, "git show")

    def test_patch_stands_alone(self, shop: Workshop) -> None:
        """The last commit is the patch and nothing else, whatever setup and a candidate's files changed before it."""
        start = shop.start(
            setup="echo x > x; rm -r old; mkdir old; echo y > old/y; rm src/app.py",
            patch=PATCH,
            overlay_files={"work/SKILL.md": b"# better\n"},
        )
        assert show(shop, start, "git diff --name-only HEAD~1 HEAD").split() == ["README.md", "added.txt"]
        assert show(shop, start, "git log --format=%s").split("\n")[:3] == ["change", "start state", "snapshot"]
        assert show(shop, start, "cat .claude/skills/work/SKILL.md; git status --porcelain") == "# better\n"

    def test_overlay(self, shop: Workshop) -> None:
        """A candidate's files are laid over the skills, in old directories and new ones."""
        files = {
            "work/SKILL.md": b"# better\n",
            "other/SKILL.md": b"# other\n",
            "other/run.sh": b"#!/bin/sh\necho ran\n",
        }
        start = shop.start(overlay_files=files)
        script = "cd .claude/skills; cat work/SKILL.md work/ref/notes.md other/SKILL.md; other/run.sh"
        assert show(shop, start, script) == "# better\nnotes\n# other\nran\n"

    def test_nothing_of_setup_remains(self, shop: Workshop) -> None:
        """What setup left in its home and temp, and its processes, are gone."""
        start = shop.start(setup="echo x > ~/x; echo x > /tmp/x; (sleep 60 &)")
        assert show(shop, start, "ls -d ~/x /tmp/x; pgrep sleep").count("No such file") == 2

    @pytest.mark.parametrize(
        "attempt", ["echo x > .git/config", "git commit --allow-empty -m x", "mkdir -p .git/hooks", "mv .git x"]
    )
    def test_git_is_read_only(self, shop: Workshop, attempt: str) -> None:
        """Setup cannot write into the workspace's git."""
        with pytest.raises(SetupFailed):
            shop.start(setup=attempt)

    def test_hooks_and_filters_do_not_run(self, shop: Workshop) -> None:
        """Attributes and ignore rules that setup writes change no byte of what is committed."""
        start = shop.start(
            setup="printf '* text eol=lf filter=x\\n' > .gitattributes; printf 'a\\r\\n' > crlf; echo '*' > .gitignore"
        )
        assert show(shop, start, "git cat-file -p HEAD:crlf | od -c | head -n 1").split() == [
            "0000000",
            "a",
            "\\r",
            "\\n",
        ]

    def test_no_network(self, shop: Workshop) -> None:
        """Setup has no way out."""
        with pytest.raises(SetupFailed):
            shop.start(setup="exec 3<>/dev/tcp/1.1.1.1/53")

    def test_churn_is_against_it(self, shop: Workshop) -> None:
        """What happened before the session is not counted as changed, nor is undoing nothing."""
        workspace = shop.open(shop.start(setup="rm -r old; echo b > built", patch=PATCH))
        assert not shop.changed(workspace).something
        shop.work(workspace, "rm built; mkdir old; echo a > old/a; echo again >> README.md")
        assert shop.changed(workspace).files == ("README.md", "built", "old/a")


class TestFailures:
    @pytest.mark.parametrize(
        ("steps", "kind", "tail"),
        [
            ({"setup": "echo broken; echo why >&2; exit 4"}, "setup-failed", "why"),
            ({"setup": "echo slow; sleep 60", "timeout": 0.5}, "setup-timeout", "slow"),
            ({"patch": b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-no\n+yes\n"}, "patch-failed", "x"),
            ({"patch": b"--- a/x\n+++ b/../../x\n@@ -0,0 +1 @@\n+yes\n"}, "patch-failed", "x"),
            (
                {"setup": "rm -r .claude; ln -s /tmp .claude", "overlay_files": {"a/SKILL.md": b""}},
                "overlay-failed",
                ".claude",
            ),
        ],
    )
    def test_kinds(self, shop: Workshop, steps: dict[str, Any], kind: str, tail: str) -> None:
        """A step that fails names itself and shows the end of its output; nothing is cached of it."""
        with pytest.raises(SetupFailed) as caught:
            shop.start(**steps)
        assert caught.value.kind == kind
        assert tail in caught.value.tail
        assert list((shop.cache / "starts").glob("*/upper")) == []

    def test_broken_sandbox(self, shop: Workshop) -> None:
        """A sandbox that cannot be made is the harness's failure, not setup's."""
        template = shop.template(shop.write("plain"))
        gone = type(template)(Path("/nowhere"), template.digest, template.snapshot_commit, None)
        with pytest.raises(ProgramFailed):
            shop.start(gone, setup="true")


class TestCache:
    def test_second_use(self, shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
        """A start state is made once for the same template and steps."""
        steps: dict[str, Any] = {"setup": "date +%N > x", "patch": PATCH, "overlay_files": {"a/SKILL.md": b"x"}}
        start = shop.start(**steps)
        monkeypatch.setattr(module, "_seal", None)
        assert shop.start(**steps) == start

    def test_every_step_counts(self, shop: Workshop) -> None:
        """Another setup, patch or overlay gives another digest, and the same ones the same commit elsewhere."""
        starts = [
            shop.start(setup="echo 1 > x"),
            shop.start(setup="echo  1 > x"),
            shop.start(patch=PATCH),
            shop.start(overlay_files={"a": b"1"}),
            shop.start(overlay_files={"a": b"2"}),
        ]
        assert len({start.digest for start in starts}) == 5
        assert starts[0].start_commit == starts[1].start_commit
