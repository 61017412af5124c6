"""Agents that use up whatever they can get: each is a miss of its own, and no other cell notices."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.attack.raid import Raid, Raiders
from tests.suite import CASES

pytestmark = pytest.mark.slow

Raiding = Callable[[str, Raiders], Raid]

BOUNDS = {"memory": "192MiB", "processes": "48", "disk": "16MiB", "inodes": "6000", "file-size": "64MiB"}
DONE = "echo done > a.txt\n"
# By these seconds a process is known that nobody else has.
MARK = "300.7011"


def python(program: str) -> str:
    return f"{DONE}python3 - <<'PROGRAM'\n{program}\nPROGRAM\n"


BALLOON = "import time\nheld = bytearray(400 << 20)\ntime.sleep(30)"
FORKS = "import os, time\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        time.sleep(0.01)"
SCRIPTS = {
    "calm": DONE,
    "forks": python(FORKS),
    "balloon": python(BALLOON),
    "memfd": python(
        "import os, time\nheld = [os.memfd_create(str(n)) for n in range(6)]\n"
        "for one in held: os.write(one, bytes(50 << 20))\ntime.sleep(30)"
    ),
    "sparse": DONE + "exec truncate -s 10G big\n",
    "real": DONE + "for n in $(seq 40); do head -c 4M /dev/zero > big$n; done; sleep 30\n",
    "quick": DONE + "head -c 24M /dev/zero > big\n",
    "unlinked": python(
        "import os, time\nheld = open('big', 'wb')\nos.unlink('big')\nheld.write(bytes(40 << 20))\nheld.flush()"
        "\ntime.sleep(30)"
    ),
    "closed": DONE + "mkdir d; head -c 20M /dev/zero > d/big; chmod 000 d\n",
    "files": python("for n in range(9000): open(f'f{n}', 'w').close()"),
    "deep": python("import os\nfor _ in range(2500):\n    os.mkdir('d')\n    os.chdir('d')\nopen('leaf', 'w').close()"),
    "heavy": python(
        "import os\nfor _ in range(1500):\n    os.mkdir('d')\n    os.chdir('d')\n"
        "open('leaf', 'wb').write(bytes(20 << 20))"
    ),
    "names": python(
        "import os\nfor name in (b'new\\nline', b'\\xff\\xfe', b' ', b'-rf', b'a' * 255, b'\\x1b[2J'):\n"
        "    os.mkdir(name)\n    open(name + b'/' + name, 'w').close()"
    ),
    "temp": DONE + "head -c 100M /dev/zero > /tmp/x || exit 7\n",
    "opened": python("held = []\ntry:\n    while True: held.append(open('/dev/null'))\nexcept OSError: pass"),
    "events": DONE + "head -c 1G /dev/zero >&3\n",
    "talker": DONE + "head -c 1G /dev/zero; head -c 1G /dev/zero >&2\n",
    "stubborn": DONE + f"trap '' TERM; (trap '' TERM; sleep {MARK}) & while :; do sleep {MARK}; done\n",
    "in-verify": DONE + f"cat > verify.py <<'PROGRAM'\n{BALLOON}\nPROGRAM\n",
    "in-oracle": DONE + f"cat > oracle.py <<'PROGRAM'\n{FORKS}\nPROGRAM\n",
    "calm-too": DONE,
}
EXPECTED = {
    "forks": "limit-processes",
    "balloon": "limit-memory",
    "memfd": "limit-memory",
    "sparse": "limit-disk",
    "real": "limit-disk",
    "quick": "limit-disk",
    "unlinked": "limit-disk",
    "closed": "limit-disk",
    "files": "limit-disk",
    "heavy": "limit-disk",
    "temp": "limit-disk",
    "events": "limit-output",
    "stubborn": "session-timeout",
    "in-verify": "verify-failed",
    "in-oracle": "oracle-failed",
}
VERIFY = "grep -q done a.txt && if test -e verify.py; then python3 verify.py; fi"


@pytest.fixture
def exhausted(raid: Raiding) -> Raid:
    case = CASES.replace("verify: grep -q done a.txt", f'verify: "{VERIFY}"').replace("session: 40s", "session: 12s")
    check = 'test "$(cat a.txt)" = done && if test -e oracle.py; then python3 oracle.py; fi\n'
    files = {"cases/tiny.cases.yaml": case, "oracles/check.sh": check}
    limits = [f"--wfbench-limit-{name}={value}" for name, value in BOUNDS.items()]
    cache = {"WFBENCH_CACHE_DIR": "{path}/cache"}
    return raid("exhaust", Raiders(SCRIPTS, files=files, arguments=["-n", "2", *limits], environment=cache))


@pytest.fixture
def rows(exhausted: Raid) -> dict[str, dict[str, Any]]:
    found = exhausted.rows()
    assert set(found) == set(SCRIPTS), exhausted.output
    return found


class TestExhaustion:
    @pytest.mark.parametrize("script", EXPECTED)
    def test_is_a_miss_of_its_own(self, rows: dict[str, dict[str, Any]], script: str) -> None:
        """Who exceeds a limit gets the limit's kind, never one that could be retried."""
        row = rows[script]
        assert (row["outcome"], row["kind"]) == ("miss", EXPECTED[script]), row["reason"]

    @pytest.mark.parametrize("script", ["calm", "calm-too", "names", "opened", "talker"])
    def test_disturbs_nobody(self, rows: dict[str, dict[str, Any]], script: str) -> None:
        """Who exceeds none passes, whatever runs beside it."""
        assert (rows[script]["outcome"], rows[script]["reason"]) == ("pass", None)

    def test_deep_directories_are_the_candidates_doing(self, rows: dict[str, dict[str, Any]]) -> None:
        """A tree deeper than any path can name neither loses the row nor is the harness's fault."""
        assert (rows["deep"]["outcome"], rows["deep"]["kind"]) == ("miss", "no-work-produced"), rows["deep"]["reason"]

    @pytest.mark.parametrize("script", ["forks", "balloon", "real", "files", "in-verify", "in-oracle"])
    def test_overshoot_is_told(self, rows: dict[str, dict[str, Any]], script: str) -> None:
        """The reason tells what was used and what is allowed."""
        assert "limit: " in rows[script]["reason"]
        assert "allowed" in rows[script]["reason"]

    @pytest.mark.parametrize("script", ["in-verify", "in-oracle"])
    def test_paid_numbers_are_kept(self, rows: dict[str, dict[str, Any]], script: str) -> None:
        """A check that exceeds a limit leaves the session's numbers as they were."""
        assert rows[script]["churn"]["files"] > 0
        assert rows[script]["timings"]["session"] > 0

    def test_is_ended_at_once(self, rows: dict[str, dict[str, Any]]) -> None:
        """A limit ends the session long before its wall clock does."""
        for script in ("balloon", "memfd", "real", "unlinked"):
            assert rows[script]["timings"]["session"] < 11, script

    def test_leaves_nothing(self, exhausted: Raid) -> None:
        """No process, no directory and no mount of the sweep is left."""
        processes = list(psutil.process_iter(["cwd", "cmdline"]))
        assert [p.pid for p in processes if str(exhausted.path) in str(p.info["cwd"])] == []
        assert [p.pid for p in processes if MARK in (p.info["cmdline"] or ())] == []
        assert str(exhausted.path) not in Path("/proc/self/mountinfo").read_text()
        (cells,) = (exhausted.path / "cache").glob("cells*")
        assert list(cells.iterdir()) == []

    def test_sweep_is_whole(self, exhausted: Raid) -> None:
        """The sweep ends as any other with misses does: nothing in it is unusable."""
        assert exhausted.status == 0, exhausted.output
        assert not [row for row in exhausted.rows().values() if row["outcome"] == "unusable"]
