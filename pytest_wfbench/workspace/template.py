"""A template: the self-contained snapshot of a repository that every workspace of a task is laid over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from pytest_wfbench.digests import digest_value
from pytest_wfbench.sandbox.identity import Identity
from pytest_wfbench.sandbox.removal import remove_tree
from pytest_wfbench.sandbox.spec import WORKSPACE, Bind, Bounds, Command, Data, Sandbox
from pytest_wfbench.workspace import fastimport
from pytest_wfbench.workspace.capture import Entry, capture, digest
from pytest_wfbench.workspace.git import GitFailed, run_git
from pytest_wfbench.workspace.hiding import Hiding
from pytest_wfbench.workspace.repository import Bundle, Commit, Directory, RepositoryProblem, Source
from pytest_wfbench.workspace.shelf import fetch

RULES = 2
_PACKS = "/run/wfbench/packs"
_CONFIG = "/run/wfbench/config"
_TIMEOUT = 600.0
_LARGEST_FILE = 8 << 30
_GITLINK = b"160000"
_GIT_CONFIG = b"""[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tcheckStat = minimal
\ttrustctime = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
[user]
\tname = agent
\temail = agent@localhost
"""

# The dates of all files lie well before the index's: git would read a file again whose date is the index's own.
_POPULATE = r"""set -eu
git init --quiet --initial-branch=main --template= .
cp "$PACKS"/*.pack "$PACKS"/*.idx .git/objects/pack/
cat "$CONFIG" > .git/config
mkdir .git/info
printf '%s' "$ATTRIBUTES" > .git/info/attributes
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.logAllRefUpdates GIT_CONFIG_VALUE_0=false
git update-ref refs/heads/main "$COMMIT"
git read-tree HEAD
git checkout-index --all --force --quiet
find . -path ./.git -prune -o -exec touch --no-dereference --date=@1000000000 {} +
git update-index -q --refresh
rm .git/info/attributes
rmdir .git/info
"""

_PROVE = r"""set -eu
fail() { echo "$1" >&2; exit 1; }
test "$(git rev-list --parents --all)" = "$COMMIT" || fail "HEAD has parents"
test "$(git for-each-ref --format='%(refname)')" = refs/heads/main || fail "there are other references"
test "$BASE" = "$COMMIT" || ! git cat-file -e "$BASE" 2>/dev/null || fail "the original commit can be read"
test -z "$(git fsck --full --unreachable --no-progress 2>/dev/null)" || fail "there are unreachable objects"
test -z "$(git remote)" || fail "there is a remote"
test ! -e .git/objects/info/alternates || fail "there are alternates"
test ! -e .git/logs || fail "there is a reflog"
test -z "$(find . -type f -links +1)" || fail "there are hard links"
printf '%s\n' "$PRIVATE" | while IFS= read -r path; do
  test -z "$path" || test ! -e "$path" -a ! -L "$path" || fail "a private path is there"
done
"""


@dataclass(frozen=True)
class Template:
    """A published snapshot: ``path`` is its tree, ``base_commit`` the commit it was taken from, if it was one.

    ``beside`` is mounted read-only in every sandbox that sees it, ``beside_digest`` tells its content; none without.
    """

    path: Path
    digest: str
    snapshot_commit: str
    base_commit: str | None
    beside: tuple[Bind, ...] = ()
    beside_digest: str | None = None


class TemplateUnproven(Exception):
    """A snapshot does not keep what it promises, so it was not published; the message says what."""


class _Record(BaseModel):
    digest: str
    snapshot_commit: str
    base_commit: str | None


def make_template(
    source: Source,
    private: tuple[str, ...],
    cache: Path,
    sandbox: Sandbox,
    identity: Identity,
    apart: tuple[str, ...] = (),
) -> Template:
    """Return the template of a source without its private paths and those apart, made at most once for the cache.

    Reading a plain directory costs as much as its bytes every time, so call this once for a task, not for each cell.

    Raises:
        RepositoryProblem: when the source cannot be read; with the remedy.
        TemplateUnproven: when the snapshot failed its proof.
    """
    entries = capture(source) if isinstance(source, Directory) else ()
    origin = digest(entries) if isinstance(source, Directory) else source.commit
    bound = digest_value([RULES, origin, sorted((*private, *apart))])
    hidden = Hiding(private, apart)

    def make(staged: Path) -> _Record:
        try:
            commit = _import(source, entries, hidden, staged)
        except GitFailed as error:
            raise RepositoryProblem(f"{source.path}: cannot be read: is the clone complete? ({error})") from error
        base = None if isinstance(source, Directory) else source.commit
        _populate(staged, commit, base, (*private, *apart), sandbox, identity)
        for used in ("import.git", "packs"):
            remove_tree(staged / used)
        return _Record(digest=bound, snapshot_commit=commit, base_commit=base)

    place, record = fetch(cache / "templates", bound.removeprefix("sha256:")[:32], _Record, make)
    return Template(place / "tree", record.digest, record.snapshot_commit, record.base_commit)


def _import(source: Source, entries: tuple[Entry, ...], hidden: Hiding, staged: Path) -> str:
    """Write the snapshot as a pack below ``staged`` and return its commit."""
    objects = source.objects if isinstance(source, Commit) else Path("/nonexistent")
    git_dir = Path(fastimport.bare_directory(str(staged / "import.git"), str(objects)))
    if isinstance(source, Bundle):
        run_git(git_dir, "bundle", "unbundle", str(source.path))
    if isinstance(source, Directory):
        words = _of_directory(source, entries, hidden)
    else:
        words = _of_commit(source, git_dir, hidden)
    stream = [fastimport.commit_header(b"refs/heads/main", None, b"snapshot"), *words, b"\ndone\n"]
    run_git(git_dir, "fast-import", "--quiet", "--done", stdin=b"".join(stream))
    commit = run_git(git_dir, "rev-parse", "--verify", "refs/heads/main").decode().strip()
    packs = staged / "packs"
    packs.mkdir(mode=0o755)
    run_git(git_dir, "pack-objects", "--revs", "--quiet", str(packs / "pack"), stdin=commit.encode() + b"\n")
    for path in packs.iterdir():
        path.chmod(0o444)
    return commit


def _of_directory(source: Directory, entries: tuple[Entry, ...], hidden: Hiding) -> Iterator[bytes]:
    hidden.refuse_copies(source.path, [(entry.path, entry.data) for entry in entries if not entry.is_link], len)
    for entry in entries:
        if not hidden.hides(entry.path):
            yield fastimport.inline_entry(entry.path, entry.mode, entry.data)


def _of_commit(source: Commit | Bundle, git_dir: Path, hidden: Hiding) -> Iterator[bytes]:
    files = []
    for line in run_git(git_dir, "ls-tree", "-r", "-z", "--full-tree", source.commit).split(b"\0")[:-1]:
        description, path = line.split(b"\t", 1)
        mode, _, name = description.split(b" ")
        files.append((mode, name, path))
    regular = [(path, name) for mode, name, path in files if mode.startswith(b"100")]
    hidden.refuse_copies(source.path, regular, lambda name: int(run_git(git_dir, "cat-file", "-s", name.decode())))
    for mode, name, path in files:
        if b".git" in path.lower().split(b"/"):
            raise RepositoryProblem(f"{source.path}: the commit has a path named .git: it is not safe to check out")
        if mode != _GITLINK and not hidden.hides(path):
            yield fastimport.object_entry(path, mode, name)


def _populate(
    staged: Path, commit: str, base: str | None, private: tuple[str, ...], sandbox: Sandbox, identity: Identity
) -> None:
    """Check the snapshot out and prove it, in a sandbox: the files then belong to whom later sandboxes run as."""
    tree = staged / "tree"
    tree.mkdir(mode=0o755)
    identity.own(tree)
    env = {
        **fastimport.PINNED, "COMMIT": commit, "BASE": base or commit, "PRIVATE": "\n".join(private), "PACKS": _PACKS,
        "CONFIG": _CONFIG, "ATTRIBUTES": fastimport.ATTRIBUTES.decode(),
    }  # fmt: skip
    given = (Bind(staged / "packs", _PACKS), Data(_CONFIG, _GIT_CONFIG))
    for script, mounts in (
        (_POPULATE, (Bind(tree, WORKSPACE, writable=True), *given)),
        (_PROVE, (Bind(tree, WORKSPACE),)),
    ):
        command = Command(
            ("/bin/bash", "-c", script), mounts, _TIMEOUT, env=env, bounds=Bounds(file_size=_LARGEST_FILE)
        )
        ended = sandbox.run(command)
        if not ended.ok:
            raise TemplateUnproven(f"the snapshot failed: {ended.stderr.decode(errors='replace').strip()[-500:]}")
