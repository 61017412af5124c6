"""The sum over a cell's requests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_wfbench.evidence.row import Usage
from pytest_wfbench.usage.cell import cell_usage, sum_usage
from pytest_wfbench.usage.normalise import NegativeInput

from .conftest import MakeEvent

USAGES = st.lists(
    st.builds(Usage, ordinary_input=st.none() | st.integers(0, 99), output=st.integers(0, 99)), max_size=5
)


class TestSum:
    def test_everything_that_passed_counts(self, event: MakeEvent) -> None:
        """Main conversation, subagents, titles and retries are summed."""
        events = [
            event(),
            event(conversation="subagent"),
            event(conversation="title"),
            event(status="failure", ttft_ms=None, native_usage=None, answered_model=None),
        ]
        total = cell_usage(events)
        assert total.usage.total_input == 3 * 150
        assert (total.usage.output, total.incomplete) == (30, False)
        assert (total.requests, total.failed_requests, total.turns) == (4, 1, 2)
        assert total.models_answered == ("claude-sonnet-4-5",)
        assert total.source == "wire"
        assert total.subagent_share == pytest.approx(1 / 3)

    def test_no_request_is_zero(self) -> None:
        """A cell without a request on a cleanly closed gateway used 0 tokens, and that is known."""
        total = cell_usage([])
        assert (total.usage.total_input, total.usage.output, total.incomplete) == (0, 0, False)
        assert (total.source, total.models_answered, total.subagent_share) == (None, (), None)

    def test_an_open_call_is_unknown(self, event: MakeEvent) -> None:
        """A call that never ended makes the cell incomplete."""
        assert cell_usage([], 1).incomplete
        assert cell_usage([event()], 1).incomplete

    @pytest.mark.parametrize("status", ["success", "cut", "cancelled"])
    def test_a_missing_field_is_unknown(self, event: MakeEvent, status: str) -> None:
        """A success or a cut stream without a field makes that field null, the others not."""
        native = {"input_tokens": 1, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
        total = cell_usage([event(), event(status=status, native_usage=native)])
        assert (total.usage.output, total.usage.total_input, total.incomplete) == (None, 151, True)

    def test_a_failure_in_the_midst_of_output_is_unknown(self, event: MakeEvent) -> None:
        """Only a failure before any output adds nothing."""
        assert cell_usage([event(status="failure", native_usage=None)]).incomplete
        assert not cell_usage([event(status="failure", native_usage=None, ttft_ms=None)]).incomplete

    def test_what_a_format_never_reports_is_no_gap(self, event: MakeEvent) -> None:
        """Reasoning tokens are part of the output: unknown, but nothing billed is missing."""
        total = cell_usage([event()])
        assert (total.usage.reasoning_output, total.incomplete) == (None, False)

    @pytest.mark.parametrize(
        ("details", "incomplete"),
        [({"cached_tokens": 3}, False), ({"cached_tokens": 3, "cache_write_tokens": 2}, False), ({}, True)],
    )
    def test_an_absent_write_is_not_billed(self, event: MakeEvent, details: dict[str, int], incomplete: bool) -> None:
        """OpenAI's formats need not speak of written cache; cached input is needed, for it has a price of its own."""
        native = {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": details}
        total = cell_usage([event(wire="openai-chat", native_usage=native)])
        assert (total.usage.total_input, total.incomplete) == (9, incomplete)

    def test_counts_stand_outside(self, event: MakeEvent) -> None:
        """Token counts are neither requests nor turns nor tokens."""
        total = cell_usage([event(kind="count", native_usage=None)])
        assert (total.requests, total.turns, total.usage.output, total.incomplete) == (0, 0, 0, False)

    def test_a_judge_has_no_turns(self, event: MakeEvent) -> None:
        """Turns are the arm's own sessions'."""
        assert cell_usage([event(session="judge"), event(session="preflight"), event(session="plan")]).turns == 1

    def test_a_contradiction_names_the_event(self, event: MakeEvent) -> None:
        """Usage that cannot be is an error that names its event."""
        native = {"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0}}
        with pytest.raises(NegativeInput, match="event call-1"):
            cell_usage([event(wire="openai-chat", native_usage=native)])


class TestAlgebra:
    @given(USAGES, USAGES)
    def test_grouping_does_not_matter(self, first: list[Usage], second: list[Usage]) -> None:
        """The sum of sums is the sum, and unknown is contagious."""
        whole = sum_usage([*first, *second])
        assert whole == sum_usage([sum_usage(first), sum_usage(second)])
        assert (whole.ordinary_input is None) == any(part.ordinary_input is None for part in [*first, *second])
