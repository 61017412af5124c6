"""What is said on the control socket: one line of JSON each way, one question a connection."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from pytest_wfbench.evidence.manifest import Spending, Traffic
from pytest_wfbench.gateway.api import Message, OpenRequest, Route, Terms

MAX_LINE = 4 << 20


class Provider(Message):
    """A provider that can be reached: its base URL (without ``/v1``) and the key it takes."""

    name: str
    base_url: str
    key: str = Field(repr=False)


class Boot(Message):
    """The first line of the gateway's standard input: ``owner`` (uid, gid) of doors, name of the ``control`` socket."""

    directory: Path
    token: str = Field(repr=False)
    parent: int
    owner: tuple[int, int] | None = None
    providers: tuple[Provider, ...] = ()
    proxy: bool = True
    control: str = "control"


class Begin(Message):
    """Starts the sweep: where events go, where models lead, on what terms, and where it is recorded, if anywhere."""

    op: Literal["begin"] = "begin"
    sweep_id: str
    usage_path: Path
    routes: tuple[Route, ...]
    terms: Terms = Terms()
    record: Path | None = None


class Open(Message):
    """Opens a door."""

    op: Literal["open"] = "open"
    request: OpenRequest


class Close(Message):
    """Drains a door and takes it away."""

    op: Literal["close"] = "close"
    door: Path


class Totals(Message):
    """Asks what passed a door so far."""

    op: Literal["totals"] = "totals"
    door: Path


class Account(Message):
    """Asks what was spent and waited for."""

    op: Literal["account"] = "account"


class Status(Message):
    """Asks how the proxy does."""

    op: Literal["status"] = "status"


class Watch(Message):
    """Is answered when the proxy is gone. The connection's end says the same of the gateway."""

    op: Literal["watch"] = "watch"


class Stop(Message):
    """Ends the gateway. Its directory stays where another one is to take its place."""

    op: Literal["stop"] = "stop"
    replaced: bool = False


Question = Annotated[Begin | Open | Close | Totals | Account | Status | Watch | Stop, Field(discriminator="op")]


class Asking(Message):
    """A question and the token that allows it."""

    token: str = Field(repr=False)
    question: Question


class Reply(Message):
    """An answer, or a refusal: ``lost`` where the proxy is gone, ``refused`` where the question cannot be granted."""

    value: Any = None
    lost: str | None = None
    refused: str | None = None


class Health(Message):
    """How the proxy does. ``failed`` holds the tail of its log once it has ended."""

    ready: bool
    failed: str | None = None
    pid: int | None = None


class Books(Message):
    """What was spent, none without a budget, and what was waited for."""

    spending: Spending | None = None
    traffic: Traffic = Traffic()


class Seen(Message):
    """What passed a door so far; ``callbacks`` counts LiteLLM's own reports, ``counted`` is the last one's usage."""

    events: int
    callbacks: int
    open_calls: int
    counted: dict[str, Any] | None = None


ASKING: TypeAdapter[Asking] = TypeAdapter(Asking)
