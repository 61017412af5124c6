"""What the pages repeat of the code is what the code says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import get_args

import click
import pytest
import yaml
from pydantic import BaseModel

from pytest_wfbench.cli import wfbench
from pytest_wfbench.evidence.row import MISS_KINDS, SKIPPED_KINDS, UNUSABLE_KINDS
from pytest_wfbench.matrix.arms import Arm, SessionSpec
from pytest_wfbench.matrix.load import FILE_KEYS
from pytest_wfbench.matrix.load_arms import BUILT_IN, load_arms
from pytest_wfbench.matrix.task import OracleSpec, Task
from pytest_wfbench.options import SPECS
from pytest_wfbench.promotion.rules import Decided
from pytest_wfbench.report.terminal import COLUMNS
from pytest_wfbench.report.verdict import GLYPHS
from pytest_wfbench.scoring.sabotage import SABOTAGES

from . import generate
from .markdown import PAGES, ROOT, blocks, first_column, images, links, table

DOCS = ROOT / "docs"
RESERVED = re.compile(r"reserved\b")
HOSTS = re.compile(
    r"pypi\.org|pythonhosted|npmjs|registry\.[a-z]+\.[a-z]|proxy\.golang|crates\.io|files\.python", re.IGNORECASE
)
COMMAND = re.compile(r"^(?:\$ |pytest |wfbench |make )", re.M)
REMEDY = "run python tests/docs/generate.py"


def keys_of(model: type[BaseModel], *left_out: str) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()} - set(left_out)


class TestTables:
    def test_task_fields(self) -> None:
        """docs/tasks.md has every field of a task, in the model's order, and no other."""
        shown = first_column(DOCS / "tasks.md", "Fields")
        assert shown == [field.alias or name for name, field in Task.model_fields.items()]

    def test_task_defaults(self) -> None:
        """A default that docs/tasks.md shows is the model's."""
        whole = {"id": "x", "kind": "implementation", "repo": "r", "prompt": "p", "verify": "v"}
        oracle = {"command": "sh check.sh", "files": [{"source": "a", "target": "check.sh"}], "results": "exit"}
        built = Task.model_validate({**whole, "oracle": oracle})
        for name, _, default, _ in table(DOCS / "tasks.md", "Fields"):
            if default.startswith("`"):
                shown = Task.model_validate(
                    {**whole, "oracle": oracle, name.strip("`"): yaml.safe_load(default.strip("`"))}
                )
                assert shown == built, name

    def test_oracle_and_file_keys(self) -> None:
        """docs/tasks.md names every key of a case file and of an oracle."""
        text = (DOCS / "tasks.md").read_text()
        assert set(first_column(DOCS / "tasks.md", "Tasks")) == set(FILE_KEYS)
        assert all(f"`{name}`" in text for name in keys_of(OracleSpec))

    def test_arm_keys(self) -> None:
        """docs/arms.md has every key of an arm and of a session."""
        text = (DOCS / "arms.md").read_text()
        tables = [part.partition("\n\n")[0] for part in text.split("| key | default | meaning |\n")[1:]]
        shown = [set(re.findall(r"^\| `(\w+)` \|", part, flags=re.M)) for part in tables]
        assert shown == [keys_of(Arm, "name"), keys_of(SessionSpec)]

    @pytest.mark.parametrize(
        ("heading", "kinds"),
        [
            ("Kinds of `unusable`", UNUSABLE_KINDS),
            ("Kinds of `miss`", MISS_KINDS),
            ("Kinds of `skipped`", SKIPPED_KINDS),
        ],
    )
    def test_kinds(self, heading: str, kinds: tuple[str, ...]) -> None:
        """docs/report.md has every kind of an outcome in the schema's order; those are reserved that no code gives."""
        assert first_column(DOCS / "report.md", heading) == list(kinds)
        given = _code_outside("evidence/row.py", "evidence/manifest.py", "promotion/")
        reserved = [row[0].strip("`") for row in table(DOCS / "report.md", heading) if RESERVED.match(row[1])]
        assert reserved == [kind for kind in kinds if not _gives(given, kind)]

    def test_verdicts(self) -> None:
        """docs/report.md has the words of the verdict in the order in which they apply."""
        assert first_column(DOCS / "report.md", "The verdict") == [word for word, _ in GLYPHS]

    def test_columns(self) -> None:
        """docs/report.md explains the columns of the table, task and arm aside."""
        assert first_column(DOCS / "report.md", "report.md") == list(COLUMNS[2:])

    def test_decisions(self) -> None:
        """docs/gate.md has the three decisions."""
        assert sorted(first_column(DOCS / "gate.md", "The gate")) == sorted(get_args(Decided))

    def test_sabotages(self) -> None:
        """docs/oracles.md has every plant."""
        assert first_column(DOCS / "oracles.md", "`wfbench check`") == [entry.name for entry in SABOTAGES]

    def test_dependencies(self) -> None:
        """docs/dependencies.md has every direct dependency, under the heading of its extra, and no other."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        wanted = {"Runtime": project["dependencies"]}
        wanted |= {f"Extra `{name}`": listed for name, listed in project["optional-dependencies"].items()}
        for heading, listed in wanted.items():
            assert first_column(DOCS / "dependencies.md", heading) == [_distribution(entry) for entry in listed]

    def test_layers(self) -> None:
        """docs/architecture.md has the layers that import-linter checks."""
        contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
        text = (DOCS / "architecture.md").read_text().split("<!-- begin layers -->")[1].split("<!-- end layers -->")[0]
        assert text.strip().strip("`").split("\n")[1:-1] == [
            layer.replace(" | ", " · ") for layer in contracts[0]["layers"]
        ]


def _distribution(requirement: str) -> str:
    return re.split(r"[\[<>=;! ]", requirement)[0]


def _code_outside(*places: str) -> str:
    paths = sorted((ROOT / "pytest_wfbench").rglob("*.py"))
    inside = [path for path in paths if not path.relative_to(ROOT / "pytest_wfbench").as_posix().startswith(places)]
    return "\n".join(path.read_text() for path in inside)


def _gives(code: str, kind: str) -> bool:
    """Whether any code names a kind. Of limits the sandbox names the last word alone."""
    limit = kind.removeprefix("limit-")
    return f'Excess("{limit}"' in code if limit != kind else f'"{kind}"' in code


class TestGenerated:
    def test_options(self) -> None:
        """The table of options is that of ``options.SPECS``."""
        assert (DOCS / "options.md").read_text() == generate.options_page(), REMEDY
        assert [row.split("`")[1].split()[0] for row in generate.option_rows()] == [spec.flag for spec in SPECS]

    def test_tree(self) -> None:
        """The tree of docs/architecture.md has every module, and what each says of itself."""
        assert (DOCS / "architecture.md").read_text() == generate.architecture_page(), REMEDY


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
class TestPages:
    def test_links(self, page: Path) -> None:
        """Every relative link leads to a file."""
        for link in links(page):
            if not link.startswith("https://"):
                assert (page.parent / link.partition("#")[0]).is_file(), link

    def test_no_registry(self, page: Path) -> None:
        """No page names a package registry's host."""
        assert not HOSTS.search(page.read_text())

    def test_options_exist(self, page: Path) -> None:
        """Every option that a page names exists."""
        known = {spec.flag for spec in SPECS}
        named = re.findall(r"--wfbench-[a-z0-9-]*[a-z0-9]", page.read_text())
        assert set(named) <= known

    def test_marked(self, page: Path) -> None:
        """Every block of commands, called one or not, says that it is run, or why not."""
        for block in blocks(page):
            if block.kind in ("sh", "console") or COMMAND.search(block.text):
                assert block.mark in ("run", "not run"), block.text

    def test_paths_exist(self, page: Path) -> None:
        """Every file of the repository that a page names is there."""
        for name in re.findall(r"`((?:pytest_wfbench|tests|scripts|cases|docs)/[\w./-]+)`", page.read_text()):
            assert (ROOT / name).exists(), name


def test_verbs() -> None:
    """Every verb of ``wfbench`` is on some page, and every one that a page names exists."""
    named = {verb for page in PAGES for verb in re.findall(r"(?:`|\$ )wfbench ([a-z]+)", page.read_text())}
    assert named == set(wfbench.list_commands(click.Context(wfbench)))


def test_every_page_is_linked() -> None:
    """README.md links to every page of docs/."""
    pages = {link.partition("#")[0] for link in links(ROOT / "README.md") if link.startswith("docs/")}
    assert {ROOT / page for page in pages if page.endswith(".md")} == set(DOCS.glob("*.md"))


def test_pictures() -> None:
    """Pictures are PNG files of less than 150 kB that a page shows; README.md and docs/ci.md show the comment."""
    shown = {page: {(page.parent / link).resolve() for link in images(page)} for page in PAGES}
    comment = DOCS / "images/comment.png"
    assert comment in shown[ROOT / "README.md"] & shown[DOCS / "ci.md"]
    assert set.union(*shown.values()) == set((DOCS / "images").iterdir())
    for picture in (DOCS / "images").iterdir():
        data = picture.read_bytes()
        assert (data[:8], len(data) < 150_000) == (b"\x89PNG\r\n\x1a\n", True), picture


def test_examples_of_arms_read() -> None:
    """The arms of docs/arms.md are valid."""
    examples = [block.text for block in blocks(DOCS / "arms.md") if block.kind == "yaml"]
    assert examples
    for text in examples:
        for name, written in yaml.safe_load(text)["arms"].items():
            assert Arm.model_validate({**written, "name": name}).name == name


def test_built_in_arms() -> None:
    """The table of built-in arms has all of them, once each, and says which run by default."""
    rows = table(DOCS / "arms.md", "Arms")
    told = {name.strip("`"): row[2] for row in rows for name in row[0].split(", ")}
    arms = {arm.name: arm for arm in load_arms(BUILT_IN).arms}
    assert sorted(told) == sorted(arms)
    assert {name for name, note in told.items() if note.startswith("default")} == {
        name for name, arm in arms.items() if arm.default
    }
