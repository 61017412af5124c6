"""What a session leaves behind: nothing of it is in a later cell, in its own verify and oracle, or on the host."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.attack.raid import Raid, Raiders

NAME = "wfbench-relic"
ADD_KEY, KEYCTL = {"x86_64": (248, 250), "aarch64": (217, 219)}.get(os.uname().machine, (0, 0))
TREES = ("/tmp", "/dev/shm", "/run", "/var/tmp", "/dev/mqueue", "/var/spool/cron", "/var/spool/at", "/run/user/1000")
HOME_FILES = (".bashrc", ".profile", ".gitconfig", ".config/autostart/x.desktop", ".config/systemd/user/x.service")

# Each kind of thing that outlives a process, made by `make` and looked for by `find`; the scripts note what they did.
KERNEL = f"""
import ctypes, os, socket, sys
libc, name = ctypes.CDLL(None, use_errno=True), b"/{NAME}"
made = os.O_CREAT if sys.argv[1] == "make" else 0
flag = 0o1666 if made else 0o666
def note(what, good):
    if good: open("loot.txt", "a").write(f"{{sys.argv[1]}} {{what}}\\n")
note("shm", libc.shmget(0x7007, 4096, flag) >= 0)
note("msg", libc.msgget(0x7007, flag) >= 0)
note("sem", libc.semget(0x7007, 1, flag) >= 0)
note("posix-shm", libc.shm_open(name, made | os.O_RDWR, 0o666) >= 0)
note("posix-mq", libc.mq_open(name, made | os.O_RDWR, 0o666, None) >= 0)
for ring in (-2, -3, -4, -5):
    if made: note("key", libc.syscall({ADD_KEY}, b"user", b"{NAME}", b"stolen", 6, ring) >= 0)
    else: note("key", libc.syscall({KEYCTL}, 10, ring, b"user", b"{NAME}", 0) >= 0)
channel = socket.socket(socket.AF_UNIX)
try:
    channel.bind("\\0{NAME}") if made else channel.connect("\\0{NAME}")
    note("abstract", True)
except OSError:
    pass
"""

DAEMON = f"""
import ctypes, os, signal, time
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
for _ in range(2):
    if os.fork(): os._exit(0)
    os.setsid()
for descriptor in range(4):
    try: os.close(descriptor)
    except OSError: pass
open("/workspace/started", "w").close()
until = time.time() + 60  # {NAME}
while time.time() < until:
    try: open("/workspace/ticks", "a").write("x")
    except OSError: pass
    time.sleep(0.02)
"""

MAKE = f"""
echo done > a.txt
for d in {" ".join(TREES)} "$HOME"; do mkdir -p $d 2>/dev/null; echo x 2>/dev/null > $d/{NAME} && loot make $d; done
for f in {" ".join(HOME_FILES)}; do mkdir -p ~/$(dirname $f); echo '# {NAME}' > ~/$f && loot make home $f; done
(echo '* * * * * true' | crontab -) 2>/dev/null && loot make crontab
(echo true | at now) 2>/dev/null && loot make at
python3 -c '{KERNEL}' make
git -c user.name=n -c user.email=e commit -qam {NAME}
git branch {NAME} && git tag {NAME}-tag && loot make branch
echo x >> a.txt; git -c user.name=n -c user.email=e stash -q && loot make stash
mkdir -p .git/hooks; printf '#!/bin/sh\\necho {NAME} >> loot.txt\\n' > .git/hooks/post-checkout
cp .git/hooks/post-checkout .git/hooks/post-index-change; chmod +x .git/hooks/* && loot make hook
git config core.fsmonitor .git/hooks/post-checkout; git config alias.status '!echo {NAME}'
echo done > a.txt
cat > daemon.py <<'END'
{DAEMON}
END
python3 daemon.py; setsid nohup sleep 60.7007 >/dev/null 2>&1 &
while [ ! -e started ]; do sleep 0.02; done
"""

FIND = f"""
for d in {" ".join(TREES)} "$HOME"; do [ -e $d/{NAME} ] && loot find $d; done
for f in {" ".join(HOME_FILES)}; do [ -e ~/$f ] && loot find home $f; done
[ -e started ] && loot find workspace
python3 -c '{KERNEL}' find
git log --all --format=%s | grep -q {NAME} && loot find commit
git stash list | grep -q . && loot find stash
ls .git/hooks 2>/dev/null | grep -qE 'post-(checkout|index-change)$' && loot find hook
git fsck --unreachable --no-reflogs 2>/dev/null | grep -q . && loot find object
grep -qsa -e '60[.]7007' -e 'daemon[.]py' /proc/[0-9]*/cmdline && loot find process
true
"""
# verify and oracle see the workspace, so what is in it is the agent's to leave; nothing else is.
JUDGE = f"""#!/bin/sh
cd /workspace && rm -rf .git loot.txt started 2>/dev/null && git init -q . 2>/dev/null
loot() {{ echo "$*" >> /tmp/loot; }}
{FIND}
one=$(wc -c < ticks); sleep 0.2; [ "$one" = "$(wc -c < ticks)" ] || loot find daemon
cat loot.txt >> /tmp/loot 2>/dev/null
if [ -s /tmp/loot ]; then cat /tmp/loot >&2; exit 9; fi
"""
CASES = """\
kind: implementation
tasks:
  - id: finish
    repo: tiny
    prompt: Make a.txt say done.
    verify: |
%s
    oracle:
      command: sh "$WFBENCH_ORACLE_ROOT/check.sh"
      files: [{source: check.sh, target: check.sh}]
      results: exit
"""

pytestmark = pytest.mark.slow


@pytest.fixture
def ended(raid: Callable[[str, Raiders], Raid]) -> Raid:
    """A cell that leaves all it can, judged by scripts that look for it, and a later cell that looks for it."""
    shown = "\n".join("      " + line for line in JUDGE.splitlines())
    idle = "touch ticks\n"
    return raid(
        "persist",
        Raiders(
            {"leaver": MAKE, "seeker": FIND + idle + "loot looked\n", "honest": "echo done > a.txt\n" + idle},
            files={"cases/tiny.cases.yaml": CASES % shown, "oracles/check.sh": JUDGE},
        ),
    )


class TestCells:
    def test_it_was_there_to_be_found(self, ended: Raid) -> None:
        """The session could make what has namespaces of its own, and no key: keyrings have none."""
        made = set(ended.loot("leaver"))
        assert {"make /tmp", "make /dev/shm", "make /run", "make shm", "make msg", "make sem", "make posix-shm"} <= made
        assert {"make abstract", "make branch", "make stash", "make hook", "make home .bashrc"} <= made
        assert "make key" not in made

    def test_later_cell(self, ended: Raid) -> None:
        """A later session finds nothing: no file, object, ref, hook, key, ipc object or process."""
        assert ended.loot("seeker") == ["looked"]

    def test_own_verify_and_oracle(self, ended: Raid) -> None:
        """verify and the oracle of the very cell see the workspace, and nothing else that the session left."""
        rows = ended.rows()
        assert rows["honest"]["outcome"] == "pass", rows["honest"]["reason"]
        assert rows["leaver"]["outcome"] == "pass", rows["leaver"]["reason"]

    def test_hooks_stay_quiet(self, ended: Raid) -> None:
        """Hooks, aliases and monitors in the workspace's own repository are never run by the harness."""
        assert NAME not in ended.loot("leaver")


class TestHost:
    def test_no_process(self, ended: Raid) -> None:
        """No process of a session lives on."""
        words = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
        assert not [text for text in words if "60.7007" in text or text.endswith("daemon.py")]

    def test_no_file(self, ended: Raid) -> None:
        """No file of a session lies on the host."""
        assert not [tree for tree in (*TREES, str(Path.home())) if Path(tree, NAME).exists()]
        assert not [path for path in Path("/dev/shm").iterdir() if NAME in path.name]

    def test_no_kernel_object(self, ended: Raid) -> None:
        """No System V object and no abstract socket of a session is left on the host."""
        libc = ctypes.CDLL(None)
        assert (libc.shmget(0x7007, 4096, 0o666), libc.msgget(0x7007, 0o666), libc.semget(0x7007, 1, 0o666)) == (
            -1,
        ) * 3
        assert NAME not in Path("/proc/net/unix").read_text()
