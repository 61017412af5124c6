"""Runs inside a sandbox: looks for any way out, and prints a line for each that it finds. Standard library only."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import socket
import stat
import struct
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

FAMILIES = {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK}
IO_URING_SETUP = 425


def found(what: str) -> None:
    print(f"FOUND {what}", flush=True)


def attempt(what: str, deed: Callable[[], object]) -> None:
    with contextlib.suppress(OSError, ValueError):
        deed()
        found(what)


def opened(family: int, kind: int, protocol: int = 0) -> None:
    socket.socket(family, kind, protocol).close()


def connect(family: int, address: Any, kind: int = socket.SOCK_STREAM) -> None:
    with socket.socket(family, kind) as client:
        client.settimeout(1)
        client.connect(address)
        if kind == socket.SOCK_DGRAM:
            client.send(b"x")


def listed(path: str) -> list[str]:
    """Lines of a table of the kernel; a hidden command has none."""
    with contextlib.suppress(OSError):
        return Path(path).read_text().splitlines()[1:]
    return []


def interfaces() -> None:
    for _, name in socket.if_nameindex():
        if name != "lo":
            found(f"interface {name}")
    for line in listed("/proc/net/route"):
        found(f"route {line}")


def families() -> None:
    for family in set(range(1, 60)) - FAMILIES:
        for kind in (1, 2, 3, 4, 5, 10):
            attempt(
                f"socket family {family} type {kind}",
                partial(opened, family, kind),
            )
    for family in (socket.AF_INET, socket.AF_INET6):
        attempt(f"raw socket {family}", partial(opened, family, socket.SOCK_RAW, 1))
    if ctypes.CDLL(None).syscall(IO_URING_SETUP, 8, ctypes.create_string_buffer(256)) >= 0:
        found("io_uring")


def new_interface() -> None:
    """Ask the kernel over netlink for an interface of one's own."""
    name = b"wf0\0"
    attribute = struct.pack("HH", 4 + len(name), 3) + name
    link = struct.pack("HH", 4 + 9, 18) + struct.pack("HH", 9, 1) + b"dummy\0\0\0"
    body = struct.pack("BxHiII", 0, 0, 0, 0, 0) + attribute + link
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        kernel.settimeout(1)
        kernel.send(struct.pack("IHHII", 16 + len(body), 16, 0x605, 1, 0) + body)
        answer = kernel.recv(4096)
        if struct.unpack_from("i", answer, 16)[0] == 0:
            found("netlink makes interfaces")


def sockets() -> Iterator[str]:
    for root in ("/run", "/var", "/tmp", "/home", "/dev", "/workspace"):
        for place, _, names in os.walk(root):
            for name in names:
                path = f"{place}/{name}"
                with contextlib.suppress(OSError):
                    if stat.S_ISSOCK(os.lstat(path).st_mode):
                        yield path
    yield from (
        "/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock",
        "/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket", "/run/systemd/private", "/run/systemd/notify",
        "/tmp/.X11-unix/X0", "/run/user/0/bus", "/run/user/1000/bus", "/run/snapd.socket", "/var/run/nscd/socket",
        "/run/wfbench/gateway.sock", "/dev/log",
    )  # fmt: skip


def main(told: dict[str, list[object]]) -> None:
    interfaces()
    families()
    with contextlib.suppress(OSError):
        new_interface()
    for host in (*told["hosts"], *told["away"], "127.0.0.1", "127.1.2.3", "0.0.0.0", "::1"):
        family = socket.AF_INET6 if ":" in str(host) else socket.AF_INET
        for port in (*told["ports"], 22, 53, 80, 4000):
            attempt(f"tcp {host} {port}", partial(connect, family, (host, port)))
        if str(host) in told["hosts"] and not str(host).startswith("127."):
            attempt(f"udp {host}", partial(connect, family, (host, told["ports"][0]), socket.SOCK_DGRAM))
    for name in told["names"]:
        attempt(f"name {name}", partial(socket.getaddrinfo, str(name), 80))
    for path in sockets():
        attempt(f"unix {path}", partial(connect, socket.AF_UNIX, path))
    for line in listed("/proc/net/unix"):
        if "@" in line:
            found(f"abstract {line}")
    for name in told["abstract"]:
        attempt(f"abstract {name}", partial(connect, socket.AF_UNIX, f"\0{name}"))
    for name, value in os.environ.items():
        if "SOCK" in name or "DISPLAY" in name or "DBUS" in name or "proxy" in name.lower():
            found(f"variable {name}={value}")
    for device in Path("/dev").iterdir():
        if device.name in ("vsock", "vhost-vsock", "net", "kvm", "vhost-net", "tap0", "mem", "kmsg"):
            found(f"device {device}")
    print("DONE", flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
