"""LiteLLM's process: takes its secrets from standard input and serves on a unix socket until that input ends."""

from __future__ import annotations

import gc
import json
import os

import uvicorn

from pytest_wfbench.gateway.death import die_with, first_line, when_input_ends


def main() -> None:
    """Read one line of JSON (``environment``, ``socket``, ``parent``), then serve."""
    told = json.loads(first_line())
    die_with(told["parent"])
    # Set here, not by exec: what is passed at exec can be read in /proc/PID/environ.
    os.environ.update(told["environment"])
    when_input_ends(lambda: None, 0)
    config = uvicorn.Config("litellm.proxy.proxy_server:app", uds=told["socket"], log_level="warning", access_log=False)
    _load(config)
    uvicorn.Server(config).run()


def _load(config: uvicorn.Config) -> None:
    """Import LiteLLM with the collector at rest: nothing of it is garbage, and looking costs a third of the start."""
    gc.disable()
    config.load()
    gc.freeze()
    gc.enable()


if __name__ == "__main__":
    main()
