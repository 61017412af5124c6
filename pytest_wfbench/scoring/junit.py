"""Which tests a JUnit file says ran, and passed."""

from __future__ import annotations

from typing import NoReturn
from xml.parsers import expat

JUNIT_LIMIT = 8 << 20
MAX_DEPTH = 64
NOT_PASSED = frozenset({"failure", "error", "skipped"})
NOT_RUN = frozenset({"notrun", "disabled", "skipped", "suppressed"})


class BadJUnit(Exception):
    """The bytes are not a JUnit report."""


def passed_tests(data: bytes) -> frozenset[str]:
    """Return the ids (``classname::name``) of tests that ran and passed, each time they appear.

    Raises:
        BadJUnit: not XML, a document type (entities could expand), nested too deeply, or no test at all.
    """
    reader = _Reader()
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = _no_document_type
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, LookupError, ValueError) as error:
        raise BadJUnit(f"not XML: {error}") from None
    if not reader.passed and not reader.failed:
        raise BadJUnit("it names no test")
    return frozenset(reader.passed - reader.failed)


def _no_document_type(*declared: object) -> NoReturn:
    raise BadJUnit("a document type is not allowed")


class _Reader:
    """Collects the tests as their elements end; only a direct child of a test says that it did not pass."""

    def __init__(self) -> None:
        self.passed: set[str] = set()
        self.failed: set[str] = set()
        self._open: list[str] = []
        self._test: str | None = None
        self._bad = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise BadJUnit(f"nested more than {MAX_DEPTH} deep")
        if tag == "testcase":
            self._test = f"{attributes.get('classname', '')}::{attributes.get('name', '')}"
            states = {attributes.get("status", "").lower(), attributes.get("result", "").lower()}
            self._bad = bool(states & NOT_RUN)
        elif tag in NOT_PASSED and self._open[-1:] == ["testcase"]:
            self._bad = True
        self._open.append(tag)

    def end(self, tag: str) -> None:
        self._open.pop()
        if tag == "testcase" and self._test is not None:
            (self.failed if self._bad else self.passed).add(self._test)
            self._test = None
