"""Arms files and the templates of prompts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from pytest_wfbench.matrix.arms import PROMPT_FIELDS, Arm, BadTemplate, template_fields
from pytest_wfbench.matrix.load_arms import BUILT_IN, LoadedArms, arms_file_for, load_arms
from pytest_wfbench.matrix.problems import InvalidCases

ReadArms = Callable[[str | bytes], LoadedArms]


def arm(*lines: str, sessions: str = "[{name: work}]") -> str:
    return "\n".join(["arms:", "  mine:", f"    sessions: {sessions}", *(f"    {line}" for line in lines), ""])


def prompt(text: str) -> str:
    return arm(sessions=f"[{{name: work, prompt: {text!r}}}]")


class TestTemplates:
    @pytest.mark.parametrize(
        ("text", "fields"),
        [("{task}", {"task"}), ("no field", set()), ("{{task}}", set()), ("{task}{plan}{output}", PROMPT_FIELDS),
         ("{{{task}}}", {"task"}), ("{{", set()), ('{{"a": "{task}"}}', {"task"})],
    )  # fmt: skip
    def test_fields(self, text: str, fields: set[str]) -> None:
        """A prompt uses bare names between braces; a doubled brace is a brace."""
        assert template_fields(text) == fields

    @pytest.mark.parametrize(
        "text",
        ["{task.__class__}", "{task[0]}", "{0}", "{}", "{task!r}", "{task!s}", "{task:>9}", "{task:{plan}}", "{ task }",
         "{task.format}", "{Task}", "{",
         "}", "a } b", "{task", "task}", "{{task}", "{task}}", "{plan!}", "{\u0442ask}"],
    )  # fmt: skip
    def test_nothing_else_is_reachable(self, text: str) -> None:
        """Attributes, items, positions, conversions, formats and lone braces are refused."""
        with pytest.raises(BadTemplate):
            template_fields(text)

    @given(st.text("{}!:.[]()_ task plan 0", max_size=12) | st.text(max_size=12), st.text(max_size=12))
    def test_rendering_is_plain(self, template: str, task: str) -> None:
        """What is accepted renders without an error, and the task stands in it verbatim, braces and all."""
        try:
            fields = template_fields(template)
        except BadTemplate:
            return
        rendered = template.format(task=task, plan="P", output="O")
        assert "task" not in fields or task in rendered
        mark = "the task"
        assert rendered == template.format(task=mark, plan="P", output="O").replace(mark, task)

    @given(st.text(max_size=30))
    def test_any_text_can_be_meant(self, text: str) -> None:
        """By doubling its braces any text can stand in a prompt as it is."""
        doubled = text.replace("{", "{{").replace("}", "}}")
        assert template_fields(doubled) == frozenset()
        assert doubled.format(task="t", plan="p", output="o") == text


FAULTS = {
    "an attribute": prompt("{task.__class__}"),
    "a position": prompt("{0}"),
    "an empty field": prompt("{}"),
    "a conversion": prompt("{task!r}"),
    "a nested field": prompt("{task:{plan}}"),
    "a lone brace": prompt("a } b"),
    "a plan before there is one": prompt("{plan}"),
    "a plan of the same session": arm(sessions="[{name: a, prompt: '{plan}', produces: plans/*.md}]"),
    "no sessions": arm(sessions="[]"),
    "a session without a name": arm(sessions="[{prompt: '{task}'}]"),
    "sessions of one name": arm(sessions="[{name: a}, {name: a}]"),
    "a skill that is not the arm's": arm("skills: [plan]", sessions="[{name: a, skill: work}]"),
    "a review that hands over": arm("kinds: [review]", sessions="[{name: a, produces: plans/*.md}]"),
    "an output of no review": arm(sessions="[{name: a, prompt: 'Write to {output}.'}]"),
    "a glob that climbs": arm(sessions="[{name: a, produces: ../*.md}]"),
    "a timeout without a unit": arm(sessions="[{name: a, timeout: 3.0}]"),
    "an overlay without incumbent or skills": arm("overlay: true"),
    "its own incumbent": arm("candidate_of: mine"),
    "an incumbent that is none": arm("candidate_of: yours"),
    "no kinds": arm("kinds: []"),
    "an unknown kind": arm("kinds: [reviews]"),
    "an unknown mcp": arm("mcp: no"),
    "a text for a truth": arm("default: yes"),
    "a misspelt key": arm("skils: [a]"),
    "a misspelt key in tools": arm("tools: {dney: [Skill]}"),
    "a name inside": arm("name: other"),
    "a bad name": arm().replace("mine", "My Arm"),
    "an arm that is none": "arms: {mine: 3}\n",
    "an arm twice": arm() + "  mine: {sessions: [{name: b}]}\n",
    "no arms": "arms: {}\n",
    "a list": "- a\n",
    "another key": "arm: {}\n" + arm(),
    "not YAML": "arms: {",
    "all at once": "arms:\n  a: {sessions: [{name: A}], default: 1}\n  b: 3\n  c: {candidate_of: x, sessions: []}\n",
}


class TestFaults:
    @pytest.mark.parametrize("name", FAULTS)
    def test_text(self, name: str, read_arms: ReadArms, snapshot: SnapshotAssertion) -> None:
        """A fault of an arms file is told with file, line, key and remedy."""
        assert str(InvalidCases(read_arms(FAULTS[name]).problems)) == snapshot

    def test_files(self, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
        """A missing file, a link or a directory is no arms file."""
        (tmp_path / "link.yaml").symlink_to("gone.yaml")
        (tmp_path / "dir.yaml").mkdir()
        found = [
            problem for name in ("gone", "link", "dir") for problem in load_arms(tmp_path / f"{name}.yaml").problems
        ]
        assert str(InvalidCases(found)) == snapshot

    plain = st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.sampled_from(["{task}", "mine", "30s"])
    anything = st.recursive(
        plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner)
    )
    sessions = st.lists(
        st.dictionaries(st.sampled_from(["name", "prompt", "skill", "produces", "timeout"]), anything, max_size=4),
        max_size=3,
    )
    arms = st.dictionaries(st.sampled_from(list(Arm.model_fields)), anything | sessions, max_size=6)

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
    @given(
        st.fixed_dictionaries({"arms": st.dictionaries(st.text(max_size=4), arms | anything, max_size=3) | anything})
    )
    def test_anything(self, read_arms: ReadArms, value: object) -> None:
        """Whatever an arms file holds, reading it gives arms and problems, never an error."""
        loaded = read_arms(yaml.safe_dump(value).encode())
        assert loaded.problems or loaded.arms
        assert all(Arm.model_validate_json(arm.model_dump_json()) == arm for arm in loaded.arms)


class TestGood:
    def test_built_in(self) -> None:
        """The built-in arms are good, and each candidate is its incumbent with an overlay."""
        loaded = load_arms(BUILT_IN)
        assert not loaded.problems
        arms = {arm.name: arm for arm in loaded.arms}
        pairs = [(arm, arms[arm.candidate_of]) for arm in loaded.arms if arm.candidate_of]
        assert len(pairs) == 3
        for candidate, incumbent in pairs:
            assert candidate.overlay
            assert candidate.sessions == incumbent.sessions
            assert candidate.skills == incumbent.skills

    def test_eleven(self) -> None:
        """All arms of the built-in set are there; a plugin's arm is told what its counterpart is told, to the word."""
        arms = {arm.name: arm for arm in load_arms(BUILT_IN).arms}
        workflows = {"workflow", "workflow_direct", "review"}
        made = {f"{prefix}{name}" for prefix in ("", "candidate_", "ce_") for name in workflows}
        assert set(arms) == made | {"baseline", "baseline_nomcp"}
        assert {name for name, arm in arms.items() if arm.default} == workflows | {"baseline"}
        for name in workflows:
            own, external = arms[name], arms[f"ce_{name}"]
            assert external.plugin
            assert (external.sessions, external.skills, external.kinds) == (own.sessions, own.skills, own.kinds)
        assert arms["baseline"].tools.deny == arms["baseline_nomcp"].tools.deny == ("Skill",)
        assert (arms["baseline"].mcp, arms["baseline_nomcp"].mcp) == ("inherit", "none")

    def test_plugin_has_no_overlay(self, read_arms: ReadArms) -> None:
        """Nothing can be laid over the skills of a plugin."""
        loaded = read_arms(arm("plugin: true", "overlay: true", "skills: [work]", "candidate_of: b"))
        assert "the skills of an arm with a plugin are not the repository's" in str(loaded.problems)

    def test_shipped(self) -> None:
        """The demo's arms are good."""
        loaded = load_arms(Path(__file__).parents[2] / "cases" / "arms.yaml")
        assert [str(problem) for problem in loaded.problems] == []

    def test_plan_after_its_session(self, read_arms: ReadArms) -> None:
        """A later session sees what an earlier one produced; a doubled brace asks for nothing."""
        two = "[{name: a, produces: plans/*.md, prompt: '{{plan}} {task}'}, {name: b, timeout: 2m, prompt: '{plan}'}]"
        loaded = read_arms(arm(sessions=two))
        assert not loaded.problems
        assert loaded.arms[0].plan_globs == ("plans/*.md",)
        assert loaded.arms[0].sessions[1].timeout == 120.0

    def test_which_file(self, tmp_path: Path) -> None:
        """Arms come from the named file, else the one beside the case file, else the built-in set."""
        case = tmp_path / "a.cases.yaml"
        assert arms_file_for(case, None) == BUILT_IN
        (tmp_path / "arms.yaml").symlink_to("gone")
        assert arms_file_for(case, None) == tmp_path / "arms.yaml"
        assert arms_file_for(case, tmp_path / "x") == tmp_path / "x"


class TestMirrors:
    def test_read(self, read_arms: ReadArms) -> None:
        """Directories that repeat the skills are declared beside the arms."""
        loaded = read_arms("mirrors: [.agents/skills, a/b]\n" + arm())
        assert (loaded.mirrors, loaded.problems) == ((".agents/skills", "a/b"), ())
        assert read_arms(arm()).mirrors == ()

    @pytest.mark.parametrize(
        "text", ["[/etc]", "[../a]", "[.claude/skills]", "[a, a]", "[a, ./a]", "7", "{a: b}", "[1]", "[~/a]"]
    )
    def test_refused(self, read_arms: ReadArms, text: str) -> None:
        """A place outside the repository, the skills' own, one twice, and what is no list are refused by line."""
        [problem] = read_arms(f"mirrors: {text}\n" + arm()).problems
        assert (problem.line, problem.key) == (1, "mirrors")
