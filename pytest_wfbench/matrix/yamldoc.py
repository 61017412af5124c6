"""YAML that a stranger wrote, as plain values that know the line they came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

MAX_NODES = 200_000
MAX_DEPTH = 64

Path_ = tuple[str | int, ...]


class BadYaml(Exception):
    """The text is not the YAML we accept; ``line`` counts from 1."""

    def __init__(self, line: int, message: str, remedy: str, key: str = "") -> None:
        super().__init__(message)
        self.line, self.message, self.remedy, self.key = line, message, remedy, key


@dataclass(frozen=True)
class Document:
    """Plain values (dict, list, str, int, float, bool, None), the line of every path, and the keys set twice."""

    value: Any
    lines: dict[Path_, int]
    repeated: tuple[tuple[Path_, int], ...]

    def line(self, path: Path_) -> int:
        """Return the line of the path, or of its nearest ancestor that has one."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


class _Loader(yaml.SafeLoader):
    """The safe loader, without dates: ``2026-01-01`` stays text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class _Reader:
    """One pass over the node tree; aliases are expanded, but counted."""

    def __init__(self, loader: _Loader) -> None:
        self.loader = loader
        self.lines: dict[Path_, int] = {}
        self.repeated: list[tuple[Path_, int]] = []
        self.count = 0

    def read(self, node: Node, path: Path_) -> Any:
        self.count += 1
        line = node.start_mark.line + 1
        if self.count > MAX_NODES or len(path) > MAX_DEPTH:
            raise BadYaml(line, "expands to too many values (an alias bomb?)", "Write the values out, or use fewer aliases")
        self.lines.setdefault(path, line)
        if isinstance(node, MappingNode):
            return self._mapping(node, path)
        if isinstance(node, SequenceNode):
            return [self.read(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node)

    def _mapping(self, node: MappingNode, path: Path_) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, ScalarNode) or key_node.tag == "tag:yaml.org,2002:merge":
                raise BadYaml(line, "a key must be a plain word", "Write `key: value`; merge keys (<<) are not supported")
            inner = (*path, key_node.value)
            if key_node.value in result:
                self.repeated.append((inner, line))
                continue
            self.lines[inner] = line
            result[key_node.value] = self.read(value_node, inner)
        return result

    def _scalar(self, node: Node) -> Any:
        if not node.tag.startswith("tag:yaml.org,2002:"):
            raise BadYaml(node.start_mark.line + 1, f"unknown tag {node.tag}", "Use plain YAML values")
        try:
            return self.loader.construct_object(node)  # type: ignore[no-untyped-call]
        except (yaml.YAMLError, ValueError) as error:
            raise BadYaml(node.start_mark.line + 1, f"not a value: {error}", "Quote the text") from None


def read_yaml(data: bytes) -> Document:
    """Parse one document.

    Raises:
        BadYaml: not UTF-8, not YAML, several documents, an unknown tag, a complex key, or an alias bomb.
    """
    try:
        text = data.decode()
        loader = _Loader(text)
        node = loader.get_single_node()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise BadYaml(line, "not UTF-8", "Save the file as UTF-8") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "does not parse"
        raise BadYaml(mark.line + 1 if mark else 1, f"not YAML: {problem}", "Mend the syntax") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise BadYaml(1, f"not YAML: {str(error).splitlines()[0]}", "Mend the syntax") from None
    if node is None:
        return Document(None, {}, ())
    reader = _Reader(loader)
    try:
        value = reader.read(node, ())
    except RecursionError:
        raise BadYaml(1, "an alias contains itself", "Write the values out") from None
    return Document(value, reader.lines, tuple(reader.repeated))
