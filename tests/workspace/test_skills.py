"""Skills: whether they exist, and whether they are still what they were."""

from __future__ import annotations

import pytest

from pytest_wfbench.workspace.skills import missing_skills, skill_digest
from tests.workspace.workshop import Workshop


class TestMissing:
    def test_of_the_template(self, shop: Workshop) -> None:
        """A skill is there if its directory has a SKILL.md."""
        assert missing_skills(shop.start(), ["work", "other", "work/ref"]) == ("other", "work/ref")

    def test_of_the_start_state(self, shop: Workshop) -> None:
        """What setup removed is missing, what a candidate brought is not."""
        start = shop.start(setup="rm .claude/skills/work/SKILL.md", overlay_files={"mine/SKILL.md": b"x"})
        assert missing_skills(start, ["work", "mine"]) == ("work",)

    def test_a_link_is_no_skill(self, shop: Workshop) -> None:
        """A link in the place of SKILL.md does not count."""
        start = shop.start(setup="ln -sf /etc/passwd .claude/skills/work/SKILL.md")
        assert missing_skills(start, ["work"]) == ("work",)


class TestDigest:
    def test_unchanged(self, shop: Workshop) -> None:
        """The start state and a used workspace have the same digest, whatever else was done."""
        workspace = shop.open()
        before = skill_digest(workspace.view_mounts(), ["work"], shop.sandbox)
        shop.work(workspace, "echo x > x; echo y > .claude/settings.json")
        assert before is not None
        assert skill_digest(workspace.merged_mounts(), ["work"], shop.sandbox) == before

    @pytest.mark.parametrize(
        "setup",
        [
            "echo x >> .claude/skills/work/SKILL.md",
            "rm .claude/skills/work/ref/notes.md",
            "touch .claude/skills/work/new",
            "chmod +x .claude/skills/work/SKILL.md",
            "ln -s x .claude/skills/work/link",
            "mv .claude/skills/work/{ref,fer}",
        ],
    )
    def test_changed(self, shop: Workshop, setup: str) -> None:
        """A byte, a name, a mode and a link change the digest."""
        plain = skill_digest(shop.open().view_mounts(), ["work"], shop.sandbox)
        other = skill_digest(shop.open(shop.start(setup=setup)).view_mounts(), ["work"], shop.sandbox)
        assert other != plain

    def test_none(self, shop: Workshop) -> None:
        """Where none of the skills is there, there is no digest."""
        assert skill_digest(shop.open().view_mounts(), ["nothing"], shop.sandbox) is None
