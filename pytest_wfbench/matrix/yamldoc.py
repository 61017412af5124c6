"""YAML that a stranger wrote, as plain values that know the line they came from."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode

MAX_NODES = 200_000
MAX_DEPTH = 64
MAX_TEXT = 16 << 20

TAG = "tag:yaml.org,2002:"
TRUE = frozenset({"true", "True", "TRUE"})
UNSTORABLE = re.compile(r"[\0\ud800-\udfff]")

Path_ = tuple[str | int, ...]


class BadYaml(Exception):
    """The text is not the YAML we accept; ``line`` counts from 1."""

    def __init__(self, line: int, message: str, remedy: str, key: str = "") -> None:
        super().__init__(message)
        self.line, self.message, self.remedy, self.key = line, message, remedy, key


class YamlFault(NamedTuple):
    """A fault of one value, the rest of the document being readable; ``line`` counts from 1."""

    path: Path_
    line: int
    message: str
    remedy: str


@dataclass(frozen=True)
class Document:
    """Plain values (dict, list, str, int, float, bool, None), the line of every path, and the faults on the way."""

    value: Any
    lines: dict[Path_, int]
    faults: tuple[YamlFault, ...]

    def line(self, path: Path_) -> int:
        """Return the line of the path, or of its nearest ancestor that has one."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def _float(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else text


class _Type(NamedTuple):
    pattern: re.Pattern[str]
    convert: Callable[[str], Any]


# The core types of YAML 1.2, less what reads in two ways: `yes`, `010`, `1:30`, `1_000` and dates stay text.
TYPES = {
    TAG + "null": _Type(re.compile(r"(~|null|Null|NULL|)\Z"), lambda text: None),
    TAG + "bool": _Type(re.compile(r"(true|True|TRUE|false|False|FALSE)\Z"), TRUE.__contains__),
    TAG + "int": _Type(re.compile(r"[-+]?(0|[1-9][0-9]{0,17})\Z"), int),
    TAG + "float": _Type(re.compile(r"[-+]?[0-9]{1,300}\.[0-9]{1,300}([eE][-+]?[0-9]{1,9})?\Z"), _float),
    TAG + "str": _Type(re.compile(r""), str),
}


class _Loader(yaml.SafeLoader):
    """The safe loader with our types only, which gives up on a document that is too large to be one of ours."""

    yaml_implicit_resolvers = {None: [(tag, kind.pattern) for tag, kind in TYPES.items() if tag != TAG + "str"]}  # noqa: RUF012
    nodes = 0

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise BadYaml(1, f"holds more than {MAX_NODES} values", "Divide the file")
        return super().compose_node(parent, index)


class _Reader:
    """One pass over the node tree; aliases are expanded, but counted."""

    def __init__(self) -> None:
        self.lines: dict[Path_, int] = {}
        self.faults: list[YamlFault] = []
        self.count = 0
        self.text = 0
        self.open: set[int] = set()

    def read(self, node: Node, path: Path_) -> Any:
        line = node.start_mark.line + 1
        self._bound(node, path, line)
        self.lines.setdefault(path, line)
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        if id(node) in self.open:
            raise BadYaml(line, "an alias contains itself", "Write the values out", _dotted(path))
        self.open.add(id(node))
        value = self._mapping(node, path) if isinstance(node, MappingNode) else self._sequence(node, path)
        self.open.remove(id(node))
        return value

    def _bound(self, node: Node, path: Path_, line: int) -> None:
        self.count += 1
        self.text += len(node.value) if isinstance(node, ScalarNode) else 0
        if self.count > MAX_NODES or self.text > MAX_TEXT:
            raise BadYaml(line, "expands to too much (an alias bomb?)", "Write the values out, or use fewer aliases")
        if len(path) > MAX_DEPTH:
            raise BadYaml(line, f"nested more than {MAX_DEPTH} deep", "Write it flatter")

    def _sequence(self, node: Node, path: Path_) -> list[Any]:
        self._expect(node, path, TAG + "seq")
        return [self.read(item, (*path, index)) for index, item in enumerate(node.value)]

    def _mapping(self, node: Node, path: Path_) -> dict[str, Any]:
        self._expect(node, path, TAG + "map")
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node, path)
            if key is None:
                continue
            inner, line = (*path, key), key_node.start_mark.line + 1
            if key in result:
                message = f"key {key!r} is set twice (first on line {self.lines[inner]})"
                self.faults.append(YamlFault(inner, line, message, "Keep one of them"))
                continue
            self.lines[inner] = line
            result[key] = self.read(value_node, inner)
        return result

    def _key(self, node: Node, path: Path_) -> str | None:
        if not isinstance(node, ScalarNode):
            self._fault(node, path, "a key must be a plain word", "Write `key: value`")
            return None
        if node.value == "<<" and node.style is None:
            self._fault(node, path, "merge keys (<<) are not supported", "Write the keys out")
            return None
        return self._storable(node, path)

    def _scalar(self, node: ScalarNode, path: Path_) -> Any:
        kind = TYPES.get(node.tag)
        if kind is None:
            self._fault(node, path, f"unknown tag {node.tag.removeprefix(TAG)!r}", "Use plain YAML values")
        elif not kind.pattern.match(node.value):
            name = node.tag.removeprefix(TAG)
            self._fault(node, path, f"not a value of the tag !!{name}: {node.value[:40]!r}", "Leave the tag out")
        elif node.tag != TAG + "str":
            return kind.convert(node.value)
        return self._storable(node, path)

    def _storable(self, node: ScalarNode, path: Path_) -> str:
        text: str = node.value
        if bad := UNSTORABLE.search(text):
            message = f"holds the character U+{ord(bad[0]):04X}, which no file or prompt can hold"
            self._fault(node, path, message, "Leave it out")
        return UNSTORABLE.sub("\ufffd", text)

    def _expect(self, node: Node, path: Path_, tag: str) -> None:
        if node.tag != tag:
            self._fault(node, path, f"unknown tag {node.tag.removeprefix(TAG)!r}", "Use plain YAML values")

    def _fault(self, node: Node, path: Path_, message: str, remedy: str) -> None:
        self.faults.append(YamlFault(path, node.start_mark.line + 1, message, remedy))


def _dotted(path: Path_) -> str:
    return ".".join(map(str, path))


def read_yaml(data: bytes) -> Document:
    """Parse one document.

    Raises:
        BadYaml: not UTF-8, not YAML, several documents, nested too deeply, or an alias bomb.
    """
    node = _compose(data)
    if node is None:
        return Document(None, {}, ())
    reader = _Reader()
    value = reader.read(node, ())
    return Document(value, reader.lines, tuple(reader.faults))


def _compose(data: bytes) -> Node | None:
    text = ""
    try:
        text = data.decode()
        return _Loader(text).get_single_node()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise BadYaml(line, "not UTF-8", "Save the file as UTF-8") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        raise BadYaml(mark.line + 1 if mark else 1, f"not YAML: {problem}", "Mend the syntax") from None
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        message = f"holds the control character U+{error.character:04X}"
        raise BadYaml(line, message, "Leave it out, or write it as an escape in double quotes") from None
    except RecursionError:
        raise BadYaml(1, f"nested more than {MAX_DEPTH} deep", "Write it flatter") from None
