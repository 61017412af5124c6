"""The public fixtures."""

from __future__ import annotations

import pytest

from tests.suite import Suite

pytestmark = pytest.mark.slow

PUBLIC = ("cell", "workspace", "gateway", "oracle", "sandbox", "agent")


class TestFixtures:
    def test_shown(self, suite: Suite) -> None:
        """`pytest --fixtures` shows each public fixture with a sentence of its own."""
        lines = suite.run("--fixtures").outlines
        for name in PUBLIC:
            (at,) = [
                number
                for number, line in enumerate(lines)
                if line.startswith((f"{name} --", f"{name} [session scope]"))
            ]
            assert lines[at + 1].strip().endswith((".", ",", ":"))
            assert "no docstring" not in lines[at + 1]

    def test_overridden(self, suite: Suite) -> None:
        """A conftest.py may override any of them and sees the plugin's own; fixtures of a module work."""
        suite.put(
            "conftest.py",
            "import dataclasses, pytest\n"
            + "".join(
                f"@pytest.fixture\ndef {name}({name}):\n"
                f"    open('seen.txt', 'a').write('{name} ' + type({name}).__name__ + '\\n')\n    return {name}\n"
                for name in ("cell", "workspace", "agent")
            )
            + "@pytest.fixture\n"
            "def oracle(oracle):\n"
            "    return dataclasses.replace(oracle, spec=oracle.spec.model_copy(update={'command': 'exit 9'}))\n"
            "@pytest.fixture(scope='module', autouse=True)\n"
            "def once(request):\n"
            "    open('seen.txt', 'a').write('module ' + request.node.name + '\\n')\n",
        )
        result = suite.run("-rx")
        result.assert_outcomes(xfailed=2, skipped=1)
        result.stdout.fnmatch_lines(["XFAIL *finish* - oracle-failed: the oracle exited 9"])
        seen = (suite.path / "seen.txt").read_text().splitlines()
        assert [line for line in seen if line.startswith("module")] == ["module tiny.cases.yaml"]
        assert [line.split()[0] for line in seen if not line.startswith("module")] == ["cell", "workspace", "agent"] * 2
