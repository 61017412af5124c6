"""A real MCP server by the official SDK: one tool that reads a file, one that tries to write, one that looks around."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("shelf")


@server.tool()
def read(name: str) -> str:
    return Path(name).read_text()


@server.tool()
def write(name: str) -> str:
    try:
        Path(name).write_text("changed\n")
    except OSError as error:
        return str(error.strerror)
    return "written"


@server.tool()
def around() -> str:
    interfaces = [name for _, name in socket.if_nameindex()]
    keys = [name for name in os.environ if "KEY" in name or "TOKEN" in name]
    gateway = Path("/run/wfbench/gateway.sock").exists()
    return f"{interfaces} {keys} {gateway} {os.getuid()} {os.environ.get('SHELF')}"


if __name__ == "__main__":
    server.run()
