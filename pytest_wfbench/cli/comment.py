"""``wfbench comment``: the pull-request comment of a results directory, made again, and posted where asked."""

from __future__ import annotations

import os
from pathlib import Path

import click

from pytest_wfbench.cli._exit import FAILED, CliError, usage_errors
from pytest_wfbench.cli._results import derived, directory_argument, show, writing
from pytest_wfbench.derive import Derived, append_summary, write_comment

DONE = {
    "posted": "posted a comment",
    "updated": "updated the comment",
    "unchanged": "the comment is up to date",
    "newer": "a later run's comment stands; nothing was written",
}


@click.command("comment")
@directory_argument
@click.option("--key", help="Which comment of a pull request is updated in place.  [default: the CI workflow's name]")
@click.option("--post", "to_post", is_flag=True, help="Post it to the pull request of this CI job, or update it there.")
@click.option("--summary", is_flag=True, help="Append it to $GITHUB_STEP_SUMMARY, as a sweep does that ends by itself.")
@click.option("--repo", metavar="OWNER/NAME", help="Repository (GitLab: project).  [default: this CI job's]")
@click.option("--pr", "number", type=click.IntRange(1), metavar="N", help="Pull request.  [default: this CI job's]")
def command(
    directory: Path, key: str | None, to_post: bool, summary: bool, repo: str | None, number: int | None
) -> None:
    """Write comment.md of a results directory and print it.

    With --post it goes to the pull request instead: one comment a key, updated in place, and never overwritten by an
    older run. The token is GITHUB_TOKEN (GitLab: GITLAB_TOKEN). Where there is no pull request, no token, or one that
    may not write, as for forks, this says so and ends with 0.

    A sweep writes $GITHUB_STEP_SUMMARY itself. One that was killed could not: this does it then.

    \b
    Example:
        wfbench comment results/latest --key smoke
        wfbench comment results/latest --post
    """
    found = derived(directory)
    with writing(directory):
        text = write_comment(directory, found, key)
    killed = found.summary.sweep.run_status == "running"
    if (summary or killed) and (trouble := append_summary(found, os.environ, key)):
        click.echo(f"wfbench: {trouble}", err=True)
    if to_post:
        _post(found, key, repo, number)
    else:
        show(text)


def _post(found: Derived, key: str | None, repo: str | None, number: int | None) -> None:
    from pytest_wfbench.forge.api import ForgeError, NotAllowed
    from pytest_wfbench.forge.place import BadPlace, Nowhere, forge_of
    from pytest_wfbench.forge.post import post
    from pytest_wfbench.report.comment import render_comment

    try:
        with usage_errors(BadPlace):
            forge = forge_of(os.environ, repo, number)
        done = post(forge, lambda size: render_comment(found.summary, key, size))
    except (Nowhere, NotAllowed) as error:
        click.echo(f"wfbench: not posted: {error}", err=True)
    except ForgeError as error:
        raise CliError(f"not posted: {error}", FAILED) from error
    else:
        click.echo(f"wfbench: {DONE[done.what]} ({done.comment.id})", err=True)
