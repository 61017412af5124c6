"""What to do where bubblewrap cannot start, by what it said."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from pytest_wfbench.sandbox.identity import UID_VARIABLE, Identity
from pytest_wfbench.sandbox.staging import STAGE, plan_staging

HOST = "or use --wfbench-sandbox=host, which is no boundary"
PROFILE = "wfbench-bwrap"
# What means something to AppArmor in a path between quotes.
_SPECIAL = re.compile(r'[\\"*?\[\]{}^]')


def host_remedy(message: str, identity: Identity) -> str:
    """Return what to do where nothing can be started even without namespaces."""
    starting = (_unmapped, _unstaged)
    remedy = next((found for words, found in _REMEDIES if found in starting and any(w in message for w in words)), None)
    return remedy(Path(), identity) if remedy else "run `wfbench doctor`, and report what it says"


def namespace_remedy(message: str, binary: Path, identity: Identity) -> str:
    """Return what to do where the bubblewrap ``binary``, started as ``identity``, fails with a message."""
    for words, remedy in _REMEDIES:
        if any(word in message for word in words):
            return f"{remedy(binary, identity)}, {HOST}"
    return f"{_refused(binary, identity)}, {HOST}"


def apparmor_profile(binary: Path, identity: Identity) -> str:
    """Return a profile that lets one bubblewrap make user namespaces, by the path that it is executed at."""
    return f'abi <abi/4.0>,\nprofile {PROFILE} "{_attachment(binary, identity)}" flags=(unconfined) {{\n  userns,\n}}\n'


def _attachment(binary: Path, identity: Identity) -> str:
    """Where the sandbox's uid cannot reach a program, it is executed at one of the numbered places of the stage."""
    placed = plan_staging([binary], identity).place(binary)
    if not placed.is_relative_to(STAGE):
        return _literal(str(placed))
    below = Path(*placed.relative_to(STAGE).parts[1:])
    return f"{_literal(str(STAGE))}/*" + (f"/{_literal(str(below))}" if below.parts else "")


def _literal(path: str) -> str:
    return _SPECIAL.sub(lambda found: "\\" + found[0], path)


def _apparmor(binary: Path, identity: Identity) -> str:
    place = f"/etc/apparmor.d/{PROFILE}"
    return (
        f"AppArmor forbids user namespaces to this program. Put this into {place} and run "
        f"`apparmor_parser -r {place}`:\n{apparmor_profile(binary, identity)}"
        "or, for every program, `sysctl kernel.apparmor_restrict_unprivileged_userns=0`"
    )


def _none_left(binary: Path, identity: Identity) -> str:
    return (
        "no more user namespaces are allowed here: `sysctl user.max_user_namespaces=10000`, and the same of every "
        "namespace that this one lies in; a container may have none of its own to give"
    )


def _masked_proc(binary: Path, identity: Identity) -> str:
    return "the container masks /proc: start it with `--security-opt systempaths=unconfined`"


def _unmapped(binary: Path, identity: Identity) -> str:
    return (
        f"uid {identity.uid} does not exist in this user namespace: run pytest as an ordinary user, name a uid that "
        f"does in {UID_VARIABLE}, or give the container more of them"
    )


def _unstaged(binary: Path, identity: Identity) -> str:
    return (
        "root has no right to mount here, and some of what a sandbox needs lies below a directory that only root can "
        "enter: run pytest as an ordinary user, or put interpreter, virtual environment and suite where everybody can "
        "read; a container that is to allow both mounts and namespaces needs `--cap-add SYS_ADMIN --security-opt "
        "seccomp=unconfined`"
    )


def _refused(binary: Path, identity: Identity) -> str:
    return (
        "allow user namespaces (`sysctl user.max_user_namespaces=10000`, on Debian also "
        "`kernel.unprivileged_userns_clone=1`; in a container `--security-opt seccomp=unconfined`)"
    )


_REMEDIES: tuple[tuple[tuple[str, ...], Callable[[Path, Identity], str]], ...] = (
    (("uid map: Permission denied", "RTM_NEWADDR"), _apparmor),
    (("_namespaces exceeded", "ENOSPC", "No space left"), _none_left),
    (("Can't mount proc",), _masked_proc),
    (("setpriv: setres", "setpriv: setgroups"), _unmapped),
    (("unshare: ",), _unstaged),
)
