"""``wfbench judge calibrate``: files and judges that are none, refused before any gateway is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_wfbench.cli import main

ANSWER = "  - {{id: {}, prompt: Tell why., rubric: Says why., answer: {}, label: {}}}\n"
BOTH = "answers:\n" + ANSWER.format("a", "So.", "pass") + ANSWER.format("b", "No.", "fail")


def calibrate(tmp_path: Path, text: str, *more: str) -> int:
    (tmp_path / "labels.yaml").write_text(text)
    return main(["judge", "calibrate", str(tmp_path / "labels.yaml"), *more])


@pytest.fixture(autouse=True)
def _no_gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway that is started all the same is a failure."""

    def refused(*_: object) -> None:
        raise AssertionError("a judge was asked")

    monkeypatch.setattr("pytest_wfbench.cli.judge.opinions", refused)
    monkeypatch.chdir(tmp_path)
    for name in ("LITELLM_PROXY_URL", "LITELLM_PROXY_API_KEY"):
        monkeypatch.delenv(name, raising=False)


class TestFile:
    @pytest.mark.parametrize("label", ["pass", "fail"])
    def test_one_class(self, tmp_path: Path, capsys: pytest.CaptureFixture[str], label: str) -> None:
        """Labels of one kind alone tell nothing of chance: the file, the line and the remedy are named."""
        text = "answers:\n" + "".join(ANSWER.format(name, "So.", label) for name in "ab")
        assert calibrate(tmp_path, text) == 4
        told = capsys.readouterr().err
        assert "labels.yaml:1: [answers]: every answer is labelled " + label in told
        assert "Add some of the other label" in told

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("answers: []\n", "labels.yaml:1: [answers]"),
            (BOTH.replace("id: b", "id: a"), "an id is used twice"),
            (BOTH.replace("label: fail", "label: maybe"), "labels.yaml:3: [answers.1.label]"),
            (
                BOTH.replace("answer: No.", "answer: ' '"),
                "labels.yaml:3: [answers.1.answer]: must not be blank. See the field's rule in docs/smoke.md",
            ),
            (BOTH.replace("rubric: Says why., answer: No.", "answer: No."), "[answers.1.rubric]: required key"),
            ("answers: {a\n", "labels.yaml:"),
            ("", "labels.yaml:"),
        ],
        ids=["none", "twice", "label", "blank", "no-rubric", "no-yaml", "empty"],
    )
    def test_faults(self, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str) -> None:
        """Every fault of a file is a usage error that names its place."""
        assert calibrate(tmp_path, text) == 4
        assert said in capsys.readouterr().err

    def test_a_link_is_not_followed(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A file that is a link is none."""
        (tmp_path / "real.yaml").write_text(BOTH)
        (tmp_path / "labels.yaml").symlink_to("real.yaml")
        assert main(["judge", "calibrate", "labels.yaml"]) == 4
        assert "Name a regular file" in capsys.readouterr().err


class TestJudge:
    @pytest.mark.parametrize(
        ("more", "said"),
        [
            ((), "no cassette directory cassettes/judge"),
            (("--judge-model=litellm/team",), "LITELLM_PROXY_API_KEY"),
            (("--judge-model=litellm/team",), "LITELLM_PROXY_URL"),
            (("--judge-model=litellm/",), "is not a model"),
            (("--judge-model=replay/judge", "--votes=2"), "--wfbench-judge-votes: must be odd"),
        ],
        ids=["no-cassette", "no-key", "no-url", "no-model", "votes"],
    )
    def test_missing(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], said: str
    ) -> None:
        """What a judge lacks is named."""
        assert calibrate(tmp_path, BOTH, *more) == 4
        assert said in capsys.readouterr().err

    def test_the_guard_of_these_tests(self, tmp_path: Path) -> None:
        """A file without faults, with a judge that could be asked, gets as far as asking."""
        (tmp_path / "cassettes/judge").mkdir(parents=True)
        with pytest.raises(AssertionError, match="a judge was asked"):
            calibrate(tmp_path, BOTH)
