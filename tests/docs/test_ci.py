"""docs/ci.md followed literally, and the workflows that it offers."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_wfbench.cli import wfbench
from pytest_wfbench.options import SPECS
from tests.forge.standin import StandIn, serving

from .markdown import ROOT, marked
from .session import Shell, settled

PAGE = ROOT / "docs/ci.md"
TEMPLATES = sorted((ROOT / "docs/ci").glob("*.yml"))
WORKFLOWS = [*sorted((ROOT / ".github/workflows").glob("*.yml")), *(p for p in TEMPLATES if p.name[:6] == "github")]
PINNED = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")


def actionlint(*paths: Path) -> subprocess.CompletedProcess[str]:
    program = shutil.which("actionlint", path=str(Path(sys.executable).parent))
    assert program, "actionlint is not installed: run scripts/setup.sh"
    return subprocess.run([program, "-no-color", *map(str, paths)], capture_output=True, text=True, timeout=120)


def steps(path: Path) -> dict[str, dict[str, Any]]:
    """The steps of a workflow that have an id."""
    jobs = yaml.safe_load(path.read_text())["jobs"].values()
    return {step["id"]: step for job in jobs for step in job["steps"] if "id" in step}


@pytest.mark.slow
def test_page(tmp_path: Path) -> None:
    """From an empty directory to a posted comment and a workflow, by the page; then by the workflow itself."""
    shell = Shell(tmp_path, {"WFBENCH": str(ROOT)})
    for ran, _ in shell.play(marked(PAGE, "run", "ci")):
        assert ran.status == 0, ran.output
    (comment,) = json.loads((tmp_path / "comments.json").read_text())
    [shown] = marked(PAGE, "shown", "ci")
    body = settled(comment["body"])
    assert body[0].startswith("<!-- pytest-wfbench key=smoke")
    assert body[1 : 1 + len(settled(shown.text))] == settled(shown.text)
    with serving(StandIn()) as state:
        _follow_workflow(tmp_path, state)
    (posted,) = state.comments
    assert "key=Smoke-eval order=12002 -->" in posted["body"]
    assert "Δ +55.6 % tokens against main" in posted["body"]
    assert "rubric-missed: Comma and mark are lost." in posted["body"]


def _follow_workflow(directory: Path, state: StandIn) -> None:
    """Run the steps that sweep and post as a fork's pull request would: without a key."""
    runner = {
        "GITHUB_ACTIONS": "true", "GITHUB_WORKFLOW": "Smoke eval", "GITHUB_RUN_NUMBER": "12", "GITHUB_RUN_ATTEMPT": "2",
        "GITHUB_API_URL": state.root, "GITHUB_REPOSITORY": "team/tool", "GITHUB_REF": "refs/pull/7/merge",
        "GITHUB_HEAD_REF": "topic", "GITHUB_STEP_SUMMARY": str(directory / "step.md"), "CI": "true",
    }  # fmt: skip
    given = {"MODEL": "litellm/gpt-5-mini", "JUDGE": "litellm/claude-haiku-4-5", "GITHUB_TOKEN": "t"}
    written = steps(directory / ".github/workflows/smoke.yml")
    for name in ("smoke", "comment"):
        env = {key: given.get(key, "") for key in written[name]["env"]}
        ran = Shell(directory, {**runner, **env}).run(f"set -e\n{written[name]['run']}")
        assert ran.status == 0, ran.output
    assert (directory / "step.md").read_text().count("<!-- pytest-wfbench") == 1


class TestWorkflows:
    def test_actionlint(self) -> None:
        """Every workflow, ours and those to copy, is clean; one that is not is found."""
        done = actionlint(*WORKFLOWS)
        assert (done.returncode, done.stdout + done.stderr) == (0, "")

    def test_actionlint_finds(self, tmp_path: Path) -> None:
        """The check can fail."""
        spoiled = tmp_path / "spoiled.yml"
        spoiled.write_text(WORKFLOWS[0].read_text().replace("runs-on: ubuntu-24.04", "runs-on: ${{ no.such }}"))
        assert actionlint(spoiled).returncode == 1

    @pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
    def test_hardened(self, path: Path) -> None:
        """Actions are pinned, rights are least, jobs have limits, secrets are variables of one step."""
        text = path.read_text()
        flow = yaml.safe_load(text)
        used = re.findall(r"uses: (.*)", text)
        assert used
        assert all(PINNED.fullmatch(entry) for entry in used), used
        assert flow["permissions"] == {"contents": "read"}
        assert flow["concurrency"]["group"]
        assert "pull_request_target" not in flow[True]
        for job in flow["jobs"].values():
            assert job["timeout-minutes"]
            assert "env" not in job
            assert any("apparmor_restrict_unprivileged_userns=0" in step.get("run", "") for step in job["steps"])
            for step in job["steps"]:
                assert "secrets." not in step.get("run", "")
                assert "${{" not in step.get("run", "")
                if "checkout" in step.get("uses", ""):
                    assert step["with"]["persist-credentials"] is False

    @pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
    def test_commands_exist(self, path: Path) -> None:
        """Every option and verb that a template names exists, and smoke asks for one answer at a time."""
        text = path.read_text()
        assert set(re.findall(r"--wfbench-[a-z-]*[a-z]", text)) <= {spec.flag for spec in SPECS}
        assert set(re.findall(r"(?m)(?:^|then |- |run: )\s*wfbench (\w+)", text)) <= set(wfbench.list_commands(None))  # type: ignore[arg-type]
        assert all("--wfbench-max-parallel-requests 1" in line for line in re.findall(r"pytest cases -m smoke.*", text))
        assert yaml.safe_load(text)

    def test_push(self, tmp_path: Path) -> None:
        """The weekly run files its sweep and pushes it to a repository that did not have the branch."""
        text = steps(ROOT / "docs/ci/github-weekly.yml")["push"]["run"]
        server, local = tmp_path / "team/tool", tmp_path / "local"
        for place, more in ((server, ["--bare"]), (local, [])):
            subprocess.run(["git", "init", "-q", *more, str(place)], check=True)
        code = "from pytest_wfbench.baselines.place import open_store as o; from pathlib import Path; "
        code += "o('git:.', Path()).write('main/main/20261101T000000Z-a.json', b'{}')"
        ran = Shell(local).run(f"{sys.executable} -c {code!r}")
        assert ran.status == 0, ran.output
        at = {"GITHUB_SERVER_URL": str(tmp_path), "GITHUB_REPOSITORY": "team/tool", "GITHUB_TOKEN": "t"}
        ran = Shell(local, at).run(f"set -e\n{text}")
        assert ran.status == 0, ran.output
        listed = subprocess.run(["git", "-C", str(server), "ls-tree", "-r", "--name-only", "wfbench-baselines"],
                                capture_output=True, text=True, check=True)  # fmt: skip
        assert listed.stdout == "main/main/20261101T000000Z-a.json\n"
