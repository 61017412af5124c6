"""What chance explains, in plain words: a sentence first, the numbers after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from pytest_wfbench.report.words import UNKNOWN, plural
from pytest_wfbench.statistics.uncertain import MetricUncertainty, Uncertainty

NAMES: Mapping[str, str] = MappingProxyType({
    "cost_usd": "cost", "output_tokens": "output-token", "duration_s": "time", "num_turns": "turn",
    "weighted_f1": "weighted-F1",
})  # fmt: skip
PLACES: Mapping[str, int] = MappingProxyType({"percent": 1, "weighted_f1": 3})
UNITS: Mapping[str, str] = MappingProxyType({"percent": " %", "weighted_f1": ""})
JUDGED: Mapping[str, str] = MappingProxyType({
    "IMPROVEMENT": "is more than noise explains",
    "REGRESSION": "is more than noise explains",
    "EQUIVALENT": "is too small to matter",
    "INCONCLUSIVE": "may be noise",
})  # fmt: skip


def chance_sentence(found: Uncertainty | None) -> str | None:
    """Return what the sweep could have shown, and what that makes of what it saw; none where nothing was compared."""
    if found is None or not found.metrics:
        return None
    asked = found.metrics[0]
    name = NAMES.get(asked.metric, asked.metric)
    made = f"{plural(found.runs, 'run')} on {plural(asked.tasks, 'task')}"
    if asked.mean is None:
        return f"{made} say nothing of a {name} change: it is {asked.remark}."
    return f"{made} {_could(asked, name)}; the observed {_seen(asked)} {JUDGED[asked.word]}."


def _could(asked: MetricUncertainty, name: str) -> str:
    if asked.detectable is None:
        return f"could not have shown any {name} change"
    return f"could have shown a {_size(asked.detectable, asked)} {name} change"


def _seen(asked: MetricUncertainty) -> str:
    mean = asked.mean or 0.0
    less, more = ("worse", "better") if asked.unit == "weighted_f1" else ("more", "less")
    size = _size(abs(mean), asked)
    return size if not float(f"{mean:.{PLACES[asked.unit]}f}") else f"{size} {more if mean > 0 else less}"


def _size(value: float, asked: MetricUncertainty) -> str:
    return f"{value:.{PLACES[asked.unit]}f}{UNITS[asked.unit]}"


def chance_rows(found: Uncertainty) -> Iterator[tuple[str, ...]]:
    """Yield a row a metric: metric, word, mean, interval, p, p adjusted for all metrics, detectable."""
    for entry in found.metrics:
        yield (
            entry.metric,
            entry.word,
            UNKNOWN if entry.mean is None else f"{_signed(entry.mean, entry)}",
            _interval(entry),
            _chance(entry.p),
            _chance(entry.p_holm),
            UNKNOWN if entry.detectable is None else _size(entry.detectable, entry),
        )


def _interval(entry: MetricUncertainty) -> str:
    if entry.interval is None:
        return UNKNOWN
    return f"{_signed(entry.interval.low, entry)} … {_signed(entry.interval.high, entry)}"


def _signed(value: float, entry: MetricUncertainty) -> str:
    return f"{value:+.{PLACES[entry.unit]}f}{UNITS[entry.unit]}".replace("-", "−")


def _chance(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.3g}"


def chance_notes(found: Uncertainty) -> Iterator[str]:
    """Yield what else is to be said: why there is no interval, and how often the gate is fooled."""
    asked = found.metrics[0] if found.metrics else None
    if asked and asked.remark and asked.mean is not None:
        yield f"{asked.remark[0].upper()}{asked.remark[1:]}."
    fooled = found.false_promotion
    if fooled.remark or fooled.rate is None or fooled.interval is None:
        yield f"How often the gate would promote an identical candidate is unknown: {fooled.remark}."
    else:
        yield (
            f"The gate would promote an identical candidate in {100 * fooled.rate:.1f} % of sweeps like this one"
            f" ({fooled.promoted} of {fooled.draws} simulated from the incumbent's runs, seed {fooled.seed};"
            f" {100 * fooled.interval.low:.1f} … {100 * fooled.interval.high:.1f} %)."
        )
    yield (
        f"Means and intervals at level {found.level:g} over tasks, in which above 0 is better:"
        f" BCa bootstrap of {found.draws} draws, seed {found.seed}; p by flipped signs;"
        f" {'binding' if found.binding else 'for information: --wfbench-promotion-confidence makes it binding'}."
    )
