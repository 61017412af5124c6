"""Agents that write where they are not to: templates, hosts, skills, other cells, and what the harness reads later."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest

from tests.attack.raid import LOOT, Raid, Raiders, python
from tests.suite import CASES, FILES

pytestmark = pytest.mark.slow

DONE = "echo done > a.txt\n"
SETUP = "echo setup > made.txt; ln a.txt twin.txt; ln made.txt made-twin.txt; mkdir box; echo x > box/x"

MOUNTS = r"""
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
x86 = os.uname().machine == "x86_64"
text = ctypes.c_char_p
zero = ctypes.create_string_buffer(128)
write_on = ctypes.create_string_buffer(struct.pack("QQQQ", 0, 1, 0, 0), 32)
CALLS = {
    "mount remount": ((165, 40), (text(b"none"), text(b"/usr"), None, 32 | 4096, None)),
    "mount bind": ((165, 40), (text(b"/tmp"), text(b"/workspace/.claude/skills"), None, 4096, None)),
    "mount tmpfs": ((165, 40), (text(b"none"), text(b"/tmp"), text(b"tmpfs"), 0, None)),
    "mount overlay": ((165, 40), (text(b"none"), text(b"/tmp"), text(b"overlay"), 0, text(b"lowerdir=/usr:/etc"))),
    "umount": ((166, 39), (text(b"/workspace/.claude/skills"), 2)),
    "open_tree": ((428, 428), (-100, text(b"/usr"), 1)),
    "fsopen": ((430, 430), (text(b"tmpfs"), 0)),
    "fspick": ((433, 433), (-100, text(b"/usr"), 0)),
    "move_mount": ((429, 429), (-100, text(b"/usr"), -100, text(b"/tmp"), 0)),
    "mount_setattr": ((442, 442), (-100, text(b"/usr"), 0, write_on, 32)),
    "unshare user": ((272, 97), (0x10000000,)),
    "unshare mount": ((272, 97), (0x20000,)),
    "unshare net": ((272, 97), (0x40000000,)),
    "setns": ((308, 268), (os.pidfd_open(1), 0x20000)),
    "chroot": ((161, 51), (text(b"/tmp"),)),
    "pivot_root": ((155, 41), (text(b"/tmp"), text(b"/tmp"))),
    "mknod disk": ((259, 33), (-100, text(b"/tmp/disk"), 0o60666, 0xFE00)),
    "mknod memory": ((259, 33), (-100, text(b"/tmp/mem"), 0o20666, 0x101)),
    "mknod whiteout": ((259, 33), (-100, text(b"/workspace/README"), 0o20666, 0)),
    "open_by_handle_at": ((304, 265), (-100, ctypes.create_string_buffer(struct.pack("Ii", 8, 1), 64), 0)),
    "clone newuser": ((435, 435), (ctypes.create_string_buffer(struct.pack("Q", 0x10000000), 88), 88)),
    "setuid": ((105, 146), (0,)),
    "swapon": ((167, 224), (text(b"/workspace/a.txt"), 0)),
    "sethostname": ((170, 161), (text(b"x"), 1)),
    "settimeofday": ((164, 170), (zero, None)),
    "init_module": ((175, 105), (zero, 8, text(b""))),
    "reboot": ((169, 142), (0xFEE1DEAD, 672274793, 0, None)),
}
for name, (numbers, arguments) in CALLS.items():
    whole = [ctypes.c_long(part) if isinstance(part, int) else part for part in arguments]
    ended = libc.syscall(ctypes.c_long(numbers[not x86]), *whole)
    if ended == 0 and name.startswith("clone"):
        os._exit(0)
    if ended >= 0:
        print(name, ended)
print("called")
"""

ATTRIBUTES = r"""
import os
for path in ("box", "box/x", "a.txt", "new", "new/f"):
    for name in ("opaque", "redirect", "metacopy", "whiteout", "origin", "overlay.opaque", "overlay.whiteout"):
        for value in (b"y", b"/cases"):
            try:
                os.setxattr(path, "user.overlay." + name, value)
            except OSError:
                pass
for name in ("trusted.overlay.opaque", "security.capability"):
    try:
        os.setxattr("a.txt", name, b"y" * 20)
        print("set", name)
    except OSError:
        pass
print("set all")
"""

# Everything that can turn a repository's own settings into a program, or into a lie about what was changed.
GIT = """
printf '#!/bin/sh\\necho ran >> /workspace/ran; exit 0\\n' > run.sh; chmod +x run.sh; cp run.sh /tmp/run
g="git config"
$g core.fsmonitor "/workspace/run.sh; echo"; $g core.hooksPath /workspace; $g diff.external /workspace/run.sh
$g diff.lie.textconv "echo same"; $g filter.lie.clean "echo same"; $g filter.lie.smudge "/workspace/run.sh"
$g filter.lie.process /workspace/run.sh; $g filter.lie.required true; $g core.attributesFile /workspace/.lie
$g core.sshCommand /workspace/run.sh; $g gpg.program /workspace/run.sh; $g commit.gpgSign true
$g core.excludesFile /workspace/.lie; $g core.pager /workspace/run.sh; $g core.editor /workspace/run.sh
$g core.worktree /tmp; $g include.path /workspace/.lie; $g core.autocrlf true; $g core.fileMode false
$g core.alternateRefsCommand /workspace/run.sh; $g uploadpack.packObjectsHook /workspace/run.sh
echo '* filter=lie diff=lie text eol=crlf -diff export-ignore' | tee .gitattributes .git/info/attributes > .lie
echo '*' > .git/info/exclude; mkdir -p .git/hooks
for h in pre-commit post-checkout post-index-change reference-transaction fsmonitor-watchman; do
cp run.sh .git/hooks/$h; done
echo /workspace/fake > .git/objects/info/alternates; echo deadbeef > .git/shallow; mkdir -p .git/info
printf 'DIRC\\0\\0\\0\\2\\0\\0\\0\\0link' > .git/index
rm .git/HEAD; ln -s /tmp/run .git/HEAD
git init -q sub; (cd sub; $g core.fsmonitor /workspace/run.sh; echo evil > evil.py); rm run.sh
printf '[submodule "s"]\\npath = sub\\nurl = ext::/workspace/run.sh\\nupdate = !/workspace/run.sh\\n' > .gitmodules
"""

SCRIPTS: Mapping[str, str] = {
    # First what a later cell of the same start state must not find.
    "scrawl": """
exec 5<>a.txt; exec 6<>made-twin.txt; echo scrawled >&5; echo scrawled >&6; chmod 777 box; rm -rf box/x .git/refs
for f in twin.txt made.txt .git/config .git/HEAD; do echo scrawled > $f; done; echo done > a.txt
""",
    "after": """
for f in a.txt twin.txt; do test "$(cat $f)" = open || loot "$f is not what it was"; done
for f in made.txt made-twin.txt; do test "$(cat $f)" = setup || loot "$f is not what it was"; done
test "$(cat box/x)" = x || loot box; git fsck 2>&1 | grep . && loot git; git status --short | grep . && loot status
ls; test -e ran -o -e loot.txt && cat loot.txt; echo done > a.txt
""",
    "mounts": f"""{python("/tmp/m.py", MOUNTS)}python3 /tmp/m.py >> loot.txt
mount -o remount,rw /usr 2>/dev/null && loot remount; mount --bind /tmp /usr 2>/dev/null && loot bind
unshare -Urm true 2>/dev/null && loot unshare; nsenter -t 1 -m true 2>/dev/null && loot nsenter
losetup -f a.txt 2>/dev/null && loot losetup; chroot / true 2>/dev/null && loot chroot
loot tried
""",
    "system": """
for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sys/vm/drop_caches \
  /proc/sys/net/ipv4/ip_forward \
  /proc/sys/kernel/modprobe /proc/sysrq-trigger /proc/1/oom_score_adj /proc/1/mem /dev/kmsg /sys/kernel/uevent_helper \
  /proc/sys/user/max_user_namespaces /proc/1/uid_map /proc/acpi/wakeup; do
(echo 1 > $f) 2>/dev/null && loot $f; done
for d in / /usr /usr/bin /usr/lib /etc /etc/ssl/certs /bin /lib /dev /dev/pts /proc /sys \
  "$(python3 -c 'import sys; print(sys.prefix)')" \
  "$(python3 -c 'import os; print(os.path.dirname(os.__file__))')" /home \
  /opt/wfbench /opt/wfbench/init /opt/wfbench/init/pytest_wfbench/sandbox; do
(touch $d/w) 2>/dev/null && loot "wrote in $d"; done
for f in /etc/passwd /etc/hosts /usr/bin/env /opt/wfbench/init/pytest_wfbench/sandbox/init.pyc \
  "$(command -v python3)"; do
(echo x >> $f) 2>/dev/null && loot "wrote $f"; mv $f $f.x 2>/dev/null && loot "moved $f"
ln $f /tmp/l 2>/dev/null && loot "linked $f"
chmod u+w $f 2>/dev/null && loot "chmod $f"; done
for d in /dev/*; do case ${d#/dev/} in
null|zero|full|random|urandom|tty|ptmx|pts|shm|fd|stdin|stdout|stderr|core|console) ;; *) loot $d;; esac; done
grep -q 'NoNewPrivs:.1' /proc/self/status || loot 'new privileges'
grep -E 'Cap(Eff|Bnd|Prm):.*[1-9a-f]' /proc/self/status && loot capabilities
loot tried
""",
    "skills": """
s=.claude/skills; f=$s/work/SKILL.md
(echo x >> $f) 2>/dev/null && loot write; rm -rf $f 2>/dev/null; test -e $f || loot remove; mv $s x 2>/dev/null &&
loot move
mv .claude y 2>/dev/null && loot 'move parent'; ln $f link 2>/dev/null && loot link; chmod 777 $f 2>/dev/null &&
loot chmod
mkdir $s/new 2>/dev/null && loot mkdir; mount --bind /tmp $s 2>/dev/null && loot bind; umount -l $s 2>/dev/null &&
loot umount
ln -sfn /tmp .claude/skills 2>/dev/null; test -e $s/skills -o -L $s && loot swap
rm -rf .claude 2>/dev/null; test -e $f || loot 'remove all'; python3 -c "
import os
try: os.rename('.claude', 'z'); print('renamed')
except OSError: pass
d = os.open('.claude/skills/work', os.O_RDONLY)
for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC):
    try: os.open('SKILL.md', flags, dir_fd=d); print('opened')
    except OSError: pass
try: os.setxattr('.claude/skills', 'user.overlay.opaque', b'y'); print('marked')
except OSError: pass
print('tried')
" >> loot.txt
cat $f >> loot.txt; echo done > a.txt
""",
    "user-skills": """
cd; for s in .claude/skills .agents/skills .codex/skills .config/opencode/skills .config/opencode/skill; do
p=${s%/*}; test -d $s || (cd /workspace; loot "no $s"); ls -A $s | grep . && (cd /workspace; loot "full $s")
mv $p moved 2>/dev/null; mv ${p%/*} moved 2>/dev/null; rm -rf $s 2>/dev/null; ln -sfn /tmp $s 2>/dev/null
mkdir -p $s/work 2>/dev/null && (cd /workspace; loot "wrote $s"); done
cd /workspace; loot tried
""",
    "new-skills": f"mkdir -p .agents/skills/work; echo x > .agents/skills/work/SKILL.md; {DONE}",
    "new-opencode": f"mkdir -p .opencode/skills/work; echo x > .opencode/skills/work/SKILL.md; {DONE}",
    "linked-skills": f"mkdir -p d/skills/work; echo x > d/skills/work/SKILL.md; ln -s d .agents; {DONE}",
    "git": f"{GIT}{DONE}",
    "git-file": f"rm -rf .git; mkdir /tmp/g; echo 'gitdir: /tmp/g' > .git; {DONE}",
    "git-link": f"mv .git /tmp/g; ln -s /tmp/g .git; {DONE}",
    "attributes": f"""mkdir new; echo f > new/f; {python("/tmp/x.py", ATTRIBUTES)}python3 /tmp/x.py >> loot.txt
mknod wh c 0 0 2>/dev/null && loot whiteout; mknod box/w c 0 0 2>/dev/null && loot whiteout; {DONE}""",
    "closed": f"mkdir d; echo evil > d/conftest.py; chmod 000 d; {DONE}",
    "closed-old": f"echo evil > box/x; chmod 300 box; {DONE}",
    "odd": f"""mkdir -p m/n/o; echo f > m/n/o/f; cp /bin/true m/su; chmod 6755 m/su; mkfifo m/p; chmod 0 m/n/o/f
mkdir st; chmod 1777 st
python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('m/s')"; echo x > st/x
printf x > "$(printf 'line\\nbreak')"; printf x > '-rf'; printf x > 'M 100644 inline x'; chmod 500 m/n/o m/n m
{DONE}""",
}

TASKS = CASES.replace("  timeout:", f"  setup: {json.dumps(SETUP)}\n  timeout:")

RAIDERS = Raiders(
    scripts={name: f"{text}\nexit 0\n" for name, text in SCRIPTS.items()},
    files={"cases/tiny.cases.yaml": TASKS},
    environment={"WFBENCH_CACHE_DIR": "{path}/cache"},
)


@pytest.fixture
def done(raid: Callable[[str, Raiders], Raid]) -> Raid:
    return raid("write", RAIDERS)


def changed(done: Raid, script: str) -> set[str]:
    """The files of which the harness's patch speaks."""
    lines = done.artifact(script, "patch.diff").splitlines()
    return {line.rpartition(" b/")[2] for line in lines if line.startswith("diff --git ")}


class TestOutside:
    def test_all_ran(self, done: Raid) -> None:
        """No script made its cell unusable."""
        rows = done.rows()
        assert set(rows) == set(SCRIPTS)
        assert {name: row["kind"] for name, row in rows.items() if row["outcome"] == "unusable"} == {}

    def test_mounts(self, done: Raid) -> None:
        """Nothing can be mounted, remounted, unmounted or entered, no device made, no identity or clock changed."""
        assert done.loot("mounts") == ["called", "tried"]

    def test_system(self, done: Raid) -> None:
        """Neither kernel settings nor system files, devices, runtime or init can be written, moved or linked."""
        assert done.loot("system") == ["tried"]

    def test_template_and_start(self, done: Raid) -> None:
        """A later cell starts from what the first one did, whatever that wrote through handles and hard links."""
        assert {"made.txt", "made-twin.txt", "twin.txt"} <= changed(done, "scrawl")
        assert done.loot("after") == []
        assert done.rows()["after"]["outcome"] == "pass"
        trees = list((done.path / "cache").glob("shelves-*/templates/*/tree"))
        assert len(trees) == 1
        (tree,) = trees
        for name in ("a.txt", ".claude/skills/work/SKILL.md"):
            assert (tree / name).read_text() == FILES[f"cases/tiny/{name}"]
        (made,) = (done.path / "cache").glob("shelves-*/starts/*/upper/made.txt")
        assert made.read_text() == "setup\n"

    def test_cleaned_up(self, done: Raid) -> None:
        """No cell's files are left, whatever modes and names they had."""
        (cells,) = (done.path / "cache").glob("cells*")
        assert list(cells.iterdir()) == []

    def test_host(self, done: Raid) -> None:
        """The suite's own files are as they were, and nobody ran what lay in wait."""
        assert (done.path / "cases/tiny/a.txt").read_text() == "open\n"
        assert list(done.path.rglob("ran")) == []


class TestSkills:
    def test_sealed(self, done: Raid) -> None:
        """Skills can be neither written, moved, linked nor covered; trying is no fault."""
        assert done.loot("skills") == ["tried", *FILES["cases/tiny/.claude/skills/work/SKILL.md"].splitlines()]
        assert done.rows()["skills"]["outcome"] == "pass"

    def test_of_the_user(self, done: Raid) -> None:
        """The directories of skills in an agent's home are empty, and stay so, whatever is done to their parents."""
        assert done.loot("user-skills") == ["tried"]

    @pytest.mark.parametrize("script", ["new-skills", "new-opencode", "linked-skills"])
    def test_new_ones(self, done: Raid, script: str) -> None:
        """Skills that an agent adds, in any directory where an agent looks for them, make its cell a miss."""
        row = done.rows()[script]
        assert (row["outcome"], row["kind"], row["resolved"]) == ("miss", "skill-changed", False)
        assert row["oracle_passed"] is True


class TestChurn:
    def test_settings_of_git(self, done: Raid) -> None:
        """No setting, hook, attribute, index or submodule of the workspace runs or hides anything."""
        row = done.rows()["git"]
        assert changed(done, "git") == {"a.txt", ".gitattributes", ".gitmodules", ".lie", "sub/evil.py"}
        assert "-open\n+done\n" in done.artifact("git", "patch.diff")
        assert (row["outcome"], row["head_commit"]) == ("pass", None)

    @pytest.mark.parametrize("script", ["git-file", "git-link"])
    def test_no_directory_of_git(self, done: Raid, script: str) -> None:
        """A .git that is a file or a link is not followed."""
        row = done.rows()[script]
        assert (changed(done, script), row["head_commit"], row["outcome"]) == ({"a.txt"}, None, "pass")

    def test_attributes_of_overlays(self, done: Raid) -> None:
        """Overlay attributes that an agent sets neither hide files nor invent changes; whiteouts cannot be planted."""
        assert done.loot("attributes") == ["set all"]
        assert changed(done, "attributes") - {LOOT} == {"a.txt", "new/f"}
        assert done.rows()["attributes"]["outcome"] == "pass"

    @pytest.mark.parametrize("script", ["closed", "closed-old"])
    def test_closed_directories(self, done: Raid, script: str) -> None:
        """What lies in a directory that cannot be read is not passed over: the cell is a miss."""
        row = done.rows()[script]
        assert (row["outcome"], row["kind"]) == ("miss", "no-work-produced")
        assert "Permission denied" in row["reason"]

    def test_odd_files(self, done: Raid) -> None:
        """Set-uid files, pipes, sockets, sticky directories and names like options are counted or passed over."""
        row = done.rows()["odd"]
        assert row["churn"]["files"] == 7
        assert row["outcome"] == "pass"
