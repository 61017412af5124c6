"""What is counted as changed, and that nothing of the workspace's own can bend it."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_wfbench.digests import digest_bytes
from pytest_wfbench.evidence.row import Churn
from pytest_wfbench.workspace.churn import PATCH_LIMIT, Change, pattern
from pytest_wfbench.workspace.program import ProgramFailed
from tests.workspace.workshop import FILES, Workshop


def counts(change: Change) -> tuple[int, int, int]:
    return change.churn.files, change.churn.insertions, change.churn.deletions


class TestCounting:
    @pytest.mark.parametrize(
        ("script", "files", "expected"),
        [
            ("true", [], (0, 0, 0)),
            ("touch README.md; cp -p src/app.py x; mv x src/app.py", [], (0, 0, 0)),
            ("echo more >> README.md", ["README.md"], (1, 1, 0)),
            ("printf 'one\\n2\\nthree\\n' > src/app.py", ["src/app.py"], (1, 1, 1)),
            ("rm src/app.py", ["src/app.py"], (1, 0, 3)),
            ("mkdir new; echo 1 > new/f", ["new/f"], (1, 1, 0)),
            ("rm -r old", ["old/a", "old/b"], (2, 0, 2)),
            ("rm -r old; mkdir old; echo c > old/c", ["old/a", "old/b", "old/c"], (3, 1, 2)),
            ("rm -r old; echo f > old", ["old", "old/a", "old/b"], (3, 1, 2)),
            ("rm README.md; mkdir README.md; echo f > README.md/f", ["README.md", "README.md/f"], (2, 1, 1)),
            ("mv src lib", ["lib/app.py", "lib/deep/er/x.txt", "src/app.py", "src/deep/er/x.txt"], (4, 4, 4)),
            ("chmod +x README.md", ["README.md"], (1, 0, 0)),
            ("ln -s /etc/passwd link", ["link"], (1, 1, 0)),
            ("rm README.md; ln -s src README.md", ["README.md"], (1, 1, 1)),
            ("rm -r old; ln -s src old", ["old", "old/a", "old/b"], (3, 1, 2)),
            ("mkdir empty; mkfifo pipe", [], (0, 0, 0)),
            ("echo i > ignored/more; echo l > a.log; echo x >> ignored/file", None, (3, 3, 0)),
            ("head -c 1000 /dev/zero > bin", ["bin"], (1, 0, 0)),
            ("printf 'a\\r\\n' > crlf; printf '* text eol=lf\\n' > .gitattributes", None, (2, 2, 0)),
            ("rm -r old; mkdir old; echo a > old/a; echo b > old/b", [], (0, 0, 0)),
        ],
    )  # fmt: skip
    def test_each_kind(
        self, shop: Workshop, script: str, files: list[str] | None, expected: tuple[int, int, int]
    ) -> None:
        """Files and lines are counted by their bytes, whatever was done to get there."""
        change = shop.change(script)
        assert counts(change) == expected
        assert files is None or list(change.files) == files
        assert change.something == (expected[0] > 0)
        assert (change.fingerprint is None) == (change.patch_digest is None) == (not change.something)

    def test_odd_names(self, shop: Workshop) -> None:
        """File names may hold newlines, quotes, tabs, backslashes and bytes that are no text."""
        script = r"""
        for n in $'new\nline' 'quo"te' $'ta\tb' 'back\slash' $'bad\xff\xfe' ' lead' '"all"' ':(top)x' '*' '-rf'; do
          echo 1 > "./$n"; mkdir "./d$n"; echo 2 > "./d$n/$n"
        done"""
        change = shop.change(script)
        assert counts(change) == (20, 20, 0)
        assert "bad\udcff\udcfe" in change.files
        assert "dnew\nline/new\nline" in change.files

    def test_rename_of_a_directory_with_odd_names(self, shop: Workshop) -> None:
        """Odd names are found again when they are removed."""
        start = shop.start(setup="mkdir d; echo 1 > d/$'a\\nb'; echo 1 > d/$'c\\xff'")
        workspace = shop.open(start)
        shop.work(workspace, "rm d/*; rmdir d")
        assert counts(shop.changed(workspace)) == (2, 0, 2)

    def test_committing_changes_nothing(self, shop: Workshop) -> None:
        """What the agent commits, resets or stashes in its own git does not change the count; its HEAD is told."""
        workspace = shop.open()
        shop.work(workspace, "echo x >> README.md; git commit -qam mine; git rev-parse HEAD > /tmp/h")
        head = shop.work(workspace, "git rev-parse HEAD").stdout.decode().strip()
        change = shop.changed(workspace)
        assert counts(change) == (1, 1, 0)
        assert change.head == head != workspace.start.start_commit

    def test_packed_head(self, shop: Workshop) -> None:
        """HEAD is found in packed references and when it is detached; nonsense is unknown."""
        workspace = shop.open()
        assert shop.changed(workspace).head == workspace.start.start_commit
        shop.work(workspace, "git pack-refs --all")
        assert shop.changed(workspace).head == workspace.start.start_commit
        shop.work(workspace, "git checkout -q --detach")
        assert shop.changed(workspace).head == workspace.start.start_commit
        shop.work(workspace, "echo 'ref: ../../etc/passwd' > .git/HEAD")
        assert shop.changed(workspace).head is None

    def test_workspace_without_git(self, shop: Workshop) -> None:
        """A workspace whose git was removed or replaced is counted all the same."""
        change = shop.change("rm -rf .git; git init -q; echo x >> README.md")
        assert counts(change) == (1, 1, 0)
        assert change.head is None

    def test_nested_repository(self, shop: Workshop) -> None:
        """Files of a nested repository count, its git does not."""
        change = shop.change(
            "mkdir sub; cd sub; git init -q; echo x > f; git add f; git -c user.name=a -c user.email=a commit -qm x"
        )
        assert change.files == ("sub/f",)

    def test_unreadable_files(self, shop: Workshop) -> None:
        """A file without permissions counts as changed."""
        assert shop.change("chmod 0 README.md").files == ("README.md",)

    @pytest.mark.parametrize("script", ["mkdir d; echo x > d/f; chmod 0 d", "echo x >> src/app.py; chmod 200 src"])
    def test_closed_directories(self, shop: Workshop, script: str) -> None:
        """What lies in a closed directory, which later commands could open again, does not go uncounted."""
        with pytest.raises(ProgramFailed, match="Permission denied"):
            shop.change(script)

    def test_large_file(self, shop: Workshop) -> None:
        """A file too large to be compared counts as a changed binary file, and its bytes matter to the fingerprint."""
        one, two, again = (shop.change(f"head -c 40M /dev/zero > big; echo {end} >> big") for end in (1, 2, 1))
        assert counts(one) == (1, 0, 0)
        assert one.fingerprint != two.fingerprint
        assert one.fingerprint == again.fingerprint


class TestHostileWorkspace:
    @pytest.mark.parametrize(
        "script",
        [
            "git config core.fsmonitor 'touch /tmp/ran; touch /workspace/ran'",
            "git config diff.x.textconv 'sh -c \"echo same\"'; echo '* diff=x' > .git/info/attributes",
            "git config filter.x.clean 'sh -c \"echo same\"'; echo '* filter=x' > .git/info/attributes",
            "git config diff.external 'sh -c true'",
            "echo '* -diff' > .git/info/attributes",
            "git update-index --assume-unchanged README.md",
            "echo 'README.md' > .git/info/exclude",
            "echo garbage > .git/index; echo garbage > .git/config",
            "rm -rf .git/objects; ln -s /nowhere .git/objects",
        ],
    )
    def test_settings_have_no_effect(self, shop: Workshop, script: str) -> None:
        """Nothing in the workspace's git changes what is counted, and none of its programs is run."""
        change = shop.change(f"mkdir -p .git/info; {script}; printf 'hello\\nmore\\n' > README.md")
        assert counts(change) == (1, 1, 0)
        assert change.patch.count(b"\n+more\n") == 1

    def test_attributes_in_the_tree(self, shop: Workshop) -> None:
        """Attributes in the tree hide no line."""
        change = shop.change("printf '* -diff -text binary\\n' > .gitattributes; echo more >> README.md")
        assert counts(change) == (2, 2, 0)

    def test_replaced_objects(self, shop: Workshop) -> None:
        """A replacement of the start commit does not move what is compared with."""
        change = shop.change(
            "echo more >> README.md; git add -A; c=$(git commit-tree -m x $(git write-tree)); git replace HEAD $c"
        )
        assert counts(change) == (1, 1, 0)


class TestExclusion:
    def test_plans(self, shop: Workshop) -> None:
        """Plan files count neither as change nor in the patch, but are listed as changed paths."""
        change = shop.change("mkdir -p plans/a; echo p > plans/a/p.md; echo p > PLAN.md; echo x > x", "plans", "*.md")
        assert change.files == ("x",)
        assert set(change.paths) == {"x", "PLAN.md", "plans/a/p.md"}
        assert counts(change) == (1, 1, 0)
        assert b"plans" not in change.patch
        assert b"PLAN" not in change.patch

    def test_only_plans(self, shop: Workshop) -> None:
        """Where only plans were written, nothing was changed."""
        change = shop.change("echo p > PLAN.md", "PLAN.md")
        assert (change.something, change.fingerprint, change.patch) == (False, None, b"")

    def test_skills(self, shop: Workshop) -> None:
        """Skill directories do not count, what lies beside them does."""
        change = shop.change("mkdir -p .codex/skills/x; echo s > .codex/skills/x/SKILL.md; echo s > .claude/s.json")
        assert change.files == (".claude/s.json",)

    @pytest.mark.parametrize(
        ("glob", "path", "matches"),
        [
            ("plan.md", b"plan.md", True), ("plan.md", b"plan_md", False), ("plan.md", b"a/plan.md", False),
            ("*.md", b"a.md", True), ("*.md", b"a/b.md", False), ("**/*.md", b"a/b.md", True),
            ("**/*.md", b"b.md", True),
            ("plans", b"plans/a/b", True), ("plans/", b"plans/a", True), ("./plans", b"plans/a", True),
            ("plans", b"plansx", False), ("a?c", b"abc", True), ("a?c", b"a/c", False),
            ("plans/**", b"plans/a/b", True),
        ],
    )  # fmt: skip
    def test_patterns(self, glob: str, path: bytes, matches: bool) -> None:
        """A star stays within a directory, two cross them, and a directory means all below it."""
        import re

        assert bool(re.fullmatch(pattern(glob), path, re.DOTALL)) == matches

    @pytest.mark.parametrize(
        "glob",
        [
            "p/*.md",
            "p",
            "**/q.md",
            "p/**",
            "p/**/*.md",
            "*.md",
            "p/*",
            "[x].md",
            "p/?.md",
            "p**d",
            "**",
            "./p/q",
            "a\\b",
        ],
    )
    def test_counts_and_patch_agree(self, shop: Workshop, glob: str) -> None:
        """What the counts leave out the patch leaves out, and nothing else."""
        paths = ["p/a.md", "p/q/b.md", "p/q/q.md", "q.md", "[x].md", "x.md", "pd", "p.d", "a\\b", "other"]
        script = "mkdir -p p/q; " + "; ".join(f"echo new > '{path}'" for path in paths)
        change = shop.change(script, glob)
        lines = [line for line in change.patch.decode().splitlines() if line.startswith("diff --git ")]
        assert len(lines) == len(change.files) == change.churn.files
        for path in change.files:
            assert any(path.replace("\\", "\\\\") in line for line in lines)

    @given(st.text(st.characters(blacklist_characters="*?/\0", blacklist_categories=["Cs"]), min_size=1))
    def test_plain_names_match_themselves(self, name: str) -> None:
        """A name without wildcards means that file and nothing else."""
        import re

        assert name in {".", ".."} or re.fullmatch(pattern(name), name.encode(), re.DOTALL)
        assert not re.fullmatch(pattern(name), b"x" + name.encode(), re.DOTALL)


class TestPatch:
    def test_applies(self, shop: Workshop, tmp_path: Path) -> None:
        """The patch turns the start state into what the agent left, binary files and modes included."""
        script = "head -c 99 /dev/urandom > bin; chmod +x README.md; rm -r old; echo 2 > src/app.py; ln -s x link"
        workspace = shop.open()
        shop.work(workspace, script)
        change = shop.changed(workspace)
        copy = shop.write("copy", FILES)
        subprocess.run(["git", "apply", "-"], input=change.patch, cwd=copy, check=True)
        theirs = shop.shell(workspace.check_mounts(), "cat bin src/app.py; readlink link; stat -c %A README.md; ls")
        ours = subprocess.run(
            "cat bin src/app.py; readlink link; stat -c %A README.md; ls", shell=True, cwd=copy, capture_output=True
        )
        assert ours.stdout == theirs.stdout
        assert change.patch_digest == digest_bytes(change.patch)

    def test_bounded(self, shop: Workshop) -> None:
        """A patch beyond the bound is cut off and says so; the counts are whole."""
        change = shop.change("seq 200000 > big")
        assert (len(change.patch), change.truncated) == (PATCH_LIMIT, True)
        assert change.churn == Churn(files=1, insertions=200_000, deletions=0)

    def test_same_work_same_fingerprint(self, shop: Workshop) -> None:
        """The same bytes by other ways give the same fingerprint; other bytes another."""
        one = shop.change("echo x > a; echo y >> README.md")
        two = shop.change(
            "echo y >> README.md; git add -A; git commit -qm x; echo z > b; rm b; echo x > a; echo p > P", "P"
        )
        three = shop.change("echo x > b; echo y >> README.md")
        assert one.fingerprint == two.fingerprint != three.fingerprint
        assert one.patch_digest == two.patch_digest


@pytest.mark.slow
def test_many_files(shop: Workshop) -> None:
    """More changed files than are listed are all counted."""
    change = shop.change("mkdir m; cd m; seq 10500 | split -l 1 -a 4 -")
    assert counts(change) == (10_500, 10_500, 0)
    assert len(change.paths) == 10_000


@pytest.mark.slow
def test_constant_time(shop: Workshop) -> None:
    """What changed is known as soon in a repository of 5,000 files as in one of 50."""
    seconds: dict[int, list[float]] = {50: [], 5000: []}
    workspaces = {}
    for number in seconds:
        files = {f"d{index % 50}/f{index}": f"{index}\n" for index in range(number)}
        workspaces[number] = shop.open(shop.start(shop.template(shop.write(f"files-{number}", files))))
        shop.work(workspaces[number], "for i in 0 1 2 3 4; do echo x >> d$i/f$i; done")
    for _ in range(7):
        for number, taken in seconds.items():
            began = time.monotonic()
            assert shop.changed(workspaces[number]).churn.files == 5
            taken.append(time.monotonic() - began)
    assert median(seconds[5000]) < 1.5 * median(seconds[50]) + 0.05
