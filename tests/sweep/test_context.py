"""Which variables of the environment hold secrets."""

from __future__ import annotations

import pytest

from pytest_wfbench.evidence.redact import Redactor
from pytest_wfbench.sweep.context import secrets_of

VALUE = "correct-horse-battery"


@pytest.mark.parametrize(
    "name",
    [
        "ANTHROPIC_API_KEY",
        "GITHUB_TOKEN",
        "CLIENT_SECRET",
        "PGPASSWORD",
        "DB_PASSWD",
        "AWS_ACCESS_KEY_ID",
        "APPLE_KEYID",
        "GITHUB_PAT",
        "PAT",
        "SMTP_PASS",
        "SSHPASS",
        "MYSQL_PWD",
        "npm_config__auth",
        "npm_config__authToken",
        "DB_CREDS",
        "GOOGLE_CREDENTIALS",
        "KEY_PASSPHRASE",
        "API_KEYS",
        "SESSION_COOKIE",
        "OPENAI_API_KEY_2",
        "SIGNING_SECRETS",
    ],
)
def test_secret(name: str) -> None:
    """The value of a variable whose name says that it is a secret is redacted wherever it is said."""
    assert VALUE not in Redactor(secrets_of({name: VALUE})).text(f"it is {VALUE}.")


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "PWD",
        "OLDPWD",
        "HOME",
        "COMPAT",
        "BYPASS",
        "KEYBOARD",
        "SSH_AUTH_SOCK",
        "AUTHOR",
        "PASSENGER",
        "TOKENIZER",
        "GIT_AUTHOR_NAME",
        "KEY_FILE",
        "XDG_SESSION_ID",
        "MONKEY_ISLAND",
    ],
)
def test_none(name: str) -> None:
    """Directories, names and switches that only sound like secrets are left alone: they may be said all the time."""
    assert secrets_of({name: VALUE}) == []
