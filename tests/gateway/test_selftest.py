"""The self-test's verdict on what LiteLLM counted."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_wfbench.gateway.api import GatewayLost
from pytest_wfbench.gateway.selftest import USAGE, _check

RIGHT = {"prompt_tokens": USAGE.whole_input, "completion_tokens": USAGE.output}


class TestCounted:
    def test_the_same(self) -> None:
        """Numbers that are the wire's pass."""
        _check(RIGHT)

    @pytest.mark.parametrize(
        "wrong", [{}, RIGHT | {"prompt_tokens": 11}, RIGHT | {"completion_tokens": None}], ids=range(3)
    )
    def test_another(self, wrong: dict[str, Any]) -> None:
        """A LiteLLM that counts otherwise than the wire, or not at all, is no road."""
        with pytest.raises(GatewayLost, match="LiteLLM counted"):
            _check(wrong)
