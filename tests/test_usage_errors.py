"""Bad input: every error of every file at once, exit 4, before the gateway or any worker is started."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.suite import Suite

FILE, ARMS = "cases/tiny.cases.yaml", "cases/arms.yaml"

# What xdist starts a worker with.
WORKER = "sys.stdin.readline"

SPY = """\
import subprocess
start = subprocess.Popen.__init__
def spy(self, argv, *rest, **named):
    with open("started.txt", "a") as stream:
        print(argv, file=stream)
    return start(self, argv, *rest, **named)
subprocess.Popen.__init__ = spy
"""


def typo(suite: Suite) -> None:
    suite.edit(FILE, "    class: trivial", "    clas: trivial")


def duplicate_id(suite: Suite) -> None:
    suite.edit(FILE, "id: other", "id: finish")


def duplicate_key(suite: Suite) -> None:
    suite.edit(FILE, "    class: trivial", "    class: trivial\n    class: large")


def outside_the_root(suite: Suite) -> None:
    suite.put("secret.sh", "exit 0\n")
    suite.edit(FILE, "source: check.sh", "source: ../secret.sh")


def behind_a_link(suite: Suite) -> None:
    suite.put("elsewhere/check.sh", "exit 0\n")
    (suite.path / "oracles" / "linked").symlink_to("../elsewhere")
    suite.edit(FILE, "source: check.sh", "source: linked/check.sh")


def unknown_arm(suite: Suite) -> list[str]:
    return ["--wfbench-arms=baseline,workflw_direct"]


def candidate_alone(suite: Suite) -> list[str]:
    suite.put("overlay/work/SKILL.md", "Do it better.\n")
    return ["--wfbench-arms=candidate_workflow_direct", "--wfbench-candidate-overlay=overlay"]


def no_cassette(suite: Suite) -> list[str]:
    return ["--wfbench-subject=mini:replay/lost"]


def no_repository(suite: Suite) -> None:
    suite.edit(FILE, "repo: tiny", "repo: tinier")


def no_ref(suite: Suite) -> None:
    setting = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main")
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "first"]):
        subprocess.run(["git", *setting, *arguments], cwd=suite.path / "cases" / "tiny", check=True)
    suite.edit(FILE, "repo: tiny\n", "repo: tiny\n  ref: v9.9\n")


def no_skill(suite: Suite) -> list[str]:
    (suite.path / "cases" / "tiny" / ".claude" / "skills" / "work" / "SKILL.md").unlink()
    return ["--wfbench-arms=workflow_direct"]


def no_script(suite: Suite) -> list[str]:
    return ["--wfbench-subject=command:lost.sh"]


def no_key(suite: Suite) -> list[str]:
    suite.monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    return ["--wfbench-subject=mini:anthropic/claude-sonnet-4-5"]


def no_proxy(suite: Suite) -> list[str]:
    for name in ("LITELLM_PROXY_URL", "LITELLM_PROXY_API_KEY"):
        suite.monkeypatch.delenv(name, raising=False)
    return ["--wfbench-subject=mini:litellm/team-model"]


def credentials_in_a_url(suite: Suite) -> list[str]:
    suite.monkeypatch.setenv("LITELLM_PROXY_URL", "https://me:sk-0123456789abcdef01@llm.example/v1")
    suite.monkeypatch.setenv("LITELLM_PROXY_API_KEY", "sk-team-0123456789abcdef")
    return ["--wfbench-subject=mini:litellm/team-model"]


def written_key(suite: Suite) -> None:
    suite.edit(
        FILE, "    class: trivial", "    class: trivial\n    mcp: {x: {command: [x], env: {K: sk-ant-0123456789}}}"
    )
    suite.put(ARMS, (suite.path / ARMS).read_text() + "# sk-or-v1-0123456789abcdef\n")


def moving_alias(suite: Suite) -> list[str]:
    suite.put("overlay/work/SKILL.md", "Do it better.\n")
    arms = "--wfbench-arms=workflow_direct,candidate_workflow_direct"
    return [arms, "--wfbench-candidate-overlay=overlay", "--wfbench-subject=mini:ollama/qwen3"]


def unproven_oracle(suite: Suite) -> None:
    suite.edit(FILE, 'check.sh\\""', 'check.sh\\" > $WFBENCH_ORACLE_RESULTS"')
    suite.edit(FILE, "results: exit", "results: junit")


BAD: tuple[Callable[[Suite], list[str] | None], ...] = (
    typo, duplicate_id, duplicate_key, outside_the_root, behind_a_link, unknown_arm, candidate_alone, no_cassette,
    no_repository, no_ref, no_skill, no_script, no_key, no_proxy, credentials_in_a_url, written_key, moving_alias,
    unproven_oracle,
)  # fmt: skip


class TestEach:
    @pytest.mark.parametrize("spoil", BAD, ids=lambda spoil: spoil.__name__)
    def test_told(self, suite: Suite, snapshot: SnapshotAssertion, spoil: Callable[[Suite], list[str] | None]) -> None:
        """Each is told with file, line, task, key and remedy; exit 4, and no results directory is left."""
        options = spoil(suite) or []
        subject = [] if any("subject" in option for option in options) else ["--wfbench-subject=command:solve.sh"]
        plugins = ("-p", "no:syrupy", "-p", "no:hypothesispytest", "-p", "no:xdist")
        result = suite.pytester.runpytest_inprocess("cases", *plugins, *subject, *options)
        assert result.ret == 4
        assert result.stderr.str().replace(str(suite.path), "<suite>").strip() == snapshot
        assert not (suite.path / "results").exists()


class TestTogether:
    @pytest.mark.slow
    @pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["plain", "workers"])
    def test_all_at_once(self, suite: Suite, snapshot: SnapshotAssertion, workers: tuple[str, ...]) -> None:
        """All faults of all files and options are told together, the same with workers, and nothing is started."""
        suite.put("conftest.py", SPY)
        duplicate_id(suite)
        suite.edit(FILE, "    expensive: true", "    expensive: true\n    promt: typo")
        suite.edit(FILE, "    class: trivial", "    class: trivial\n    repo: tinier")
        suite.put("cases/more/more.cases.yaml", "tasks: [{id: lone, kind: implementation}]\n")
        result = suite.run(
            "--wfbench-arms=nope,candidate_workflow_direct", "--wfbench-subject=mini:replay/lost", *workers
        )
        assert result.ret == 4
        assert result.stderr.str().strip() == snapshot(name="all at once")
        assert not (suite.path / "results").exists()
        started = suite.path / "started.txt"
        said = started.read_text() if started.exists() else ""
        assert "gateway" not in said
        assert WORKER not in said

    @pytest.mark.slow
    def test_what_a_good_one_starts(self, suite: Suite) -> None:
        """The check above can fail: a sweep with workers is seen to start them."""
        suite.put("conftest.py", SPY)
        assert suite.run("-n", "1", "-k", "finish").ret == 0
        assert WORKER in (suite.path / "started.txt").read_text()


class TestLimits:
    def test_bad_limit_in_the_ini(self, suite: Suite) -> None:
        """A limit for all tasks that does not read ends pytest with status 4, naming its option."""
        suite.put("pytest.ini", "[pytest]\nwfbench_limit_memory = lots\nwfbench_limit_inodes = 3\n")
        result = suite.run()
        assert result.ret == 4
        for said in ("--wfbench-limit-memory: not a size, found 'lots'", "--wfbench-limit-inodes: must be at least 8"):
            assert said in result.stderr.str()
        assert not (suite.path / "results").exists()
