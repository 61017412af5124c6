"""Which tests a JUnit file says ran, and passed."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_wfbench.scoring.junit import BadJUnit, passed_tests

BOMB = '<!DOCTYPE a [<!ENTITY b "x"><!ENTITY c "&b;&b;&b;">]><testsuite><testcase name="&c;"/></testsuite>'


def case(name: str, inner: str = "", **attributes: str) -> str:
    extra = "".join(f" {key}={quoteattr(value)}" for key, value in attributes.items())
    return f'<testcase classname="c" name={quoteattr(name)}{extra}>{inner}</testcase>'


def suite(*cases: str) -> bytes:
    return f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>".encode()


class TestPassed:
    def test_states(self) -> None:
        """A test passed if it ran and neither failed, broke nor was skipped."""
        assert passed_tests(
            suite(
                case("good"),
                case("talks", "<system-out>failure</system-out><properties/>"),
                case("red", "<failure>x</failure>"),
                case("broken", "<error/>"),
                case("left out", "<skipped/>"),
            )
        ) == {"c::good", "c::talks"}

    @pytest.mark.parametrize("attributes", [{"status": "notrun"}, {"status": "Disabled"}, {"result": "skipped"}])
    def test_not_run_by_attribute(self, attributes: dict[str, str]) -> None:
        """A test that an attribute says did not run has not passed."""
        assert passed_tests(suite(case("a", **attributes), case("b", status="run", result="completed"))) == {"c::b"}

    def test_every_time(self) -> None:
        """A test that appears twice passed only if it passed both times."""
        for cases in ([case("a"), case("a", "<failure/>")], [case("a", "<error/>"), case("a")]):
            assert passed_tests(suite(*cases)) == frozenset()

    def test_only_its_own_children_count(self) -> None:
        """A failure deeper down, in a property say, is not the test's."""
        assert passed_tests(suite(case("a", "<properties><property><failure/></property></properties>"))) == {"c::a"}

    def test_quoted_document_type(self) -> None:
        """Output that quotes a document type is output."""
        assert passed_tests(suite(case("a", "<system-out><![CDATA[<!DOCTYPE html>]]></system-out>"))) == {"c::a"}

    def test_of_pytest(self, pytester: pytest.Pytester) -> None:
        """pytest's own file is read."""
        pytester.makepyfile(
            test_x="import pytest\ndef test_a(): pass\ndef test_b(): assert 0\n"
            "@pytest.mark.skip\ndef test_c(): pass\n@pytest.mark.xfail\ndef test_d(): assert 0\n"
            "@pytest.mark.parametrize('x', ['<&\"'])\ndef test_e(x): print('<!DOCTYPE html>')\n"
            "@pytest.fixture\ndef f():\n    yield\n    assert 0\ndef test_f(f): pass\n"
        )
        pytester.runpytest("-p", "no:wfbench", "--junitxml", "out.xml", "-o", "junit_logging=all")
        found = passed_tests(Path("out.xml").read_bytes())
        assert found == {"test_x::test_a", 'test_x::test_e[<&"]'}


class TestBad:
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be", "utf-8-sig"])
    def test_document_type(self, encoding: str) -> None:
        """A document type is refused in every encoding."""
        data = BOMB if encoding != "utf-16-be" else "\ufeff" + BOMB
        with pytest.raises(BadJUnit, match="document type"):
            passed_tests(data.encode(encoding))

    @pytest.mark.parametrize(
        "data",
        [b"", b"{}", b"<testsuite>", b"<a/><b/>", b"\xff\xfe\x00", b"<?xml version='1.0' encoding='klingon'?><a/>",
         b"<a>\0</a>", b"<a>&undefined;</a>"],
    )  # fmt: skip
    def test_no_xml(self, data: bytes) -> None:
        """What is no XML is refused as such."""
        with pytest.raises(BadJUnit, match="not XML"):
            passed_tests(data)

    def test_no_test(self) -> None:
        """A file without a test proves nothing."""
        with pytest.raises(BadJUnit, match="names no test"):
            passed_tests(suite())

    def test_depth(self) -> None:
        """A file nested without measure is refused."""
        with pytest.raises(BadJUnit, match="nested"):
            passed_tests(b"<a>" * 1_000_000)

    @given(st.binary(max_size=60) | st.text('<>/="& ctestcasenamefailure', max_size=60).map(str.encode))
    @example(b"<testcase/>")
    @example(b"<?xml version='1.0' encoding='utf-7'?><testcase/>")
    def test_anything(self, data: bytes) -> None:
        """Any bytes are read or refused."""
        try:
            passed_tests(data)
        except BadJUnit as error:
            assert str(error)  # noqa: PT017
