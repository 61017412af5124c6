"""Agents, and code they leave for verify and oracle, that look for what they are not to see."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.attack.raid import Raid, Raiders, python
from tests.suite import ARMS, CASES, PATCH

pytestmark = pytest.mark.slow

# Written in two halves wherever a script has it, so that no script finds itself.
MARK = "MARK-"
PRIVATE = f"{MARK}PRIVATE {'of the task ' * 20}\n"
KEY = "sk-ant-planted-0123456789abcdef"

# Runs as candidate code under verify and oracle: exit 0 says that there was nothing to be had.
PROBE = r"""
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
got = []
if any(name.startswith("WFBENCH") for name in os.environ):
    got.append("environment")
for place in ("/run/hidden", "/dev/shm", "/run", "/tmp"):
    try:
        expected = {"wfbench", "hidden"} if "oracle" in sys.argv else {"wfbench"}
        # The interpreter may lie there.
        expected |= {path.split("/")[2] for path in (sys.prefix, sys.base_prefix) if path.startswith(place + "/")}
        got += [f"{place}/{name}" for name in os.listdir(place) if name not in expected]
    except OSError:
        pass
if "oracle" in sys.argv and os.path.exists("/proc/self"):
    got.append("/proc")
fds = [fd for fd in range(3, 64) if not libc.fcntl(fd, 1) == -1]
got += [f"descriptor {fd}" for fd in fds]
machine = os.uname().machine
numbers = {"x86_64": (310, 458), "aarch64": (270, 458)}[machine]
own = ctypes.create_string_buffer(8)
class Vec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
vec = Vec(ctypes.cast(own, ctypes.c_void_p), 8)
if libc.syscall(ctypes.c_long(numbers[0]), os.getpid(), ctypes.byref(vec), 1, ctypes.byref(vec), 1, 0) > 0:
    got.append("memory")
import struct
request = struct.pack("IIQQ", 24, 0, 0xFFFFFFFFFFFFFFFF, 0)
mounts = (ctypes.c_uint64 * 256)()
if libc.syscall(ctypes.c_long(numbers[1]), ctypes.c_char_p(request), mounts, ctypes.c_size_t(256), 0) > 0:
    got.append("mounts")
sys.exit(", ".join(got) or 0)
"""

CHECK = f"""\
# {MARK}ORACLE
test "$(cat a.txt)" = done || exit 1
test ! -e probe.py || env -i PATH="$PATH" python3 probe.py oracle
"""

TASKS = CASES.replace("  repo: tiny\n", "  repo: tiny\n  private: [hidden]\n").replace(
    "verify: grep -q done a.txt", "verify: grep -q done a.txt && if test -e probe.py; then python3 probe.py verify; fi"
)

CALLS = r"""
import ctypes, errno, os, struct
libc = ctypes.CDLL(None, use_errno=True)
x86 = os.uname().machine == "x86_64"
blank = ctypes.create_string_buffer(256)
text = ctypes.c_char_p
attributes = ctypes.create_string_buffer(struct.pack("IIQQQQQ", 1, 128, 0, 0, 0, 0, 1 << 5 | 1 << 6), 128)
request = struct.pack("IIQQ", 24, 0, 0xFFFFFFFFFFFFFFFF, 0)
CALLS = {
    "ptrace": ((101, 117), (16, os.getppid(), 0, 0)),
    "kcmp": ((312, 272), (os.getpid(), os.getpid(), 0, 0, 0)),
    "pidfd_getfd": ((438, 438), (os.pidfd_open(os.getpid()), 0, 0)),
    "perf_event_open": ((298, 241), (attributes, os.getppid(), -1, -1, 0)),
    "add_key": ((248, 217), (text(b"user"), text(b"w"), text(b"x"), 1, -4)),
    "keyctl": ((250, 219), (6, -4, blank, 255)),
    "listmount": ((458, 458), (text(request), blank, 32, 0)),
    "statmount": ((457, 457), (text(request), blank, 256, 0)),
}
for name, (numbers, arguments) in CALLS.items():
    whole = [ctypes.c_long(part) if isinstance(part, int) else part for part in arguments]
    ended = libc.syscall(ctypes.c_long(numbers[not x86]), *whole)
    if ended >= 0 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS):
        print(name, ended, errno.errorcode.get(ctypes.get_errno()))
"""


SCRIPTS = {
    # Everything a search of the whole file system can find, and first of all what it must find.
    "search": """
M=MA; M=${M}RK-
grep -rlaF --exclude-dir=usr --exclude-dir=proc --exclude-dir=lib --exclude-dir=bin -e "$M" / 2>/dev/null |
sed 's/^/found /' > /tmp/l
cat /tmp/l >> loot.txt
ls -A / /home /root /var /work /srv /mnt /opt /run /tmp 2>/dev/null | grep -v '^$' |
grep -E 'ssh|oracles|results|cache|pytest-of' |
while read -r n; do loot "listed $n"; done
echo done > a.txt
""",
    "processes": """
M=MA; M=${M}RK-; K=planted; K=sk-ant-$K
for p in /proc/[0-9]*; do
  for f in environ cmdline maps; do tr '\\0' '\\n' < $p/$f 2>/dev/null | grep -qaE "$M|$K|pytest" && loot "$p/$f"
done
  for l in root cwd exe; do case "$p" in /proc/1) ls $p/$l/ >/dev/null 2>&1 && loot "$p/$l";; esac; done
done
loot "pids $(ls -d /proc/[0-9]* | wc -l)"
env | grep -qE "$M|$K|API_KEY" && loot environment
""",
    # The kernel tells where on the host the mounts come from: is anything to be had there?
    "origins": """
tr ' ,:=' '\\n' < /proc/self/mountinfo | sed 's,^/oldroot,,;s,^/newroot,,' |
grep -E '/(shelves|templates|starts|cells|cell-|raid-|scratch)' |
sort -u > /tmp/paths
loot "named $(grep -c . /tmp/paths)"
while read -r p; do
  case "$p" in /workspace*) continue;; esac
  for q in "$p" "${p%/*}" "${p%/*/*}"; do
  test -n "$(find "$q" -type f 2>/dev/null | head -1)" && loot "reached $q"
  done
done < /tmp/paths
""",
    "etc": """
for f in /etc/*; do loot "has ${f#/etc/}"; done
for f in shadow gshadow shadow- sudoers ssh fstab machine-id ssl/private environment krb5.keytab crontab; do
test -e /etc/$f && loot "SECRET $f"; done
""",
    "calls": f"{python('/tmp/calls.py', CALLS)}python3 /tmp/calls.py >> loot.txt && loot called\n",
    # These two run one after the other, or side by side under -n 2: the second one waits a while for the first.
    "leave": """
mkdir -p ~/.cache
for d in /tmp /home/agent /dev/shm /run . ~/.cache; do echo left > $d/left && loot "$d"; done
ipcmk -M 64 >/dev/null && loot shm
python3 -c "
import socket, time
s = socket.socket(socket.AF_UNIX); s.bind(chr(0) + 'left'); t = socket.socket(); t.bind(('127.0.0.1', 4321))
t.listen()
open('loot.txt', 'a').write('sockets' + chr(10))
time.sleep(3)"
""",
    "look": """
for i in 1 2 3 4 5 6; do
  for d in /tmp /home/agent /dev/shm /run . ~/.cache; do test -e $d/left && loot $d/left; done
  grep -q left /proc/net/unix && loot socket
  test $(wc -l < /proc/sysvipc/shm) -gt 1 && loot shm
  (exec 3<>/dev/tcp/127.0.0.1/4321) 2>/dev/null && loot port
  ps -e -o args= 2>/dev/null | grep -q 'bind(ch[r]' && loot process
  sleep 0.3
done
loot looked
""",
    "probe": f"{python('probe.py', PROBE)}echo done > a.txt\n",
    # Proof that a probe that gets hold of something is seen to.
    "loud": "echo 'import sys; sys.exit(1)' > probe.py; echo done > a.txt\n",
}

RAIDERS = Raiders(
    scripts={name: f"{text}\nexit 0\n" for name, text in SCRIPTS.items()},
    files={
        "cases/tiny.cases.yaml": f"# {MARK}CASE\n{TASKS}",
        "cases/arms.yaml": f"# {MARK}ARMS\n{ARMS}",
        "cases/tiny/hidden/test_secret.py": PRIVATE,
        "cases/tiny/open.txt": f"{MARK}OPEN\n",
        "oracles/check.sh": CHECK,
        "oracles/finish.patch": f"{MARK}REFERENCE\n{PATCH}",
        "home/.ssh/id_ed25519": f"{MARK}SSH\n",
        "home/.claude/.credentials.json": f"{MARK}LOGIN\n",
        "results/wfbench-19990101-000000-aaaa/results.jsonl": f"{MARK}RESULTS\n",
    },
    arguments=("-n", "2"),
    environment={"HOME": "{path}/home", "ANTHROPIC_API_KEY": KEY, "MARKED": f"{MARK}ENVIRONMENT"},
)


@pytest.fixture
def done(raid: Callable[[str, Raiders], Raid]) -> Raid:
    return raid("read", RAIDERS)


class TestAgents:
    def test_all_ran(self, done: Raid) -> None:
        """Every script came to its end, and what lies open in the repository was found."""
        rows = done.rows()
        assert {name: row["outcome"] for name, row in rows.items() if row["outcome"] == "unusable"} == {}
        assert set(rows) == set(SCRIPTS)
        assert "found /workspace/open.txt" in done.loot("search")

    def test_files(self, done: Raid) -> None:
        """Oracle, reference, case file, arms, private files, results, home and logins are in no file."""
        assert done.loot("search") == ["found /workspace/open.txt"]

    def test_processes(self, done: Raid) -> None:
        """No process of the harness is to be seen, nor its environment with the key, nor that of the init."""
        words = done.loot("processes")
        assert words[:-1] == []
        assert int(words[-1].removeprefix("pids ")) < 12

    def test_where_mounts_come_from(self, done: Raid) -> None:
        """What the kernel says of the host's paths helps nobody: caches, start states and other cells are not there."""
        named, *reached = done.loot("origins")
        assert named != "named 0"
        assert reached == []

    def test_etc(self, done: Raid) -> None:
        """Of /etc there is what the list names."""
        allowed = {
            "alternatives", "ca-certificates.conf", "crypto-policies", "group", "hostname", "hosts", "ld.so.cache",
            "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types", "nsswitch.conf", "os-release", "passwd", "pki",
            "protocols", "resolv.conf", "services", "ssl",
        }  # fmt: skip
        words = done.loot("etc")
        assert [word for word in words if word.startswith("SECRET")] == []
        assert {word.removeprefix("has ") for word in words} <= allowed
        assert "has passwd" in words

    def test_calls(self, done: Raid) -> None:
        """No system call looks into a process, reaches a keyring, or lists mounts."""
        assert done.loot("calls") == ["called"]

    def test_neighbours(self, done: Raid) -> None:
        """Nothing of another cell is to be seen, whether it runs at the same time or ran before."""
        left = ["/tmp", "/home/agent", "/dev/shm", "/run", ".", "/home/agent/.cache", "shm", "sockets"]
        assert done.loot("leave") == left
        assert done.loot("look") == ["looked"]

    def test_the_key_is_nowhere(self, done: Raid) -> None:
        """The provider's key is in no artifact, in no row and not in the output."""
        written = [path for path in done.path.rglob("*") if path.is_file() and "results" in path.parts]
        assert written
        assert [path for path in written if KEY.encode() in path.read_bytes()] == []
        assert KEY not in done.output


class TestCandidateCode:
    def test_nothing_to_be_had(self, done: Raid) -> None:
        """Code that verify and a black-box oracle start finds no oracle file, no memory, no mount and no descriptor."""
        row = done.rows()["probe"]
        assert (row["authored_tests_passed"], row["oracle_passed"], row["outcome"]) == (True, True, "pass")

    def test_it_would_be_told(self, done: Raid) -> None:
        """A probe that gets hold of something fails both."""
        row = done.rows()["loud"]
        assert (row["authored_tests_passed"], row["oracle_passed"]) == (False, False)


class TestInterpreter:
    def test_links_on_the_way(self, tmp_path: Path) -> None:
        """Of a person's directory with a link to the interpreter in it, a sandbox sees that link, and Python works."""
        base = Path(json.loads(_python("import json, sys; print(json.dumps(sys._base_executable))")))
        (tmp_path / ".local/bin").mkdir(parents=True)
        (tmp_path / ".local/share").mkdir()
        (tmp_path / ".local/share/auth.json").write_text(f"{MARK}LOGIN")
        link = tmp_path / ".local/bin/python3"
        link.symlink_to(base.resolve())
        subprocess.run([link, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
        looking = f"cat {tmp_path}/.local/share/auth.json; python3 -c 'import sys; print(sys.prefix)'; ls {link.parent}"
        source = (
            "from pytest_wfbench.sandbox.bubblewrap import make_bubblewrap\n"
            "from pytest_wfbench.sandbox.spec import Command, Tmpfs\n"
            f"command = Command(('/bin/sh', '-c', {looking!r}), (Tmpfs('/workspace', 1 << 20),), 20)\n"
            "print(make_bubblewrap().run(command).stdout.decode())\n"
        )
        assert _python(source, str(tmp_path / "venv/bin/python")).split() == [str(tmp_path / "venv"), "python3"]


def _python(source: str, executable: str | None = None) -> str:
    paths = os.pathsep.join([str(Path(__file__).parents[2]), *(path for path in sys.path if path)])
    command = [executable or sys.executable, "-c", source]
    env = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout
