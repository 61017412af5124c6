"""Any program that reads a prompt on standard input and edits the working directory. It has no model."""

from __future__ import annotations

from pathlib import Path

from pytest_wfbench.agents.base import AgentUnavailable, Invocation, Runtime, SessionInput, SkillSupport, Traits
from pytest_wfbench.agents.events import read_events, seal
from pytest_wfbench.agents.skill_files import prompt_with_file, with_skill_uses
from pytest_wfbench.agents.stream import Final, StreamEvent, Transcript
from pytest_wfbench.digests import digest_bytes
from pytest_wfbench.files import UnsafeFile, read_untrusted
from pytest_wfbench.sandbox.spec import Data

TARGET = "/opt/wfbench/command"
SCRIPT_LIMIT = 4 << 20
EVENTS_FD = "WFBENCH_EVENTS_FD"

# Standard output is what the parent captures: it becomes the descriptor of events, and what the script prints goes to
# standard error, so that a script that knows nothing of events cannot break the stream by printing.
_WRAPPER = 'exec 3>&1 1>&2; exec "$0"'
_FIND = (
    'for name in "$0" "$@"; do command -v -- "$name" || { echo "$name: not found in the sandbox" >&2; exit 127; }; done'
)


class CommandAgent:
    """A script or binary, captured when the sweep starts and executed by its own first line."""

    name = "command"
    uses_model = False
    skills: SkillSupport = "file"
    # It keeps what it likes in its home.
    traits = Traits(converses=True)

    def find(self, model: str, directory: Path) -> Runtime:
        """Read the program; a relative path starts at ``directory``, links are followed.

        A program that never names ``WFBENCH_EVENTS_FD`` reports no events, which the runtime says.

        Raises:
            AgentUnavailable: for anything but a readable regular file of at most 4 MiB with a ``#!`` line or ELF.
        """
        path = (directory / model).resolve()
        try:
            data = read_untrusted(path.parent, path.name, SCRIPT_LIMIT)
        except (OSError, UnsafeFile) as error:
            raise AgentUnavailable(
                f"command:{model} cannot be read ({error}); name a script from {directory}"
            ) from error
        if not data.startswith((b"#!", b"\x7fELF")):
            raise AgentUnavailable(f"command:{model} has no interpreter; begin it with a line like #!/bin/sh")
        mount = Data(target=TARGET, data=data, mode=0o555)
        version = f"{path.name} {digest_bytes(data)}"
        reports = EVENTS_FD.encode() in data
        return Runtime(version=version, mounts=(mount,), reports_events=reports, trial=_trial(data))

    def invocation(self, session: SessionInput) -> Invocation:
        """Start it behind the three words of shell that give it a descriptor for events."""
        return Invocation(
            argv=("/bin/sh", "-c", _WRAPPER, TARGET),
            env={EVENTS_FD: "3"},
            stdin=prompt_with_file(session.prompt, session.skill).encode("utf-8", "replace"),
        )

    def read(self, stdout: bytes, exit_status: int | None) -> Transcript:
        """Read the events it chose to report; where it reports no end, its exit status is all there is."""
        events, fault = read_events(stdout)
        ended = any(isinstance(event, Final) for event in events)
        if not ended and exit_status is not None:
            events.append(_end(exit_status))
        return seal(with_skill_uses(events), fault, exit_status)


def _trial(data: bytes) -> tuple[str, ...]:
    """Look for what the first line names; nothing of the program itself is started."""
    words = data.partition(b"\n")[0].removeprefix(b"#!").decode(errors="replace").split()
    if data.startswith(b"\x7fELF") or not words:
        return ()
    through_env = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    named = through_env[:1] if words[0].endswith("/env") else []
    return ("/bin/sh", "-c", _FIND, words[0], *named)


def _end(exit_status: int) -> StreamEvent:
    if exit_status == 0:
        return Final(status="ok")
    return Final(status="error", error=f"exit status {exit_status}")
