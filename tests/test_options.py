"""Options as one frozen value."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_wfbench.options import SPECS, BadOption, Options, OptionSpec, from_json, read_options


def read(**given: Any) -> Options:
    """Read options of which some are given, by field."""
    return read_options(lambda spec: given.get(spec.field))


class TestSpecs:
    def test_one_field_each(self) -> None:
        """Every option has a field of its own, and every field an option."""
        fields = [spec.field for spec in SPECS]
        assert sorted(fields) == sorted(Options.__dataclass_fields__)

    def test_ini_names(self) -> None:
        """The ini name is the option's without dashes, underscores for hyphens."""
        spec = next(spec for spec in SPECS if spec.name == "promotion-min-runs")
        assert (spec.flag, spec.ini) == ("--wfbench-promotion-min-runs", "wfbench_promotion_min_runs")

    def test_defaults(self) -> None:
        """What is not given has the documented default."""
        options = read()
        assert (options.runs, options.outage_limit, options.max_unusable) == (1, 5, 0)
        assert (options.promotion_min_runs, options.promotion_min_improvement) == (3, 5.0)
        assert (options.promotion_max_task_regression, options.promotion_metric) == (20.0, "cost_usd")
        assert (options.arms, options.min_pass, options.subject, options.sandbox) == (None, None, (), "bwrap")


class TestValues:
    def test_read(self) -> None:
        """Texts are read as what the option is."""
        options = read(arms=" a, b ", runs="3", min_pass="0.5", subject=["mini:x", "mini:y"], include_expensive=True)
        assert (options.arms, options.runs, options.min_pass) == (("a", "b"), 3, 0.5)
        assert (options.subject, options.include_expensive) == (("mini:x", "mini:y"), True)

    @pytest.mark.parametrize(
        ("field", "value", "message"),
        [
            ("runs", "0", "--wfbench-runs: must be at least 1"),
            ("runs", "-1", "--wfbench-runs: '-1' is not a whole number: give 0, 1, 2, … with at most 9 digits"),
            ("runs", "1.5", "--wfbench-runs: '1.5' is not a whole number: give 0, 1, 2, … with at most 9 digits"),
            ("runs", "", "--wfbench-runs: needs a value"),
            ("arms", " ", "--wfbench-arms: needs a value"),
            ("results", "", "--wfbench-results: needs a value"),
            ("arms", "a,,b", "--wfbench-arms: 'a,,b' has an empty name: write a,b without a trailing comma"),
            ("arms", "a,b,a", "--wfbench-arms: 'a,b,a' names one twice"),
            ("min_pass", "1.1", "--wfbench-min-pass: must be a share between 0 and 1, for example 0.8"),
            ("min_pass", "half", "--wfbench-min-pass: 'half' is not a number of 0 or more: give 0.8 or 5"),
            ("promotion_metric", "money", "--wfbench-promotion-metric: 'money' is not one of cost_usd, output_tokens, "
                                          "duration_s, num_turns"),
            ("promotion_min_runs", "0", "--wfbench-promotion-min-runs: must be greater than 0"),
            ("promotion_min_f1_gain", "0", "--wfbench-promotion-min-f1-gain: must be greater than 0"),
            ("promotion_confidence", "0", "--wfbench-promotion-confidence: must be between 0 and 1, for example 0.95"),
            ("promotion_confidence", "1", "--wfbench-promotion-confidence: must be between 0 and 1, for example 0.95"),
            ("promotion_min_improvement", "0", "--wfbench-promotion-min-improvement: must be greater than 0"),
            ("promotion_max_task_regression", "0.0", "--wfbench-promotion-max-task-regression: must be greater than 0"),
            ("sandbox", "docker", "--wfbench-sandbox: 'docker' is not one of bwrap, host"),
        ],
    )  # fmt: skip
    def test_refused(self, field: str, value: str, message: str) -> None:
        """A value that does not read, or is out of its range, is told with the option and the remedy."""
        with pytest.raises(BadOption) as caught:
            read(**{field: value})
        assert str(caught.value) == message

    def test_all_at_once(self) -> None:
        """Every faulty option is told, those out of range with those that do not read."""
        with pytest.raises(BadOption) as caught:
            read(runs="0", min_pass="2", sandbox="docker", outage_limit="x")
        told = [line.partition(":")[0] for line in str(caught.value).splitlines()]
        assert sorted(told) == ["--wfbench-min-pass", "--wfbench-outage-limit", "--wfbench-runs", "--wfbench-sandbox"]

    @pytest.mark.parametrize("value", ["nan", "inf", "-1", "1e999", "1_0", " 5", "\u0663", ".", "", "9" * 5000])
    def test_no_odd_numbers(self, value: str) -> None:
        """Only plain digits make a number."""
        for field in ("min_pass", "runs", "promotion_min_improvement"):
            with pytest.raises(BadOption):
                read(**{field: value})

    def test_edges(self) -> None:
        """The ends of a range belong to it."""
        assert (read(min_pass="0").min_pass, read(min_pass="1").min_pass, read(min_pass=".5").min_pass) == (0, 1, 0.5)
        assert read(outage_limit="0").outage_limit == 0

    @given(st.sampled_from(SPECS), st.text(max_size=8) | st.from_regex(r"[0-9.]{1,12}", fullmatch=True))
    def test_anything(self, spec: OptionSpec, value: str) -> None:
        """Any text for any option is read or refused, and what is read travels as JSON."""
        given: Any = {"many": [value], "flag": True}.get(spec.kind, value)
        with suppress(BadOption):
            options = read(**{spec.field: given})
            assert from_json(json.loads(json.dumps(options.to_json()))) == options
            assert all(math.isfinite(v) for v in options.to_json().values() if isinstance(v, float))
