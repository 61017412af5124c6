"""The program that leads a conversation inside the sandbox: the agent is started once for each of its prompts.

Its arguments are the agent's command lines, each behind the number of its words. Its standard input holds, marshalled,
the mark that ends what one of them wrote, and what each is given on its own standard input.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import subprocess
import sys
from collections.abc import Iterator

PR_SET_DUMPABLE = 4


def hide() -> None:
    """Close this process to others: the mark is its secret, and its standard output the road to the parent."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot close this process to others")


def command_lines(words: list[str]) -> Iterator[list[str]]:
    """Yield the command lines."""
    while words:
        count = int(words[0])
        yield words[1 : count + 1]
        words = words[count + 1 :]


def main() -> int:
    """Start one after the other, until one fails; return how the last one ended."""
    hide()
    mark, inputs = marshal.loads(sys.stdin.buffer.read())
    status = 0
    for argv, given in zip(command_lines(sys.argv[1:]), inputs, strict=True):
        with subprocess.Popen(argv, stdin=subprocess.PIPE) as child:
            child.communicate(given)
        status = child.returncode if child.returncode >= 0 else 128 - child.returncode
        line = b"\n" + mark + b" %d\n" % status
        while line:
            line = line[os.write(1, line) :]
        if status:
            break
    return status


if __name__ == "__main__":
    sys.exit(main())
