"""Case files: every fault of every file at once, each with file, line, task, key and remedy."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from pytest_wfbench.matrix.faults import known_keys
from pytest_wfbench.matrix.hidden import ORACLE_BYTES
from pytest_wfbench.matrix.load import CASE_FILE_LIMIT, Loaded, LoadedTask, load_cases
from pytest_wfbench.matrix.problems import InvalidCases, Problem
from pytest_wfbench.matrix.task import Task

Read = Callable[..., Loaded]

ORACLE = "{command: sh $WFBENCH_ORACLE_ROOT/check.sh, files: [{source: check.sh, target: check.sh}], results: exit}"
TASK = f"""\
  - id: ID
    repo: repo
    prompt: Do it.
    verify: make
    oracle: {ORACLE}
"""


def case(*lines: str, **replaced: str) -> str:
    """A case file with one good task, some keys of which are replaced (none: left out), and more lines."""
    kept = [
        line for line in TASK.replace("ID", "one").splitlines() if line.strip(" -").partition(":")[0] not in replaced
    ]
    new = [f"    {key}: {value}" for key, value in replaced.items() if value]
    head = [] if "id" not in replaced else ["  - class: x"]
    return "\n".join(["kind: implementation", "tasks:", *head, *kept, *new, *(f"    {line}" for line in lines), ""])


def oracle(command: str = "sh $WFBENCH_ORACLE_ROOT/check.sh", results: str = "exit", *files: str) -> str:
    named = ", ".join(files or [entry("check.sh", "check.sh")])
    return f"{{command: {command!r}, files: [{named}], results: {results}}}"


def entry(source: str, target: str) -> str:
    return f"{{source: {source}, target: {target}}}"


def shown(loaded: Loaded) -> str:
    return str(InvalidCases(loaded.problems))


class TestGood:
    def test_defaults(self, read: Read, tmp_path: Path) -> None:
        """A task takes what it does not set from the file's top and from `defaults`."""
        loaded = read(
            "kind: implementation\n"
            "defaults:\n  repo: ../somewhere\n  verify: make\n  timeout: 90s\n"
            f"  oracle: {ORACLE}\n"
            "tasks:\n  - {id: one, prompt: a}\n  - {id: two, prompt: b, verify: tox, timeout: {setup: 1m}}\n"
        )
        assert not loaded.problems
        one, two = loaded.tasks
        assert (one.task.kind, one.task.verify, one.task.timeout.session) == ("implementation", "make", 90.0)
        assert (two.task.verify, two.task.timeout.session, two.task.timeout.setup) == ("tox", 1800.0, 60.0)
        assert one.repository == tmp_path.parent / "somewhere"
        assert (one.line, two.line) == (8, 9)

    def test_travels_as_json(self, read: Read) -> None:
        """A loaded task reaches a worker as it was, bytes and aliases included."""
        loaded = read(case("class: trivial", "tags: [smoke]", "mcp: {x: {command: [a], env: {A: b}}}", "timeout: 1.5h"))
        assert not loaded.problems
        task = loaded.tasks[0]
        assert LoadedTask.model_validate_json(task.model_dump_json()) == task
        assert '"class":"trivial"' in task.model_dump_json()

    def test_texts_are_verbatim(self, read: Read) -> None:
        """A prompt may hold braces, percent signs and whatever else, and is not touched."""
        loaded = read(case("prompt: |", "  {task.__class__} {0} %s }} \\n", prompt=""))
        assert loaded.tasks[0].task.prompt == "{task.__class__} {0} %s }} \\n\n"

    def test_paths_are_normal(self, read: Read) -> None:
        """Two spellings of a path are one path."""
        loaded = read(case("private: [a/, ./b, c//d]"))
        assert loaded.tasks[0].task.private == ("a", "b", "c/d")

    def test_order(self, read: Read) -> None:
        """Tasks keep the order of files and lines."""
        first, second = case(id="z"), case(id="a")
        assert [loaded.task.id for loaded in read(first, second).tasks] == ["z", "a"]


FAULTS = {
    # wrong types
    "a number for a text": case(prompt="12"),
    "a truth for a text": case(prompt="true"),
    "nothing for a text": case(prompt=" ~"),
    "a list for a text": case(prompt="[a]"),
    "a blank text": case(prompt="' '"),
    "a text for a truth": case("expensive: yes"),
    "a text for a list": case("tags: smoke"),
    "a list for a mapping": case("limits: [a]"),
    "a text for a mapping": case(oracle="check.sh"),
    "a text for a number": case("limits: {processes: many}"),
    "a number out of range": case("limits: {processes: 1}"),
    "a number beyond all range": case("limits: {processes: 99999999999999999999}"),
    "a task that is none": "tasks:\n  - one\n",
    # unknown keys
    "a misspelt key": case("promt: x"),
    "a key like no other": case("colour: red"),
    "a misspelt key in a block": case("timeout: {sesion: 3s}"),
    "a misspelt key in a list": case(oracle=oracle("a", "exit", "{sauce: a, source: check.sh, target: a}")),
    "a misspelt key in a named value": case("mcp: {tracker: {command: [a], enf: {}}}"),
    "a Python name of a key": case("class_: trivial"),
    "a misspelt key of the file": "kinds: implementation\n" + case(),
    # missing keys
    "no id": case(id=""),
    "no prompt": case(prompt=""),
    "what an implementation needs": case(repo="", verify="", oracle=""),
    "what a review needs": case("kind: review", repo=""),
    "a review without its files": case(
        "kind: review", "patch: no.patch", "labels: ../labels.json", verify="", oracle=""
    ),
    "what only a review has": case("patch: check.sh", "labels: check.sh"),
    "no kind": case().replace("kind: implementation\n", ""),
    "an unknown kind": case("kind: implementaton"),
    # values
    "an id in capitals": case(id="Rounding"),
    "an id that climbs": case(id="../x"),
    "an id with a look-alike": case(id="r\u043eunding"),
    "an id with a line break": case(id='"a\\n"'),
    "an id of a number": case(id="2024"),
    "an id that is too long": case(id="a" * 81),
    "an id that moves the cursor": case(id='"\\e[2Ja"'),
    "a duration without a unit": case("timeout: {session: 30}"),
    "a duration of a fraction": case("timeout: {session: 1.5}"),
    "a duration in words": case("timeout: soon"),
    "a duration of nothing": case("timeout: 0s"),
    "a duration without end": case("timeout: 999999999h"),
    "a duration in other digits": case("timeout: \u0663m"),
    "a size in words": case("limits: {memory: big}"),
    "a size of nothing": case("limits: {memory: 0.1B}"),
    "a size beyond all": case("limits: {memory: 999999999999999GiB}"),
    "a ref that is an option": case("ref: --upload-pack=touch"),
    "a ref of digits": case("ref: 1234567"),
    "a tag with a space": case("tags: [a b]"),
    "a tag that is pytest's": case("tags: [skip]"),
    "a server's name": case("mcp: {My Server: {command: [a]}}"),
    "a server without a command": case("mcp: {x: {command: []}}"),
    "a variable's name": case("mcp: {x: {command: [a], env: {A=B: c}}}"),
    "a variable of a number": case("mcp: {x: {command: [a], env: {PORT: 8080}}}"),
    "a wording that is none": case("variations: [3]"),
    # paths
    "an absolute path": case("private: [/etc]"),
    "a path that climbs": case("reference: a/../../b"),
    "a path to a home": case("reference: ~/b"),
    "a path to nowhere": case("private: [., '']"),
    "a path with a line break": case('private: ["a\\nb"]'),
    "a path that is too long": case(f"private: [{'a' * 256}]"),
    # oracles
    "a command that names no staged file": case(oracle=oracle("make check")),
    "a command that names a piece of another word": case(oracle=oracle("sh $WFBENCH_ORACLE_ROOT/mycheck.sh")),
    "a command that writes no results": case(oracle=oracle("sh check.sh", "junit")),
    "results of another kind": case(oracle=oracle("sh check.sh", "tap")),
    "no oracle files": case(oracle="{command: x, files: [], results: exit}"),
    "too many oracle files": case(oracle=oracle("x0", "exit", *(entry("check.sh", f"x{i}") for i in range(65)))),
    "a target twice": case(oracle=oracle("a", "exit", entry("check.sh", "a"), entry("check.sh", "./a"))),
    "a target in a target": case(oracle=oracle("a", "exit", entry("check.sh", "a"), entry("check.sh", "a/b"))),
    "one bad oracle file only": case(oracle=oracle("a", "exit", entry("3", "a"))),
    # hidden files
    "a missing oracle file": case(oracle=oracle("a", "exit", entry("gone.sh", "a"))),
    "a missing reference": case("reference: gone.patch", "reference_bad: [bad.patch]"),
    "missing files of a task at fault": case(
        "reference: gone.patch", "tags: 3", oracle=oracle("nothing", "exit", entry("gone.sh", "a"))
    ),
    # YAML
    "a key twice": case("prompt: again"),
    "a merge key": case("<<: {verify: x}"),
    "a tag": case("setup: !secret x"),
    "a tab": "kind: x\n\ttasks: []\n",
    # files
    "an empty file": "",
    "a list": "- a\n",
    "no tasks": "kind: implementation\ntasks: []\n",
    "tasks that are no list": "tasks: {id: one}\n",
    "defaults that are none": "defaults: [a]\n" + case(),
    "a default id": "defaults: {id: a}\n" + case(),
    "a kind at two places": "defaults: {kind: review}\n" + case(),
    "an oracle root that is none": "oracle_root: gone\n" + case(),
    "an oracle root of a number": "oracle_root: 3\n" + case(),
    "an oracle root of nobody": "oracle_root: ~nobody-of-this-name/x\n" + case(),
}  # fmt: skip


class TestFaults:
    @pytest.mark.parametrize("name", FAULTS)
    def test_text(self, name: str, read: Read, snapshot: SnapshotAssertion) -> None:
        """A fault is told with file, line, task, key and remedy."""
        loaded = read(FAULTS[name])
        assert shown(loaded) == snapshot
        assert all(problem.remedy and problem.line for problem in loaded.problems)

    def test_all_at_once(self, read: Read, snapshot: SnapshotAssertion) -> None:
        """Every fault of every file is told, in the order of file and line, and none twice."""
        first = case("tags: [a b]", "expensive: maybe", "reference: gone.patch", verify="")
        second = "kinds: x\n" + case(id="two", prompt="3") + TASK.replace("ID", "one")
        assert shown(read(first, second, "tasks: [")) == snapshot

    def test_ids_over_all_files(self, read: Read, snapshot: SnapshotAssertion) -> None:
        """An id is unique over the sweep, also where one of the two tasks is at fault elsewhere."""
        assert shown(read(case(prompt="3"), case(), case() + TASK.replace("ID", "one"))) == snapshot

    def test_default_once(self, read: Read, snapshot: SnapshotAssertion) -> None:
        """A default's fault is told once, where it stands, not once a task."""
        loaded = read(
            "kind: implementaton\n"
            "defaults:\n  repo: 3\n  verfy: make\n  limits: {processes: 0}\n"
            f"  oracle: {oracle('sh check.sh', 'exit', '{source: gone.sh, target: check.sh}')}\n"
            "tasks:\n  - {id: one, prompt: a}\n  - {id: two, prompt: b}\n  - {id: three, prompt: c, repo: d}\n"
        )
        assert shown(loaded) == snapshot

    def test_line_of_a_missing_file(self, read: Read) -> None:
        """A hidden file's fault stands at the line that names it."""
        loaded = read(case("reference_bad:", "  - check.sh", "  - gone.patch"))
        assert [(problem.line, problem.key) for problem in loaded.problems] == [(10, "reference_bad.1")]

    def test_no_oracle_root(self, read: Read, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
        """Where there is no oracle root this is told, not each file that it lacks."""
        (tmp_path / "oracles" / "check.sh").unlink()
        (tmp_path / "oracles").rmdir()
        (tmp_path / ".git").mkdir()
        assert shown(read(case("reference: a.patch"))) == snapshot

    def test_terminal_is_safe(self) -> None:
        """No text of a stranger moves the cursor or adds a line."""
        text = str(Problem("a\x1b[2J", 1, "t\n", "k\u202e", "m\x07", "r" + "\ud800"))
        assert text.isprintable()
        assert text == "a\\x1b[2J:1: task t\\n [k\\u202e]: m\\x07. r\\ud800"


class TestFiles:
    def test_link_as_case_file(self, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
        """A link is no case file."""
        (tmp_path / "real.yaml").write_text(case())
        (tmp_path / "a.cases.yaml").symlink_to("real.yaml")
        assert shown(load_cases([tmp_path / "a.cases.yaml"])) == snapshot

    def test_missing_and_odd_files(self, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
        """A file that is missing, a directory, a pipe or too large is told as such."""
        (tmp_path / "dir.cases.yaml").mkdir()
        os.mkfifo(tmp_path / "pipe.cases.yaml")
        (tmp_path / "huge.cases.yaml").write_bytes(b"#" * (CASE_FILE_LIMIT + 1))
        names = ["dir", "pipe", "huge", "gone"]
        assert shown(load_cases([tmp_path / f"{name}.cases.yaml" for name in names])) == snapshot

    def test_links_among_hidden_files(self, read: Read, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
        """A hidden file behind a link, or that is no regular file, is refused."""
        root = tmp_path / "oracles"
        (tmp_path / "outside.sh").write_text("")
        (root / "link.sh").symlink_to("../outside.sh")
        (root / "linked").symlink_to(".")
        (root / "directory").mkdir()
        files = [
            entry(name, f"t{i}") for i, name in enumerate(["link.sh", "linked/check.sh", "directory", "check.sh/x"])
        ]
        assert shown(read(case("reference: link.sh", oracle=oracle("t0", "exit", *files)))) == snapshot

    def test_bounds_of_an_oracle(self, read: Read, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
        """An oracle's files hold at most 4 MiB together."""
        (tmp_path / "oracles" / "half").write_bytes(b"x" * (ORACLE_BYTES // 2))
        (tmp_path / "oracles" / "rest").write_bytes(b"x")
        names = ["half", "half", "rest"]
        files = [entry(name, f"t{i}") for i, name in enumerate(names)]
        assert not read(case(oracle=oracle("t0", "exit", *files[:2]))).problems
        assert shown(read(case(oracle=oracle("t0", "exit", *files)))) == snapshot

    @pytest.mark.parametrize(
        "text",
        ["{", "[]", "3", "[" * 100_000, '{"oracle_digest": "x"}', '{"oracle_digest": "x", "tests": []}',
         '{"oracle_digest": "x", "tests": ["a"], "schema_version": 2}',
         '{"oracle_digest": "x", "tests": ["a"], "by": 1}'],
        ids=["broken", "list", "number", "deep", "lacking", "nothing", "version", "unknown"],
    )  # fmt: skip
    def test_expectation(self, text: str, read: Read, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
        """A record of which tests must run is whole and names one at least; else it is no proof."""
        (tmp_path / "oracles" / "check.expect.json").write_text(text)
        loaded = read(case())
        assert shown(loaded) == snapshot

    def test_captured_once(self, read: Read, tmp_path: Path) -> None:
        """Hidden files are captured as they were when read."""
        (tmp_path / "oracles" / "check.expect.json").write_text('{"oracle_digest": "x", "tests": ["a::b"]}')
        loaded = read(case("reference: check.sh"))
        assert not loaded.problems
        hidden = loaded.tasks[0].hidden
        assert (hidden.oracle[0].data, hidden.reference and hidden.reference.name) == (b"exit 0\n", "check.sh")
        assert hidden.expected is not None
        assert hidden.expected.tests == ("a::b",)

    def test_nearest_oracle_root(self, tmp_path: Path) -> None:
        """The oracle root is the nearest `oracles/` beside the case file or above it, or the one it names."""
        (tmp_path / "a" / "b").mkdir(parents=True)
        (tmp_path / "a" / "other").mkdir()
        (tmp_path / "a" / "other" / "check.sh").write_text("other\n")
        file = tmp_path / "a" / "b" / "x.cases.yaml"
        file.write_text(case())
        assert load_cases([file]).tasks[0].oracle_root == tmp_path / "oracles"
        file.write_text("oracle_root: ../other\n" + case())
        assert load_cases([file]).tasks[0].oracle_root == tmp_path / "a" / "other"


plain = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["a", "30s", "8GiB"])
)
anything = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
TASK_KEYS = known_keys(Task)
oracles = st.fixed_dictionaries(
    {},
    optional={
        "command": anything,
        "files": st.lists(st.dictionaries(st.sampled_from(["source", "target"]), anything, max_size=2), max_size=3)
        | anything,
        "results": anything,
    },
)
tasks = st.dictionaries(st.sampled_from(TASK_KEYS), anything, max_size=8).flatmap(
    lambda task: st.just(task) | oracles.map(lambda value: task | {"oracle": value})
)
files = st.fixed_dictionaries(
    {"tasks": st.lists(tasks | anything, max_size=3) | anything},
    optional={"kind": anything, "defaults": tasks | anything, "oracle_root": anything, "x": anything},
)


class TestAnything:
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
    @given(files | anything)
    def test_only_problems(self, read: Read, value: Any) -> None:
        """Whatever a case file holds, loading it gives tasks and problems that print, never an error."""
        text = yaml.safe_dump(value, allow_unicode=True).encode("utf-8", "surrogatepass")
        loaded = read(text)
        assert loaded.problems or loaded.tasks
        assert all(str(problem).isprintable() for problem in loaded.problems)
        for task in loaded.tasks:
            assert LoadedTask.model_validate_json(task.model_dump_json()) == task
