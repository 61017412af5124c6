"""A cell's workspace: its own, in constant time, sealed where it must be, and gone at the end."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

import pytest

from pytest_wfbench.sandbox.removal import CleanupFailed, remove_tree
from tests.workspace.workshop import Workshop


class TestIsolation:
    def test_changes_stay_in_the_cell(self, shop: Workshop) -> None:
        """What one cell does is seen neither by another nor in the template."""
        one, two = shop.open(), shop.open()
        shop.work(one, "rm -r src; echo x > x; git add -A; git commit -qm x; git tag t")
        ended = shop.shell(two.session_mounts(), "ls src x; git tag; git log --format=%s")
        assert ended.stdout == b"src:\napp.py\ndeep\nsnapshot\n"
        assert (one.start.template.path / "src/app.py").exists()

    def test_sessions_of_a_cell_share_it(self, shop: Workshop) -> None:
        """A second session finds what the first one left in the workspace, and nothing of its home and temp."""
        workspace = shop.open()
        shop.work(workspace, "echo x > x; echo h > ~/h; echo t > /tmp/t; rm README.md")
        assert shop.work(workspace, "ls x; ls ~ /tmp; ls").stdout.split()[:3] == [b"x", b"/home/agent:", b"/tmp:"]
        assert b"README.md" not in shop.work(workspace, "ls").stdout

    def test_check_sees_it_and_keeps_nothing(self, shop: Workshop) -> None:
        """Verify and oracle see deletions and replaced directories, may write, and change nothing."""
        workspace = shop.open(shop.start(setup="mkdir made; echo 1 > made/by-setup; rm -r src/deep"))
        shop.work(workspace, "rm -r old; mkdir old; echo n > old/n; rm -r made; echo f > made; echo c > .claude/c")
        for _ in range(2):
            ended = shop.shell(
                workspace.check_mounts(), "ls old src .claude; cat made; rm -r old src; echo x > x; rm .claude/c"
            )
            assert ended.stdout == b".claude:\nc\nsettings.json\nskills\n\nold:\nn\n\nsrc:\napp.py\nf\n"

    def test_view(self, shop: Workshop) -> None:
        """A review sees the start state and can write nothing."""
        workspace = shop.open(shop.start(setup="echo s > s"))
        shop.work(workspace, "echo x > x")
        ended = shop.shell(workspace.view_mounts(), "ls s x; touch README.md y .claude/z; echo $?")
        assert ended.stdout == b"s\n1\n"

    def test_merged_is_read_only(self, shop: Workshop) -> None:
        """The merged view shows what was left and cannot be written."""
        workspace = shop.open()
        shop.work(workspace, "echo x > x; echo c > .claude/c")
        assert shop.shell(workspace.merged_mounts(), "cat x .claude/c; touch y || touch .claude/y").stdout == b"x\nc\n"


class TestSkills:
    @pytest.mark.parametrize(
        "attempt",
        [
            "echo x > .claude/skills/work/SKILL.md",
            "rm .claude/skills/work/SKILL.md",
            "touch .claude/skills/new",
            "mv .claude/skills .claude/other",
            "mv .claude other",
            "mv .claude other; mkdir -p .claude/skills/work; echo bad > .claude/skills/work/SKILL.md",
            "rm -rf .claude",
            "rmdir .claude/skills",
            "ln -sfn /tmp .claude/skills/work",
            "mount --bind /tmp .claude/skills",
            "git checkout -q -- .claude/skills; exit 1",
        ],
    )
    def test_sealed(self, shop: Workshop, attempt: str) -> None:
        """No session can change, replace or move the skills, or the directory they lie in."""
        workspace = shop.open()
        look = "cd /workspace; cat .claude/skills/work/SKILL.md; ls .claude/skills"
        for script in (f"({attempt}) >/dev/null 2>&1; {look}", look):
            assert shop.shell(workspace.session_mounts(), script).stdout == b"# work\nwork\n"

    @pytest.mark.parametrize("path", [".claude", ".claude/skills"])
    def test_busy(self, shop: Workshop, path: str) -> None:
        """Renaming the skills or the directory they lie in is refused as busy."""
        script = f"python3 -c \"import os; os.rename('{path}', '{path}-x')\""
        assert b"busy" in shop.shell(shop.open().session_mounts(), script).stderr

    def test_beside_them(self, shop: Workshop) -> None:
        """Beside the skills the directory can be written, and deletions hold."""
        workspace = shop.open()
        shop.work(workspace, "rm .claude/settings.json; echo n > .claude/new")
        for mounts in (workspace.session_mounts(), workspace.check_mounts(), workspace.merged_mounts()):
            assert shop.shell(mounts, "ls .claude").stdout == b"new\nskills\n"

    def test_of_the_start_state(self, shop: Workshop) -> None:
        """Skills that setup or a candidate brought are sealed too, and what setup removed stays away."""
        start = shop.start(setup="rm -r .claude; mkdir .claude", overlay_files={"mine/SKILL.md": b"# mine\n"})
        workspace = shop.open(start)
        ended = shop.shell(workspace.session_mounts(), "ls .claude .claude/skills; touch .claude/skills/x")
        assert (ended.stdout, ended.status) == (b".claude:\nskills\n\n.claude/skills:\nmine\n", 1)

    def test_behind_a_link(self, shop: Workshop, tmp_path: Path) -> None:
        """A link in the place of the skills is not followed on the host."""
        plain = shop.write("plain", {"README.md": "x"})
        (plain / ".claude").symlink_to(tmp_path)
        (tmp_path / "skills").mkdir()
        workspace = shop.open(shop.start(shop.template(plain)))
        assert (len(workspace.parts), workspace.sealed) == (1, ())

    def test_without_skills(self, shop: Workshop) -> None:
        """A repository without skills has a single upper, and the agent may make such a directory."""
        workspace = shop.open(shop.start(shop.template(shop.write("p", {"a": "x"}))))
        assert len(workspace.parts) == 1
        shop.work(workspace, "mkdir -p .claude/skills; touch .claude/skills/x")


class TestRemoval:
    def test_ordinary(self, shop: Workshop) -> None:
        """A used workspace is gone after its removal, and a second removal is no error."""
        workspace = shop.open()
        shop.work(workspace, "rm -r old; echo x > x; chmod 0 src; mkdir -p a/b; chmod 0 a")
        workspace.remove()
        workspace.remove()
        assert not workspace.directory.exists()

    def test_deep_tree(self, shop: Workshop) -> None:
        """A tree deeper than any path may be long is removed."""
        workspace = shop.open()
        shop.work(
            workspace, "for i in $(seq 300); do mkdir aaaaaaaaaaaaaaaaaaaaaaaa; cd aaaaaaaaaaaaaaaaaaaaaaaa; done"
        )
        workspace.remove()
        assert not workspace.directory.exists()

    def test_links_are_not_followed(self, shop: Workshop, tmp_path: Path) -> None:
        """Links that an agent made lead nowhere when its workspace is removed."""
        (tmp_path / "keep").mkdir()
        (tmp_path / "keep/file").touch()
        workspace = shop.open()
        shop.work(workspace, f"ln -s {tmp_path}/keep l; chmod 0 src")
        workspace.remove()
        assert (tmp_path / "keep/file").exists()

    def test_failure(self, tmp_path: Path) -> None:
        """What cannot be removed is an error that names it."""
        with pytest.raises(CleanupFailed, match="/proc"):
            remove_tree(Path("/proc/self"))


@pytest.mark.slow
def test_constant_time(shop: Workshop) -> None:
    """Set-up of a cell takes milliseconds with 5,000 files as with 50."""
    seconds = []
    for number in (50, 5000):
        files = {f"d{index % 50}/f{index}": f"{index}\n" for index in range(number)}
        start = shop.start(shop.template(shop.write(f"files-{number}", files)))
        taken = []
        for _ in range(20):
            began = time.monotonic()
            shop.open(start).session_mounts()
            taken.append(time.monotonic() - began)
        seconds.append(median(taken))
    assert max(seconds) < 0.05
