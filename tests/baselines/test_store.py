"""Stores of baselines: a directory, and a branch of a git repository."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.baselines.branch import BranchStore
from pytest_wfbench.baselines.choose import choose
from pytest_wfbench.baselines.place import open_store
from pytest_wfbench.baselines.store import Entry, Store, StoreError, entries, file, load
from pytest_wfbench.evidence.baseline import Baseline, BaselineKind, Question
from pytest_wfbench.evidence.store import EvidenceError

NAMES = ["main", "feature/x", "a b", "..", ".hidden", "-n", "é☂", "x" * 200, "%2E", "a%2fb", "tab\tline\nend"]


def git(repository: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-C", str(repository), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a commit, something in its index, and something in its work tree."""
    path = tmp_path / "repository"
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    (path / "kept.txt").write_text("kept\n")
    git(path, "add", "kept.txt")
    git(path, "commit", "-qm", "one")
    (path / "staged.txt").write_text("staged\n")
    git(path, "add", "staged.txt")
    (path / "kept.txt").write_text("changed\n")
    (path / "loose.txt").write_text("loose\n")
    return path


@pytest.fixture(params=["directory", "branch", "bare", "sha256"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "directory":
        return open_store("filed", tmp_path)
    form = ["--object-format=sha256"] if request.param == "sha256" else []
    bare = ["--bare"] if request.param == "bare" else []
    subprocess.run(["git", "init", "-q", *form, *bare, str(tmp_path / "r")], check=True)
    return open_store("git:r", tmp_path)


def baseline(
    number: int = 1, kind: BaselineKind = "branch", name: str = "x", tasks: str = "ab", **more: Any
) -> Baseline:
    entry = {"arm": "baseline", "subject": "s", "task_kind": "question", "runs": 1, "valid": 1, "resolved": 1,
             "unusable": 0}  # fmt: skip
    head = {"kind": kind, "name": name, "sweep_id": f"202611{number:02}T000000Z-abcdef", "started_at": "2026-11-01"}
    rest = {"word": "PASS", "passed": 1, "graded": 1, "harness_version": "0.1.0"}
    listed = [{**entry, "task": task, "task_digest": f"sha256:{task}"} for task in tasks]
    return Baseline.model_validate({**head, **rest, "entries": listed, **more})


def questions(tasks: str) -> list[Question]:
    return [Question(task, 0, f"sha256:{task}") for task in tasks]


class TestStore:
    def test_filed_and_found(self, store: Store) -> None:
        """What is filed is found again, by its name, whatever the name is; twice is once."""
        assert entries(store) == ()
        made = [baseline(n, name=name) for n, name in enumerate(NAMES, 1)]
        for one in [*made, made[0]]:
            file(store, one)
        assert {entry.name for entry in entries(store)} == set(NAMES)
        assert sorted((load(store, entry) for entry in entries(store)), key=lambda b: b.sweep_id) == made

    def test_order(self, store: Store) -> None:
        """The newest of a name comes first; branches, the main line and releases in this order."""
        for kind, number in (("release", 1), ("main", 3), ("branch", 2), ("branch", 5), ("main", 4)):
            file(store, baseline(number, kind))
        assert [(e.kind, e.sweep_id[6:8]) for e in entries(store)] == [
            ("branch", "05"), ("branch", "02"), ("main", "04"), ("main", "03"), ("release", "01"),
        ]  # fmt: skip

    def test_what_is_no_baseline(self, store: Store) -> None:
        """Other files are passed over; one that is named like a baseline and is none is an error with its place."""
        file(store, baseline())
        for name in ("branch/x/notes.txt", "branch/x/20261101T000000Z-x/y.json", "branch/%78/20261101T000000Z-a.json"):
            store.write(name, b"{}")
        assert len(entries(store)) == 1
        bad = Entry("branch", "x", "20261102T000000Z-abcdef")
        store.write(bad.path, b'{"schema_version": 2}')
        with pytest.raises(EvidenceError, match=r"20261102T000000Z-abcdef\.json: no baseline that this version reads"):
            load(store, bad)

    @pytest.mark.parametrize("change", [{"valid": 2}, {"resolved": 2}, {"runs": -1}, {"tokens": -1.0}, {"extra": 1}])
    def test_numbers_that_cannot_be(self, store: Store, change: dict[str, Any]) -> None:
        """A summary that contradicts itself is no baseline."""
        made = json.loads(baseline().to_json())
        made["entries"][0] |= change
        entry = Entry("branch", "x", made["sweep_id"])
        store.write(entry.path, json.dumps(made).encode())
        with pytest.raises(EvidenceError, match="no baseline"):
            load(store, entry)

    def test_gone(self, store: Store) -> None:
        """One that is not there any more is an error."""
        with pytest.raises(StoreError):
            load(store, Entry("branch", "x", "20261102T000000Z-abcdef"))


class TestChoose:
    def chosen(self, store: Store, tasks: str = "ab", branch: str | None = "x") -> str | None:
        found = choose(store, branch, questions(tasks), "20261120T000000Z-ffffff")
        return f"{found.kind} {found.name} {found.sweep_id[6:8]}" if found else None

    def test_walk(self, tmp_path: Path) -> None:
        """The branch's newest comes first, then the main line's, then the newest release's."""
        store = open_store("filed", tmp_path)
        told = []
        for number, kind, name in ((3, "release", "v1"), (4, "release", "v2"), (2, "main", "main"), (1, "branch", "x")):
            file(store, baseline(number, kind, name))
            told.append(self.chosen(store))
        file(store, baseline(9, "branch", "other"))
        assert [*told, self.chosen(store), self.chosen(store, branch=None)] == [
            "release v1 03", "release v2 04", "main main 02", "branch x 01", "branch x 01", "main main 02",
        ]  # fmt: skip

    def test_never_a_later_one_nor_itself(self, tmp_path: Path) -> None:
        """A report that is made again years later is compared with what was there before its sweep."""
        store = open_store("filed", tmp_path)
        file(store, baseline(20, sweep_id="20261120T000000Z-ffffff"))
        file(store, baseline(25))
        assert self.chosen(store) is None
        file(store, baseline(5))
        assert self.chosen(store) == "branch x 05"

    def test_another_suite(self, tmp_path: Path) -> None:
        """A baseline that shares no task is passed over for the next; of one that shares some, only those are kept."""
        store = open_store("filed", tmp_path)
        file(store, baseline(7, tasks="zy"))
        file(store, baseline(6, tasks="acd"))
        assert self.chosen(store) == "branch x 06"
        found = choose(store, "x", questions("ab"), "20261120T000000Z-ffffff")
        assert found is not None
        assert [entry.task for entry in found.entries] == ["a"]
        assert self.chosen(store, tasks="q") is None

    def test_a_changed_task_is_another(self, tmp_path: Path) -> None:
        """A task that was changed since is not shared."""
        store = open_store("filed", tmp_path)
        file(store, baseline(7))
        assert choose(store, "x", [Question("a", 0, "sha256:other")], "20261120T000000Z-ffffff") is None


FILE = """
import sys
from pathlib import Path
from pytest_wfbench.baselines.place import open_store
store = open_store("git:repository", Path(sys.argv[1]))
for number in range(int(sys.argv[3])):
    store.write(f"branch/{sys.argv[2]}/202611{number + 10}T000000Z-abcdef.json", sys.argv[2].encode())
"""


class TestBranch:
    def state(self, repository: Path) -> tuple[Any, ...]:
        index = (repository / ".git/index").read_bytes()
        files = {path.name: path.read_bytes() for path in sorted(repository.iterdir()) if path.is_file()}
        return index, files, git(repository, "status", "--porcelain"), git(repository, "rev-parse", "HEAD")

    def test_work_tree_and_index(self, repository: Path) -> None:
        """Neither the work tree nor the index nor HEAD is touched, and the branch has no history with another."""
        before = self.state(repository)
        store = open_store("git:repository", repository.parent)
        for number in (1, 2):
            file(store, baseline(number))
        assert self.state(repository) == before
        assert git(repository, "log", "--format=%an", "wfbench-baselines").splitlines() == ["wfbench"] * 2
        with pytest.raises(subprocess.CalledProcessError):
            git(repository, "merge-base", "main", "wfbench-baselines")
        git(repository, "fsck", "--strict")

    def test_twice_is_one_commit(self, repository: Path) -> None:
        """What is there already makes no commit."""
        store = open_store("git:repository", repository.parent)
        for _ in range(2):
            file(store, baseline())
        assert git(repository, "rev-list", "--count", "wfbench-baselines") == "1"

    @pytest.mark.slow
    def test_at_once(self, repository: Path) -> None:
        """Several that file at once all land, and none is lost."""
        argv = [sys.executable, "-c", FILE, str(repository.parent)]
        running = [subprocess.Popen([*argv, name, "6"]) for name in "abc"]
        assert [process.wait(120) for process in running] == [0, 0, 0]
        store = open_store("git:repository", repository.parent)
        assert len(entries(store)) == 18
        assert git(repository, "rev-list", "--count", "wfbench-baselines") == "18"

    def test_overtaken(self, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Who is overtaken between reading and writing begins again: the other's is kept."""
        store = open_store("git:repository", repository.parent)
        assert isinstance(store, BranchStore)
        file(store, baseline(1))
        moved, late = BranchStore._moved, []

        def overtaken(self: BranchStore, commit: str, before: str) -> bool:
            if not late:
                late.append(1)
                file(open_store("git:repository", repository.parent), baseline(2))
            return moved(self, commit, before)

        monkeypatch.setattr(BranchStore, "_moved", overtaken)
        file(store, baseline(3))
        assert [entry.sweep_id[6:8] for entry in entries(store)] == ["03", "02", "01"]

    def test_checked_out(self, repository: Path) -> None:
        """A branch that is checked out, here or in another work tree, is refused."""
        git(repository, "worktree", "add", "-qb", "side", str(repository.parent / "side"))
        for branch in ("main", "side"):
            with pytest.raises(StoreError, match="checked out"):
                file(open_store(f"git:repository#{branch}", repository.parent), baseline())

    def test_others_branch(self, repository: Path) -> None:
        """A branch that holds other things is not written to."""
        git(repository, "branch", "code")
        before = git(repository, "rev-parse", "code")
        with pytest.raises(StoreError, match=r"holds 'kept.txt'"):
            file(open_store("git:repository#code", repository.parent), baseline())
        assert git(repository, "rev-parse", "code") == before

    @pytest.mark.parametrize("branch", ["a..b", "-x", "a b", "x.lock", "a\nb"])
    def test_no_branch(self, repository: Path, branch: str) -> None:
        """What git takes for no branch is a plain error."""
        with pytest.raises(StoreError, match=r"no name of a branch"):
            file(open_store(f"git:repository#{branch}", repository.parent), baseline())

    def test_fetched(self, repository: Path) -> None:
        """A branch that was fetched is read, and goes on from there when the first is filed here."""
        store = open_store("git:repository", repository.parent)
        file(store, baseline(1))
        git(repository, "update-ref", "refs/remotes/origin/wfbench-baselines", "wfbench-baselines")
        git(repository, "update-ref", "-d", "refs/heads/wfbench-baselines")
        assert len(entries(store)) == 1
        file(store, baseline(2))
        assert len(entries(store)) == 2
        git(repository, "merge-base", "--is-ancestor", "refs/remotes/origin/wfbench-baselines", "wfbench-baselines")

    def test_hooks_are_not_run(self, repository: Path) -> None:
        """A hook of the repository is not run."""
        for name in ("reference-transaction", "post-commit", "pre-commit"):
            hook = repository / ".git/hooks" / name
            hook.parent.mkdir(exist_ok=True)
            hook.write_text(f"#!/bin/sh\ntouch {repository}/hooked\n")
            hook.chmod(0o755)
        file(open_store("git:repository", repository.parent), baseline())
        assert not (repository / "hooked").exists()


class TestPlace:
    def test_directory_is_made_late(self, tmp_path: Path) -> None:
        """Looking makes nothing."""
        assert entries(open_store("deep/filed", tmp_path)) == ()
        assert not (tmp_path / "deep").exists()

    @pytest.mark.parametrize(("place", "said"), [("file", "is a file"), ("git:nowhere", "no git repository"),
                                                 ("git:.", "no git repository")])  # fmt: skip
    def test_no_store(self, tmp_path: Path, place: str, said: str) -> None:
        """What is no store is named, with what to write."""
        (tmp_path / "file").write_text("")
        with pytest.raises(StoreError, match=said):
            open_store(place, tmp_path)

    def test_work_tree_of_another(self, repository: Path) -> None:
        """A linked work tree is its repository."""
        git(repository, "worktree", "add", "-qb", "side", str(repository.parent / "side"))
        file(open_store("git:side", repository.parent), baseline())
        assert len(entries(open_store("git:repository", repository.parent))) == 1

    def test_links_are_not_followed(self, tmp_path: Path) -> None:
        """A link in a directory store is not read through."""
        outside = tmp_path / "outside.json"
        outside.write_text(baseline().to_json())
        entry = Entry("branch", "x", baseline().sweep_id)
        place = tmp_path / "filed" / entry.path
        place.parent.mkdir(parents=True)
        place.symlink_to(outside)
        with pytest.raises(StoreError, match="link"):
            load(open_store("filed", tmp_path), entry)
