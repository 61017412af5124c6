"""Directories beside the workspace, in whole sweeps."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest

from pytest_wfbench.workspace.beside import UnfitDirectory, directory_digest
from tests.suite import Suite

AGENT = """\
#!/bin/sh
cat /opt/words/word.txt > a.txt
touch /opt/words/new 2>/dev/null && echo wrote >> a.txt
exit 0
"""


def depend(suite: Suite, target: str = "/opt/words", source: str = "words") -> None:
    suite.put("cases/words/word.txt", "done\n")
    suite.put("word.sh", AGENT)
    suite.edit("cases/tiny.cases.yaml", "    class: trivial\n",
               f"    class: trivial\n    dependencies: [{{source: {source}, target: {target}}}]\n"
               "    setup: test -e /opt/words/word.txt\n")  # fmt: skip
    suite.edit("cases/tiny.cases.yaml", "verify: grep -q done a.txt", "verify: cmp a.txt /opt/words/word.txt")


@pytest.mark.slow
class TestMounted:
    def test_everywhere(self, suite: Suite) -> None:
        """Setup, agent, verify and oracle see it, nobody can write it, and the row is bound to its content."""
        depend(suite)
        suite.edit("oracles/check.sh", 'test "$(cat a.txt)" = done', "cmp a.txt /opt/words/word.txt")
        assert suite.run("-k", "finish", agent="word.sh").ret == 0
        (row,) = suite.rows()
        assert (row["outcome"], row["churn"]["files"]) == ("pass", 1)
        first = row["dependency_digest"]
        suite.put("cases/words/other.txt", "more\n")
        suite.run("-k", "finish", agent="word.sh")
        assert suite.rows()[0]["dependency_digest"] not in (None, first)


class TestRefused:
    @pytest.mark.parametrize(
        ("target", "source", "said"),
        [
            ("/workspace/words", "words", "cannot be mounted at '/workspace/words'"),
            ("/opt/wfbench/x", "words", "cannot be mounted"),
            ("/opt/../etc/x", "words", "cannot be mounted"),
            ("/opt", "words", "cannot be mounted"),
            ("/opt/words", "absent", "is no directory"),
            ("/opt/words", ".", "which is to be hidden"),
            ("/opt/words", "../oracles", "holds oracles, which is to be hidden"),
            ("/opt/words", "../oracles/deep", "lies in oracles, which is to be hidden"),
            ("/opt/words", "../results/old", "lies in results, which is to be hidden"),
            ("/opt/words", "tiny/secret/deep", "lies in secret, which is to be hidden"),
            ("/opt/words", "tiny", "which is to be hidden"),
        ],
    )
    def test_before_anything_is_spent(self, suite: Suite, target: str, source: str, said: str) -> None:
        """A target that is the harness's, a source that is none or holds what is hidden: exit 4, named."""
        depend(suite, target, source)
        suite.edit("cases/tiny.cases.yaml", "    class: trivial\n", "    class: trivial\n    private: [secret]\n")
        for name in ("oracles/deep/x", "results/old/x", "cases/tiny/secret/deep/x"):
            suite.put(name, "x\n")
        ended = suite.run("-k", "finish", agent="word.sh")
        assert ended.ret == 4
        assert said in ended.stderr.str()
        assert not suite.sweeps


class TestDigest:
    def test_content(self, tmp_path: Path) -> None:
        """The digest is of names, modes, bytes and link targets, wherever the directory lies."""
        digests = set()
        for number, change in enumerate(("", "touch b", "chmod +x a", "echo y > a", "ln -s a c", "mkdir d")):
            root = tmp_path / str(number)
            root.mkdir()
            (root / "a").write_text("x\n")

            subprocess.run(["sh", "-c", change], cwd=root, check=True)
            digests.add(directory_digest(root))
        assert len(digests) == 6
        again = tmp_path / "again"
        again.mkdir()
        (again / "a").write_text("x\n")
        assert directory_digest(again) == directory_digest(tmp_path / "0")

    def test_ways_out(self, tmp_path: Path) -> None:
        """What could be spoken to is refused: a socket answers through a read-only mount as well."""
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(tmp_path / "door"))
            with pytest.raises(UnfitDirectory, match="door is a socket"):
                directory_digest(tmp_path)

    def test_link(self, tmp_path: Path) -> None:
        """A link to a directory is refused; links in it are taken as links."""
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to("real")
        with pytest.raises(UnfitDirectory, match="no link"):
            directory_digest(tmp_path / "link")
