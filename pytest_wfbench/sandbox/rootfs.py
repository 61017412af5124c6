"""What every sandbox sees of the host, and the environment its commands start with. Nothing else is visible."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path

from pytest_wfbench.sandbox.interpreter import Interpreter
from pytest_wfbench.sandbox.limits import SMALL_SIZE, home_size, temp_size
from pytest_wfbench.sandbox.spec import HOME, Bind, Bounds, Data, Mount, Tmpfs

UID = 1000
_ROOT = Path("/")
_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = (
    "alternatives", "ca-certificates.conf", "crypto-policies", "ld.so.cache", "ld.so.conf", "ld.so.conf.d",
    "mime.types", "pki/ca-trust/extracted", "pki/tls/cert.pem", "pki/tls/certs", "protocols", "services", "ssl/certs",
    "ssl/openssl.cnf",
)  # fmt: skip
_PASSWD = f"root:x:0:0:root:/nonexistent:/usr/sbin/nologin\nagent:x:{UID}:{UID}:agent:{HOME}:/bin/bash\n"
_GENERATED = {
    "/etc/passwd": _PASSWD + "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "/etc/group": f"root:x:0:\nagent:x:{UID}:\nnogroup:x:65534:\n",
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n",
    "/etc/resolv.conf": "",
    "/etc/hostname": "sandbox\n",
}


@cache
def system_links() -> tuple[tuple[str, str], ...]:
    """Return (target, path) of the links beside ``/usr``, as on the host, and of two in ``/etc``."""
    places = [_ROOT / name for name in _SYSTEM]
    links = [(str(place.readlink()), str(place)) for place in places if place.is_symlink()]
    return (*links, ("/usr/share/zoneinfo/UTC", "/etc/localtime"), ("../usr/lib/os-release", "/etc/os-release"))


def shown_directories(interpreter: Interpreter) -> tuple[Path, ...]:
    """Return the host's directories that every sandbox can read whole."""
    places = [_ROOT / name for name in ("usr", *_SYSTEM)]
    return (*(place for place in places if place.is_dir() and not place.is_symlink()), *interpreter.directories)


@lru_cache(maxsize=16)
def system_mounts(interpreter: Interpreter, bounds: Bounds) -> tuple[Mount, ...]:
    """Return what lies below every command's own mounts: system and runtime read-only, private writable places."""
    places = [_ROOT / name for name in ("usr", *_SYSTEM)]
    system = [Bind(place, str(place)) for place in places if place.is_dir() and not place.is_symlink()]
    named = [Bind(place, str(place)) for place in (_ROOT / "etc" / name for name in _ETC) if place.exists()]
    written = [Data(path, text.encode()) for path, text in _GENERATED.items()]
    private = [
        Tmpfs("/tmp", temp_size(bounds)),
        Tmpfs("/run", SMALL_SIZE),
        Tmpfs(HOME, home_size(bounds)),
        Tmpfs("/dev/shm", SMALL_SIZE),
    ]
    runtime = [Bind(path, str(path)) for path in interpreter.directories]
    return (*system, *named, *written, *private, *runtime)


def environment(interpreter: Interpreter, added: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the whole environment of a command: nothing is inherited, so that no verdict depends on the host."""
    system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    pinned = {
        "PATH": f"{interpreter.scripts}:{system}",
        "HOME": HOME,
        "USER": "agent",
        "LOGNAME": "agent",
        "SHELL": "/bin/bash",
        "TMPDIR": "/tmp",
        "TZ": "UTC",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        # A pytest that verify or an oracle starts is not to be a sweep of its own, nor to need this package.
        "PYTEST_ADDOPTS": "-p no:wfbench",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }
    return tuple((pinned | dict(added)).items())
