"""Scripts of what a model answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_wfbench.gateway.api import Labels
from pytest_wfbench.gateway.cassette import CassetteError, load_cassettes

LABELS = Labels(task="round", variation=1, arm="workflow", session="work", run=2, agent="mini")
HEAD = "model: m\nprovider: anthropic\n"
TURN = "turns:\n  - text: hi\n    usage: {ordinary_input: 1, cache_read_input: 0, cache_write_input: 0, output: 1}\n"


def write(directory: Path, **files: str) -> Path:
    for name, text in files.items():
        (directory / f"{name}.yaml").write_text(text)
    return directory


class TestMatch:
    def test_the_most_specific_wins(self, tmp_path: Path) -> None:
        """Of those that fit, the cassette with the most bound fields is played."""
        write(
            tmp_path,
            any=HEAD + TURN,
            arm=HEAD + "match: {arm: workflow}\n" + TURN,
            both=HEAD + "match: {arm: workflow, run: 2, task: '*'}\n" + TURN,
            other=HEAD + "match: {arm: workflow, run: 3, session: work}\n" + TURN,
        )
        assert load_cassettes(tmp_path).find(LABELS).file.name == "both.yaml"

    def test_a_tie_is_an_error(self, tmp_path: Path) -> None:
        """Two equally specific cassettes are named."""
        write(tmp_path, a=HEAD + "match: {arm: workflow}\n" + TURN, b=HEAD + "match: {task: round}\n" + TURN)
        with pytest.raises(CassetteError, match=r"equally specific cassettes fit: a\.yaml, b\.yaml"):
            load_cassettes(tmp_path).find(LABELS)

    def test_none_is_an_error(self, tmp_path: Path) -> None:
        """A session without a script is named by its labels."""
        write(tmp_path, a=HEAD + "match: {arm: baseline}\n" + TURN)
        with pytest.raises(CassetteError, match="no cassette fits task=round variation=1 arm=workflow"):
            load_cassettes(tmp_path).find(LABELS)


class TestFaults:
    @pytest.mark.parametrize(
        ("text", "line", "fault"),
        [
            (HEAD + TURN.replace("text:", "txt:"), 4, "unknown key 'txt'"),
            (HEAD + "turns:\n  - text: hi\n", 4, "required key 'usage' is missing"),
            (HEAD + TURN + "match: {tsk: x}\n", 6, "unknown key 'tsk'"),
            (HEAD + TURN + "model: n\n", 6, "set twice"),
            (HEAD.replace("anthropic", "bedrock") + TURN, 2, "anthropic"),
            (HEAD + TURN.replace("output: 1", "output: -1"), 5, "at least 0"),
            (HEAD + TURN.replace("output: 1", "output: true"), 5, "whole number"),
            (HEAD + TURN.replace("output: 1", "output: 1, total_input: 2"), 5, "not the sum"),
            (HEAD + TURN.replace("output: 1", "reasoning_output: 1"), 1, "no reasoning tokens"),
            (HEAD + TURN + "    delay: 2 hours\n", 6, "not a duration"),
            (HEAD + TURN + "    on: aside\n", 6, "pattern"),
            (HEAD + "turns: []\n", 3, "at least"),
            (HEAD + "turns: [\n", 4, "not YAML"),
        ],
    )
    def test_each_has_its_line(self, tmp_path: Path, text: str, line: int, fault: str) -> None:
        """A faulty script is refused with file and line."""
        write(tmp_path, a=text)
        with pytest.raises(CassetteError) as caught:
            load_cassettes(tmp_path)
        (problem, *_) = caught.value.problems
        assert problem.file.endswith("a.yaml")
        assert (problem.line, fault in str(problem)) == (line, True), str(problem)

    def test_every_file_at_once(self, tmp_path: Path) -> None:
        """The faults of all files are reported together."""
        write(tmp_path, a=HEAD, b=HEAD, c=HEAD + TURN)
        with pytest.raises(CassetteError) as caught:
            load_cassettes(tmp_path)
        assert {Path(problem.file).name for problem in caught.value.problems} == {"a.yaml", "b.yaml"}

    def test_an_empty_directory(self, tmp_path: Path) -> None:
        """A directory without scripts, or none at all, is an error."""
        for path in (tmp_path, tmp_path / "absent"):
            with pytest.raises(CassetteError, match="no cassettes here"):
                load_cassettes(path)

    def test_a_link_is_not_followed(self, tmp_path: Path) -> None:
        """A script that is a link is refused."""
        (tmp_path / "target").write_text(HEAD + TURN)
        (tmp_path / "a.yaml").symlink_to(tmp_path / "target")
        with pytest.raises(CassetteError, match="link"):
            load_cassettes(tmp_path)
