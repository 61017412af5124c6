"""Runs ``python3 -m ledger`` again and again, each time in a fork of an interpreter that has loaded the standard
library but nothing of the candidate: half the time of a command is the start of the interpreter.

It lives on the candidate's side: it knows no expectation, and whatever it says is judged like the command's output.
Its source is handed to ``python3 -c``, so that it does not know where the oracle lies either. A line on stdin is the
arguments of a command as JSON; the answer on stdout is the exit status on a line of its own. What the command prints
goes to the file that is open as the descriptor named by the first argument, and to stderr.
"""

import argparse
import calendar
import contextlib
import csv
import dataclasses
import datetime
import decimal
import enum
import gc
import json
import os
import pathlib
import runpy
import signal
import sys
import typing

LOADED = (argparse, calendar, csv, dataclasses, datetime, decimal, enum, json, pathlib, typing)
OUTPUT, SECONDS = int(sys.argv[1]), int(sys.argv[2])

gc.freeze()
for request in sys.stdin:
    command = os.fork()
    if not command:
        os.setsid()
        signal.alarm(SECONDS)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(OUTPUT, 1)
        os.close(OUTPUT)
        sys.argv = ["ledger", *json.loads(request)]
        sys.path.insert(0, os.getcwd())
        runpy.run_module("ledger", run_name="__main__", alter_sys=True)
        sys.exit()
    _, status = os.waitpid(command, 0)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(command, signal.SIGKILL)
    os.write(1, b"%d\n" % os.waitstatus_to_exitcode(status))
