"""Native usage in neutral names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_wfbench.evidence.row import Usage
from pytest_wfbench.usage.normalise import (
    NORMALISERS,
    NegativeInput,
    UnknownWire,
    UsageError,
    normalise,
    normalise_document,
)

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "data" / "usage.json").read_text())
ERRORS = {"negative ordinary input": NegativeInput, "unknown wire format": UnknownWire}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 10**9) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.dictionaries(st.sampled_from(["cached_tokens", "cache_write_tokens", "x"]), inner, max_size=3),
    max_leaves=6,
)
FIELDS = (
    "input_tokens", "output_tokens", "prompt_tokens", "completion_tokens", "cache_read_input_tokens",
    "cache_creation_input_tokens", "input_tokens_details", "prompt_tokens_details", "output_tokens_details",
)  # fmt: skip


class TestWorkedCases:
    @pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
    def test_case(self, case: dict[str, Any]) -> None:
        """Each worked case gives its numbers, or its error."""
        if error := case.get("error"):
            with pytest.raises(ERRORS[error], match=error):
                normalise(case["wire"], case["native"])
        else:
            assert normalise(case["wire"], case["native"]) == Usage(**case["normalised"])


class TestAnything:
    @given(st.sampled_from(sorted(NORMALISERS)), st.dictionaries(st.sampled_from(FIELDS), JSON))
    def test_a_field_is_a_count_or_unknown(self, wire: str, native: dict[str, Any]) -> None:
        """Whatever a provider sends, a field is an integer or unknown, and an unknown part makes the rest unknown."""
        try:
            usage = normalise(wire, native)
        except NegativeInput:
            return
        assert all(value is None or type(value) is int for _, value in usage)
        parts = (usage.ordinary_input, usage.cache_read_input, usage.cache_write_input)
        if None not in parts:
            assert usage.total_input == sum(part or 0 for part in parts)
        else:
            assert usage.ordinary_input is None or usage.total_input is None

    def test_the_error_names_the_event(self) -> None:
        """A contradiction names the event it was found in."""
        native = {"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0}}
        with pytest.raises(NegativeInput, match="event call-7"):
            normalise("openai-chat", native, "call-7")


class TestDocument:
    NATIVE = '{"input_tokens": 1, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 3, "output_tokens": 4}'
    STREAM = (
        'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":1,'
        '"cache_read_input_tokens":2,"cache_creation_input_tokens":3,"output_tokens":1}}}\n\n'
    )
    DELTA = 'event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":4}}\n\n'

    @pytest.mark.parametrize("text", [NATIVE, f'{{"id": "m", "usage": {NATIVE}}}', STREAM + DELTA])
    def test_what_a_file_may_hold(self, text: str) -> None:
        """A usage object, a whole answer and a recorded stream give the same numbers."""
        usage = normalise_document("anthropic-messages", text)
        assert (usage.total_input, usage.output) == (6, 4)

    def test_a_stream_without_its_end(self) -> None:
        """Without a message_delta the output is unknown: message_start holds a placeholder."""
        usage = normalise_document("anthropic-messages", self.STREAM)
        assert (usage.total_input, usage.output) == (6, None)

    def test_null(self) -> None:
        """No usage object is unknown throughout."""
        assert normalise_document("openai-chat", "null") == Usage()

    @pytest.mark.parametrize("text", ["", "[1]", '"x"', "{"])
    def test_anything_else_is_an_error(self, text: str) -> None:
        """What is no usage is refused in one line."""
        with pytest.raises(UsageError):
            normalise_document("openai-chat", text)

    def test_an_unknown_wire_is_refused_before_the_text_is_read(self) -> None:
        """An unknown wire format is refused, not guessed."""
        with pytest.raises(UnknownWire):
            normalise_document("gemini", "not json")
