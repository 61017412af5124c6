"""The road from mini-swe-agent to its model: OpenAI chat completions from the gateway, without streaming."""

from __future__ import annotations

import contextlib
import http.client
import json
import urllib.parse
from dataclasses import dataclass, field
from typing import Any, cast

from pytest_wfbench.agents.clipping import clip

ANSWER_LIMIT = 64 << 20
MALFORMED = (ValueError, LookupError, TypeError, RecursionError)


class ProviderError(Exception):
    """The model gave no answer; the message carries the provider's."""


class TransientError(ProviderError):
    """An error that one more try may cure."""


def clean(value: object) -> str:
    """Return a text that UTF-8 can hold; anything but a text is empty."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def provider_message(raw: bytes) -> str:
    """Return the provider's own words from an error's body."""
    text = raw.decode("utf-8", "replace")
    with contextlib.suppress(*MALFORMED):
        text = json.loads(text)["error"]["message"]
    return clip(clean(text), 500)


def added(total: dict[str, Any], usage: dict[str, Any]) -> dict[str, Any]:
    """Add the whole numbers of a usage object to a total, nested ones too."""
    result = dict(total)
    for name, value in usage.items():
        before = result.get(name)
        if isinstance(value, dict):
            result[name] = added(before if isinstance(before, dict) else {}, value)
        elif isinstance(value, int) and not isinstance(value, bool):
            result[name] = value + (before if isinstance(before, int) else 0)
    return result


@dataclass
class Road:
    """Where the gateway is, and what it said was used; ``complete`` says that no answer lacked it. Seconds."""

    base_url: str
    key: str
    timeout: float
    used: dict[str, Any] = field(default_factory=dict)
    complete: bool = True

    def ask(self, body: bytes) -> dict[str, Any]:
        """Send a request, and return the first choice of the answer, whose message is an object.

        Raises:
            TransientError: when one more try may help.
            ProviderError: when it was refused.
        """
        status, raw = self._post(body)
        if status != 200:
            raise (TransientError if status >= 500 else ProviderError)(f"HTTP {status}: {provider_message(raw)}")
        try:
            answer = json.loads(raw)
            choice = answer["choices"][0] | {"message": dict(answer["choices"][0]["message"])}
        except MALFORMED as error:
            raise TransientError(f"the answer is no chat completion: {clip(clean(str(error)), 200)}") from error
        usage = answer.get("usage")
        self.complete = self.complete and isinstance(usage, dict)
        self.used = added(self.used, usage if isinstance(usage, dict) else {})
        return cast("dict[str, Any]", choice)

    def _post(self, body: bytes) -> tuple[int, bytes]:
        url = urllib.parse.urlsplit(self.base_url)
        connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=self.timeout)
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"}
        try:
            connection.request("POST", url.path.rstrip("/") + "/v1/chat/completions", body, headers)
            response = connection.getresponse()
            raw = response.read(ANSWER_LIMIT)
            if response.length:
                raise TransientError("the answer was cut short")
            return response.status, raw
        except (OSError, http.client.HTTPException) as error:
            raise TransientError(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()
