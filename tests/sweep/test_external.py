"""A sweep's external plugin: what is asked of it, before anything is spent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_wfbench.agents.base import Runtime
from pytest_wfbench.matrix.problems import InvalidCases
from pytest_wfbench.options import read_options
from pytest_wfbench.sweep.manifest import lock
from pytest_wfbench.sweep.plan import Plan
from pytest_wfbench.sweep.prepare import prepare
from pytest_wfbench.workspace.external import MANIFEST
from tests.suite import Suite

ARM = """\
  external:
    plugin: true
    skills: [work]
    sessions: [{name: work, skill: work, prompt: "Use the work skill. {task}"}]
"""
GIVEN = {"subject": ["command:solve.sh"], "arms": "external,baseline", "plugin_dir": "ce", "plugin_version": "1.2.0"}


@pytest.fixture
def external(suite: Suite) -> Suite:
    """The suite with an arm that uses a plugin, and a plugin."""
    suite.put("cases/arms.yaml", (suite.path / "cases/arms.yaml").read_text() + ARM)
    suite.put(f"ce/{MANIFEST}", json.dumps({"name": "ce", "version": "1.2.0"}))
    suite.put("ce/skills/work/SKILL.md", "---\nname: work\n---\nDo the plugin's work.\n")
    return suite


def plan_of(suite: Suite, **given: Any) -> Plan:
    wanted = GIVEN | given
    options = read_options(lambda spec: wanted.get(spec.field))
    return prepare([suite.path / "cases" / "tiny.cases.yaml"], options, suite.path)


def problems(suite: Suite, **given: Any) -> list[str]:
    with pytest.raises(InvalidCases) as caught:
        plan_of(suite, **given)
    return str(caught.value).replace(str(suite.path), "<suite>").splitlines()


class TestPlan:
    def test_bound(self, external: Suite) -> None:
        """The plan holds the plugin, whole after a journey as JSON; only the arm that uses it is bound to its bytes."""
        plan = plan_of(external)
        plugin = plan.plugin
        assert plugin
        assert (plugin.name, plugin.version, plugin.skills) == ("ce", "1.2.0", ("work",))
        assert Plan.model_validate_json(plan.model_dump_json()).plugin == plugin
        arms = {arm.name: arm for arm in next(iter(plan.arms.values())).chosen}
        assert (plan.plugin_of(arms["external"]), plan.plugin_of(arms["baseline"])) == (plugin, None)
        assert plan.skill_name(arms["external"], "work") == "ce:work"
        assert lock(plan)["plugin"] == plugin.digest
        external.put("ce/hooks/more.sh", "exit 0\n")
        assert lock(plan_of(external))["plugin"] != plugin.digest

    def test_repository_needs_no_skill(self, external: Suite) -> None:
        """The skills of an arm with a plugin are the plugin's: the repository needs none, and offers it none."""
        (external.path / "cases/tiny/.claude/skills/work/SKILL.md").unlink()
        assert plan_of(external).plugin

    def test_unsupported(self, external: Suite) -> None:
        """A subject that cannot load plugins is skipped in arms that need one, and only there."""
        plan = plan_of(external)
        cells = [cell for cell in plan.cells() if not cell.task.expensive]
        skipped = {cell.arm.name: skip.reason for cell in cells if (skip := plan.skip(cell))}
        assert skipped == {"external": "command:solve.sh has no plugins, which external needs"}
        able = {name: Runtime(runtime.version, plugins=True) for name, runtime in plan.runtimes.items()}
        more = plan.model_copy(update={"runtimes": able})
        assert not any(more.skip(cell) for cell in cells)


class TestRefused:
    def test_half_given(self, external: Suite) -> None:
        """Directory and version are given together or not at all."""
        assert problems(external, plugin_version=None) == [
            "--wfbench-plugin-dir: needs --wfbench-plugin-version beside it. Give the version that its manifest has"
        ]
        assert problems(external, plugin_dir=None) == [
            "--wfbench-plugin-version: needs --wfbench-plugin-dir beside it. Name the plugin's directory"
        ]

    def test_not_given(self, external: Suite) -> None:
        """An arm that needs a plugin is refused without one."""
        [said] = problems(external, plugin_dir=None, plugin_version=None)
        assert said.startswith("cases/arms.yaml:")
        assert "arm 'external' needs an external plugin" in said

    def test_not_used(self, external: Suite) -> None:
        """A plugin that no selected arm uses is refused."""
        [said] = problems(external, arms="baseline")
        assert said.startswith("--wfbench-plugin-dir: no selected arm uses the plugin. Select one of external")

    def test_disagrees(self, external: Suite) -> None:
        """A manifest of another version is refused by its name, and nothing else is said."""
        assert problems(external, plugin_version="1.3.0") == [
            f"ce: [{MANIFEST}]: says version '1.2.0', and '1.3.0' was asked for. "
            "Give the version that is there in --wfbench-plugin-version"
        ]

    @pytest.mark.parametrize("directory", ["lost", "solve.sh"])
    def test_no_directory(self, external: Suite, directory: str) -> None:
        """A plugin that is not there is told."""
        [said] = problems(external, plugin_dir=directory)
        assert said == f"{directory}: is no directory. Name the plugin's own directory, and no link"

    def test_no_manifest(self, external: Suite) -> None:
        """A directory without a manifest is no plugin."""
        [said] = problems(external, plugin_dir="ce/skills")
        assert said.startswith(f"ce/skills: [{MANIFEST}]: is missing.")

    def test_link(self, external: Suite) -> None:
        """A link in a plugin is refused by its name."""
        (external.path / "ce/skills/out").symlink_to("/etc")
        [said] = problems(external)
        assert said.startswith("ce: [skills/out]: a link, not a regular file.")

    def test_lacks_skill(self, external: Suite) -> None:
        """A skill that the plugin lacks is told with those it has, though the repository has it."""
        (external.path / "ce/skills/work").rename(external.path / "ce/skills/ce-work")
        [said] = problems(external)
        assert "arm 'external' needs the skill 'work', which the plugin lacks. It has ce-work" in said

    def test_holds_what_is_hidden(self, external: Suite) -> None:
        """A plugin's directory that holds cases or oracles would show them to every agent."""
        external.put(MANIFEST, json.dumps({"name": "ce", "version": "1.2.0"}))
        external.put("skills/work/SKILL.md", "Work.\n")
        [said] = problems(external, plugin_dir=".")
        assert "which is to be hidden" in said

    def test_lies_in_what_is_hidden(self, external: Suite) -> None:
        """So does one that lies among them: what is hidden is not shown as a plugin."""
        (external.path / "ce").rename(external.path / "oracles/ce")
        [said] = problems(external, plugin_dir="oracles/ce")
        assert said.startswith("--wfbench-plugin-dir: oracles/ce lies in oracles, which is to be hidden.")


class TestUsage:
    def test_exit_status(self, external: Suite) -> None:
        """Pytest exits 4 before anything is made."""
        options = ("--wfbench-arms=external", "--wfbench-plugin-dir=ce", "--wfbench-plugin-version=2")
        ran = external.run(*options)
        assert ran.ret == pytest.ExitCode.USAGE_ERROR
        ran.stderr.fnmatch_lines([f"*ce: ?{MANIFEST}?: says version '1.2.0', and '2' was asked for.*"])
        assert not (external.path / "results").exists()


def test_directory_is_the_users(external: Suite) -> None:
    """A plugin may lie anywhere, and nothing of it is read once it is kept."""
    plan = plan_of(external, plugin_dir=str(external.path / "ce"))
    assert plan.plugin
    external.put("ce/skills/work/SKILL.md", "Later.\n")
    assert "plugin's" in (plan.plugin.path / "skills/work/SKILL.md").read_text()
