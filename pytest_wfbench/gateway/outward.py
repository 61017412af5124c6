"""What in a request makes the provider, or LiteLLM, act or fetch: tools that it runs, URLs, stored files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_wfbench.wires import ANTHROPIC

DEEPEST = 100
# Tools that the client runs itself, or that only search among its own tools.
HARMLESS_TOOLS = re.compile(
    r"(function|custom|namespace|tool_search(_.*)?|bash|text_editor|memory|local_shell|apply_patch)\Z"
)
# Longer than the name of any type; what tells a version from it would be at a long one for hours.
LONGEST_TYPE = 200
TOOL_VERSION = re.compile(r"_(20\d{6}|preview)(_\d+)*\Z|_20\d\d_\d\d_\d\d\Z")
HARMLESS_CHOICES = frozenset({"auto", "any", "none", "required", "tool", "allowed_tools"})
# Body keys that ask the provider to act, and what they stand for in `provider_tools`.
PROVIDER_KEYS: Mapping[str, str] = {
    "mcp_servers": "mcp",
    "container": "code_execution",
    "web_search_options": "web_search",
    "previous_response_id": "stored_responses",
    "conversation": "stored_responses",
    "prompt": "stored_prompts",
}
WEB = re.compile(r"web_(search|fetch)")
# What the provider did before, or is to take up again, by the type of an item or a content block.
ACTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"item_reference\Z"), "stored_responses"),
    (re.compile(r"container_upload\Z"), "file_id"),
    (re.compile(r"mcp_(?!toolset)"), "mcp"),
    (re.compile(r"web_search_(call|tool_result)"), "web_search"),
    (re.compile(r"web_fetch_tool_result"), "web_fetch"),
)
URL_KEY = re.compile(r"((.*_)?ur[il]s?|.*Ur[il]s?)\Z")
FILE_KEYS = frozenset({"file_id", "file_ids", "vector_store_ids", "container_id"})
DATA_KEYS = frozenset({"data", "file_data"})
# LiteLLM itself fetches what begins like this where it expects data.
REMOTE = re.compile(r"\s*(http|(?!data:)[A-Za-z][A-Za-z0-9+.-]*://)", re.IGNORECASE)
SENT_ALONG = frozenset({"base64", "text", "content"})
# Nobody looks for sources in a schema, in an example, or in where an answer says that it has something from.
OPAQUE = frozenset(
    {"input_schema", "parameters", "schema", "json_schema", "input_examples", "annotations", "citations"}
)
TOOL_USES = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


class TooDeep(Exception):
    """A body that is nested deeper than any client nests it."""


def provider_side(wire: str, body: Mapping[str, Any]) -> Iterator[str]:
    """Yield a name, as `provider_tools` takes it, for all in a body that makes the provider act or fetch.

    Raises:
        TooDeep: for a body nested deeper than ``DEEPEST``.
    """
    yield from (name for key, name in PROVIDER_KEYS.items() if body.get(key) not in (None, "", []))
    yield from _choice(body.get("tool_choice"))
    yield from _walk(wire, {key: value for key, value in body.items() if key not in PROVIDER_KEYS})


def _walk(wire: str, body: Mapping[str, Any]) -> Iterator[str]:
    """Look at every object of a body but opaque ones, whose depth counts all the same."""
    waiting: list[tuple[Any, bool, int]] = [(body, False, 0)]
    while waiting:
        value, opaque, depth = waiting.pop()
        if depth > DEEPEST:
            raise TooDeep
        if isinstance(value, dict):
            yield from () if opaque else _part(wire, value)
            children = {**value, "tools": _own_tools(value["tools"])} if "tools" in value and not opaque else value
            inner = [(item, opaque or _is_opaque(value, key), depth + 1) for key, item in children.items()]
        else:
            inner = [(item, opaque, depth + 1) for item in value]
        waiting += [entry for entry in inner if isinstance(entry[0], dict | list)]


def _is_opaque(part: Mapping[str, Any], key: str) -> bool:
    """Whether what stands under a key is mere data: a schema, a tool's input, what a permitted tool says of itself."""
    kind = _type_of(part)
    return key in OPAQUE or (key == "input" and kind in TOOL_USES) or WEB.match(kind) is not None


def _part(wire: str, part: Mapping[str, Any]) -> Iterator[str]:
    kind = _type_of(part)
    yield from (name for pattern, name in ACTS if pattern.match(kind))
    yield from _tools(wire, part["tools"]) if part.get("tools") is not None else ()
    source = part.get("source")
    if isinstance(source, dict) and (sort := _type_of(source)) not in SENT_ALONG:
        yield "file_id" if sort == "file" else "url_source"
    if any(value and key in FILE_KEYS for key, value in part.items()):
        yield "file_id"
    if not WEB.match(kind) and any(_is_remote(kind, key, value) for key, value in part.items()):
        yield "url_source"


def _is_remote(kind: str, key: str, value: Any) -> bool:
    if value and URL_KEY.match(key):
        return _leads_away(value)
    return key in DATA_KEYS and kind != "text" and isinstance(value, str) and REMOTE.match(value) is not None


def _leads_away(url: Any) -> bool:
    """Whether a URL is none that holds its data itself. One in an object is looked at where the object is."""
    if isinstance(url, list):
        return any(map(_leads_away, url))
    return not isinstance(url, dict) and not str(url).startswith("data:")


def _tools(wire: str, tools: Any) -> Iterator[str]:
    for tool in tools if isinstance(tools, list) else (None,):
        name = _tool_name(tool)
        if name is None:
            yield "malformed_tool"
        elif not HARMLESS_TOOLS.match(name):
            yield name.removesuffix("_toolset")
        elif wire == ANTHROPIC and _is_taken_for_search(tool):
            yield "web_search"


def _is_taken_for_search(tool: Any) -> bool:
    """Whether LiteLLM takes a tool of Anthropic's format for the provider's by its name, whatever its type says."""
    return "input_schema" not in tool and str(tool.get("name")).startswith("web_search")


def _own_tools(tools: Any) -> Any:
    """Return tools without those that the provider runs: where they are allowed, they may name their servers."""
    if not isinstance(tools, list):
        return tools
    return [tool for tool in tools if HARMLESS_TOOLS.match(_tool_name(tool) or "")]


def _tool_name(tool: Any) -> str | None:
    """Return a tool's type without its version, or none if it is no tool."""
    kind = tool.get("type") if isinstance(tool, dict) else ""
    if kind is None and _is_client_tool(tool):
        return "custom"
    return _unversioned(kind) if isinstance(kind, str) and kind else None


def _unversioned(kind: str) -> str:
    return TOOL_VERSION.sub("", kind) if len(kind) <= LONGEST_TYPE else "unknown_tool"


def _type_of(part: Mapping[str, Any]) -> str:
    """Return the type of a part; what is no text is none. It may hold the whole body: it is not turned into one."""
    kind = part.get("type")
    return kind if isinstance(kind, str) else ""


def _is_client_tool(tool: Any) -> bool:
    """Whether a tool without a type is one as Anthropic's clients define it."""
    return isinstance(tool.get("name"), str) and "input_schema" in tool


def _choice(choice: Any) -> Iterator[str]:
    kind = choice.get("type") if isinstance(choice, dict) else None
    name = "auto" if kind is None else _unversioned(kind) if isinstance(kind, str) else "unknown_tool"
    if name not in HARMLESS_CHOICES and not HARMLESS_TOOLS.match(name):
        yield name
