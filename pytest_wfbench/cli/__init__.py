"""The ``wfbench`` command. One module a verb, each with a ``command``; none is imported before it is asked for."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from collections.abc import Sequence

import click

from pytest_wfbench.cli._exit import INTERRUPTED, USAGE_ERROR, CliError

__all__ = ["main", "wfbench"]

LONGEST_LINE = 20_000


class Verbs(click.Group):
    """The verbs are the modules beside this one: a new file is a new verb. A leading underscore hides a module."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all verbs, sorted."""
        names = (module.name for module in pkgutil.iter_modules(__path__))
        return sorted(name.replace("_", "-") for name in names if not name.startswith("_"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one verb, or return none where there is no such verb."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"{__name__}.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pytest-wfbench", prog_name="wfbench")
def wfbench() -> None:
    """Read, check and judge evidence of pytest-wfbench sweeps.

    Exit status: 0 clean, 1 a check or gate failed, 2 interrupted, 4 usage error, 5 nothing to decide.
    """


def main(argv: Sequence[str] | None = None) -> int:
    """Run a verb and return its exit status; every error is one line on stderr with its remedy."""
    try:
        result = wfbench.main(None if argv is None else list(argv), prog_name="wfbench", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else str(error), err=True)
        return USAGE_ERROR
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "wfbench"
        return _fail(f"{error.format_message()} See {where} --help", USAGE_ERROR)
    except CliError as error:
        return _fail(str(error), error.status)
    except click.ClickException as error:
        return _fail(error.format_message(), USAGE_ERROR)
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # The reader has all it wanted; nothing more may be written, not even at interpreter exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return result if isinstance(result, int) else 0


def _fail(message: str, status: int) -> int:
    from pytest_wfbench.report.escape import one_line

    lines = (one_line(line, LONGEST_LINE) for line in message.splitlines())
    click.echo("wfbench: " + "\n".join(line for line in lines if line), err=True)
    return status
