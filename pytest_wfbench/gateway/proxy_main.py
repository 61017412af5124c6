"""LiteLLM's process: takes its secrets from standard input and serves on a unix socket until that input ends."""

from __future__ import annotations

import json
import os
import sys
import threading

import uvicorn

from pytest_wfbench.gateway.death import die_with


def _watch_parent() -> None:
    """End with the pipe: nobody else holds its other end."""
    sys.stdin.buffer.read()
    os._exit(0)


def main() -> None:
    """Read one line of JSON (``environment``, ``socket``, ``parent``), then serve."""
    told = json.loads(sys.stdin.buffer.readline())
    die_with(told["parent"])
    # Set here, not by exec: what is passed at exec can be read in /proc/PID/environ.
    os.environ.update(told["environment"])
    threading.Thread(target=_watch_parent, daemon=True).start()
    uvicorn.run("litellm.proxy.proxy_server:app", uds=told["socket"], log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
