"""Cells of scripted agents: the plan that is handed over, skills by file, secrets, and limits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.suite import Suite

pytestmark = pytest.mark.slow

PLANNER = """\
#!/bin/sh
prompt=$(cat)
case "$prompt" in
  Plan:*) mkdir -p plans; {plan};;
  *) case "$prompt" in *plans/one.md*) echo done > a.txt;; esac;;
esac
"""

SKILLED = """\
#!/bin/sh
prompt=$(cat)
case "$prompt" in *"cat .claude/skills/work/SKILL.md"*) ;; *) exit 9;; esac
text=$(cat .claude/skills/work/SKILL.md)
say() {{ echo "$1" >&$WFBENCH_EVENTS_FD; }}
say '{{"type":"tool_call","id":"1","name":"bash","arguments":{{"command":"{command}"}}}}'
say '{{"type":"tool_result","id":"1","error":{error}}}'
echo done > a.txt
{end}
"""
FINAL = """say '{"type":"final","status":"ok"}'"""
READ = "cat .claude/skills/work/SKILL.md"

LEAKY = """\
#!/bin/sh
say() { printf '%s\\n' "$1" >&$WFBENCH_EVENTS_FD; }
prompt=$(cat)
say '{"type":"tool_call","id":"1","name":"bash","arguments":{"command":"curl -H \\"Authorization: Bearer abc123def456ghi\\""}}'
say '{"type":"tool_result","id":"1","output":"API key is planted-value-0123456789 and sk-ant-REDACTED"}'
say "{\\"type\\":\\"text\\",\\"text\\":\\"$prompt\\"}"
echo "planted-value-0123456789" >&2
env > seen.env
printf 'done\\n' > a.txt
echo planted-value-0123456789 > b.txt
"""  # noqa: E501


PLANS = {
    "one": "echo plan > plans/one.md",
    "none": "true",
    "two": "echo a > plans/one.md; echo b > plans/two.md",
    "another-file-too": "echo a > plans/one.md; echo b > b.txt",
    "through-a-link": "ln -s ../a.txt plans/one.md; echo x > plans/one.md",
}

READERS = {
    "read": (READ, "false", FINAL),
    "failed": (READ, "true", FINAL),
    "piped": (READ + " | head -1", "false", FINAL),
    "two-ends": (READ, "false", FINAL + "\n" + FINAL),
    "torn": (READ, "false", "printf '{' >&$WFBENCH_EVENTS_FD"),
}


def run_each(suite: Suite, arm: str, scripts: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Run one task with each script as a subject of one sweep; return the rows by the script's name."""
    for name, text in scripts.items():
        suite.put(f"{name}.sh", text)
    subjects = [f"--wfbench-subject=command:{name}.sh" for name in scripts]
    suite.run(f"--wfbench-arms={arm}", "-k", "finish", *subjects, "--wfbench-outage-limit=0", agent="")
    return {row["requested_model"].removesuffix(".sh"): row for row in suite.rows()}


class TestPlan:
    def test_hand_over(self, suite: Suite) -> None:
        """A plan is one new file with nothing else changed, and the next session is told its path."""
        rows = run_each(suite, "planned", {name: PLANNER.format(plan=plan) for name, plan in PLANS.items()})
        kinds = {name: row["kind"] for name, row in rows.items()}
        assert kinds == {name: None if name == "one" else "plan-invalid" for name in PLANS}
        assert rows["one"]["outcome"] == "pass"
        assert (rows["one"]["churn"]["files"], rows["two"]["churn"]["files"]) == (1, 0)
        assert "found 2, and 0 other changed files" in rows["two"]["reason"]


class TestSkill:
    def test_evidence(self, suite: Suite) -> None:
        """Skill use is a successful call that read exactly that file, in a stream that is whole."""
        scripts = {
            name: SKILLED.format(command=command, error=error, end=end)
            for name, (command, error, end) in READERS.items()
        }
        rows = run_each(suite, "workflow_direct", scripts)
        assert {name: (row["kind"], row["skills_used"]) for name, row in rows.items()} == {
            "read": (None, ["work"]),
            "failed": ("skill-not-invoked", []),
            "piped": ("skill-not-invoked", []),
            "two-ends": ("evidence-unverified", ["work"]),
            "torn": ("evidence-unverified", ["work"]),
        }
        assert all(row["skills_expected"] == ["work"] and row["tool_calls"] == {"bash": 1} for row in rows.values())
        assert rows["read"]["skill_digest"].startswith("sha256:")

    def test_agent_without_events(self, suite: Suite) -> None:
        """An agent that reports no events is skipped in arms with skills, and the manifest says so."""
        result = suite.run("--wfbench-arms=workflow_direct", "-k", "finish", "-rs")
        result.assert_outcomes(skipped=1)
        result.stdout.fnmatch_lines(["SKIPPED * command:solve.sh reports no events*"])
        (skipped,) = suite.sweep()["skipped"]
        assert skipped["kind"] == "unsupported"


class TestSecrets:
    def test_none_is_kept(self, suite: Suite) -> None:
        """A secret of the environment, planted anywhere, is in no file of the results and reaches no agent."""
        suite.put("leaky.sh", LEAKY)
        suite.edit("cases/tiny.cases.yaml", "prompt: Make a.txt say done.\n", "prompt: Use planted-value-0123456789.\n")
        result = suite.run("-k", "finish", "-rA", agent="leaky.sh", SOME_API_KEY="planted-value-0123456789")
        assert result.ret == 0
        (row,) = suite.rows()
        kept = {path.name: path.read_text() for path in suite.results.rglob("*") if path.is_file()}
        assert {
            "transcript.jsonl",
            "stderr.txt",
            "patch.diff",
            "results.jsonl",
            "sweep.json",
            "report.md",
        } <= kept.keys()
        for secret in ("planted-value", "sk-ant-api03", "abc123def456ghi", "SOME_API_KEY"):
            assert [name for name, text in kept.items() if secret in text] == []
            assert secret not in result.stdout.str()
        assert row["outcome"] == "pass"
        events = [json.loads(line) for line in kept["transcript.jsonl"].splitlines()]
        assert [event["type"] for event in events] == ["tool_call", "tool_result", "text", "final"]


class TestCauses:
    def test_timeouts(self, suite: Suite) -> None:
        """A session or a verify that runs too long is a miss whose numbers are kept."""
        suite.put("slow.sh", '#!/bin/sh\necho done > a.txt\ncase "$(cat)" in *too.*) sleep 30;; esac\n')
        suite.edit("cases/tiny.cases.yaml", "verify: grep -q done a.txt", "verify: sleep 30")
        suite.edit(
            "cases/tiny.cases.yaml", "{session: 40s, setup: 20s, verify: 20s", "{session: 2s, setup: 20s, verify: 1s"
        )
        assert suite.run(agent="slow.sh").ret == 0
        rows = {row["task"]: row for row in suite.rows()}
        assert {task: row["kind"] for task, row in rows.items()} == {
            "finish": "verify-timeout",
            "other": "session-timeout",
        }
        assert rows["other"]["timings"]["session"] > 1
        assert rows["other"]["authored_tests_passed"] is False
        assert rows["other"]["oracle_passed"] is True
        assert "verify ran longer" in rows["other"]["reason"]


DEEP = "python3 -c \"import os; [(os.mkdir('d' * 120), os.chdir('d' * 120)) for _ in range(40)]\""


@pytest.mark.parametrize("leave", ["chmod 0 .", DEEP])
def test_what_cannot_be_read_is_a_miss(suite: Suite, leave: str) -> None:
    """An agent that leaves a workspace nobody can read has missed; its session's numbers are kept."""
    suite.put("closed.sh", f"#!/bin/sh\necho wrong > a.txt\n{leave}\n")
    assert suite.run("-k", "finish", agent="closed.sh").ret == 0
    (row,) = suite.rows()
    assert (row["outcome"], row["kind"], row["resolved"]) == ("miss", "no-work-produced", False)
    assert "cannot be read" in row["reason"]
    assert row["timings"]["session"] > 0
    assert row["churn"] is None


def test_names_of_tools_are_redacted(suite: Suite) -> None:
    """A secret that an agent uses as a tool's name is in no row; there is a bound on names and on their number."""
    lines = "".join(
        f"""say '{{"type":"tool_call","id":"{n}","name":"{name}"}}'; say '{{"type":"tool_result","id":"{n}"}}'\n"""
        for n, name in enumerate(["planted-value-0123456789", "a" * 500, *(f"t{i}" for i in range(150))])
    )
    script = '#!/bin/sh\nsay() { printf "%s\\n" "$1" >&$WFBENCH_EVENTS_FD; }\necho done > a.txt\n' + lines
    suite.put("named.sh", script + FINAL + "\n")
    suite.run("-k", "finish", agent="named.sh", SERVICE_TOKEN="planted-value-0123456789")
    (row,) = suite.rows()
    assert row["outcome"] == "pass"
    assert "planted-value" not in json.dumps(row)
    assert len(row["tool_calls"]) == 100
    assert max(map(len, row["tool_calls"])) == 80
