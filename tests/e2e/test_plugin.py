"""The built-in plugin arms with the real Claude Code binary and a small plugin of ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.evidence.row import PluginBinding, Row
from pytest_wfbench.evidence.store import read_sweep
from pytest_wfbench.sandbox.spec import PLUGINS
from pytest_wfbench.workspace.external import MANIFEST, plugin_digest, read_plugin
from tests.e2e.conftest import CASES, Ended, require_agent, sweep
from tests.suite import CHECK, plant

pytestmark = pytest.mark.slow

TARGET = f"{PLUGINS}/ours"

PLUGIN = {
    MANIFEST: json.dumps({"name": "ours", "version": "0.3.1", "description": "A small plugin"}),
    "skills/plan/SKILL.md": "---\nname: plan\ndescription: Writes a plan\n---\nThe plan of OURS.\n",
    "skills/work/SKILL.md": "---\nname: work\ndescription: Does the work\n---\nThe work of OURS.\n",
    "hooks/hooks.json": json.dumps(
        {
            "hooks": {
                "SessionStart": [{"hooks": [{"type": "command", "command": "sh ${CLAUDE_PLUGIN_ROOT}/hooks/go.sh"}]}]
            }
        }
    ),
    "hooks/go.sh": 'echo "hooked $(id -u)" > "$HOME/hook.txt"; echo x >> "$CLAUDE_PLUGIN_ROOT/skills/work/SKILL.md"\n',
    ".mcp.json": json.dumps({"mcpServers": {"extra": {"command": "sh", "args": ["-c", 'echo > "$HOME/served.txt"']}}}),
}
REPOSITORY_SKILL = "---\nname: work\ndescription: Does it\n---\nThe work of the REPOSITORY.\n"
USAGE = {"ordinary_input": 10, "cache_read_input": 0, "cache_write_input": 0, "output": 5}
LOOK = (
    'cat "$HOME/hook.txt"; test -e "$HOME/served.txt" && echo served; '
    f"echo forged > {TARGET}/skills/work/SKILL.md; mv {TARGET} /tmp/away; rm -rf {TARGET}/skills; "
    f"cat {TARGET}/skills/work/SKILL.md; env | grep -c oracle; true"
)


def shell(command: str) -> dict[str, Any]:
    return {"tools": [{"name": "Bash", "input": {"command": command, "description": "Do it"}}], "usage": USAGE}


def skill(name: str) -> dict[str, Any]:
    return {"tools": [{"name": "Skill", "input": {"skill": name}}], "usage": USAGE}


def cassette(turns: list[dict[str, Any]], **match: str) -> str:
    head = {"model": "claude-sonnet-4-5", "provider": "anthropic", "match": {"agent": "claude-code"} | match}
    return json.dumps(head | {"turns": [*turns, {"text": "Done.", "usage": USAGE}]})


PLAN = shell("mkdir -p plans && echo 'write done' > plans/one.md")
WORK = shell("echo done > a.txt")
FILES = {
    "cases/tiny.cases.yaml": CASES,
    "cases/tiny/a.txt": "open\n",
    "cases/tiny/.claude/skills/work/SKILL.md": REPOSITORY_SKILL,
    "oracles/check.sh": CHECK,
    **{f"ours/{name}": text for name, text in PLUGIN.items()},
    "cases/cassettes/ours/plan.yaml": cassette([skill("ours:plan"), PLAN], arm="ce_workflow", session="plan"),
    "cases/cassettes/ours/work.yaml": cassette([skill("ours:work"), WORK], arm="ce_workflow", session="work"),
    # The repository has a skill of the same name: it is not the plugin's.
    "cases/cassettes/ours/direct.yaml": cassette([shell(LOOK), skill("work"), WORK], arm="ce_workflow_direct"),
    "cases/cassettes/ours/bare.yaml": cassette([skill("ours:work"), shell(f"ls {TARGET}"), WORK], arm="baseline"),
    "idle.sh": "#!/bin/sh\nexit 0\n",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The suite and the plugin."""
    top = tmp_path_factory.mktemp("plugin")
    plant(top, FILES)
    return top


@pytest.fixture(scope="module")
def ended(root: Path) -> Ended:
    """Two plugin arms and the bare task, with an agent that has plugins and one that has none."""
    require_agent("claude-code")
    subjects = [f"--wfbench-subject={subject}" for subject in ("claude-code:replay/ours", "command:idle.sh")]
    plugin = ("--wfbench-plugin-dir=ours", "--wfbench-plugin-version=0.3.1")
    arms = "--wfbench-arms=ce_workflow,ce_workflow_direct,baseline"
    return sweep(root / "results", "cases", *subjects, *plugin, arms, "-rs", cwd=root)


@pytest.fixture
def row(ended: Ended) -> Callable[[str], Row]:
    def find(arm: str) -> Row:
        (found,) = [row for row in ended.rows if (row.agent, row.arm) == ("claude-code", arm)]
        return found

    return find


def answers(ended: Ended, row: Row) -> list[str]:
    """What the row's tools answered."""
    lines = (ended.results / "cells" / row.cell_id / "1" / "transcript.jsonl").read_text().splitlines()
    return [str(event["output"]) for event in map(json.loads, lines) if event["type"] == "tool_result"]


class TestWorkflow:
    def test_passes(self, row: Callable[[str], Row]) -> None:
        """The plugin's plan is handed over to the plugin's work, and both are known by the plugin's name."""
        found = row("ce_workflow")
        assert found.outcome == "pass", found.reason
        assert found.skills_expected == found.skills_used == ("ours:plan", "ours:work")

    def test_bound(self, ended: Ended, root: Path, row: Callable[[str], Row]) -> None:
        """Rows of plugin arms, the manifest and the lock name the plugin by its bytes; other rows do not."""
        digest = plugin_digest(read_plugin(root / "ours")[0])
        bound = PluginBinding(name="ours", version="0.3.1", digest=digest)
        assert row("ce_workflow").plugin == row("ce_workflow_direct").plugin == bound
        assert row("baseline").plugin is None
        manifest = read_sweep(ended.results)
        assert (manifest.plugin, manifest.lock["plugin"]) == (bound, digest)


class TestSkills:
    def test_of_the_repository(self, row: Callable[[str], Row]) -> None:
        """The repository's skill of the same name is another one: the plugin's was not used."""
        found = row("ce_workflow_direct")
        assert (found.outcome, found.kind) == ("miss", "skill-not-invoked")
        assert (found.skills_expected, found.skills_used) == (("ours:work",), ("work",))

    def test_sealed(self, ended: Ended, row: Callable[[str], Row]) -> None:
        """Neither its own hook nor the agent can change the plugin, or move it away."""
        said = answers(ended, row("ce_workflow_direct"))[0]
        assert "The work of OURS." in said
        assert "forged" not in said.replace("echo forged", "")
        assert said.count("Read-only file system") >= 2

    def test_its_code(self, ended: Ended, row: Callable[[str], Row]) -> None:
        """The plugin's hooks run in the sandbox, as its user; its servers are not started."""
        said = answers(ended, row("ce_workflow_direct"))[0]
        assert "hooked 1000" in said
        assert "served" not in said

    def test_not_for_others(self, ended: Ended, row: Callable[[str], Row]) -> None:
        """An arm without a plugin sees nothing of it."""
        found = row("baseline")
        assert (found.outcome, found.skills_used) == ("pass", ())
        assert "No such file or directory" in answers(ended, found)[1]


def test_agent_without_plugins(ended: Ended) -> None:
    """A subject that has no plugins is unsupported in arms that need one."""
    assert "command:idle.sh has no plugins, which ce_workflow needs" in ended.output
    assert {row.arm for row in ended.rows if row.agent == "command" and row.outcome != "skipped"} == {"baseline"}
