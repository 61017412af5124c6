"""Spans of days that reports and closings are made for."""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import date, timedelta

from ledger.errors import ValidationError

_MONTH = re.compile(r"(\d{4})-(\d{2})")
_QUARTER = re.compile(r"(\d{4})-[Qq]([1-4])")
_YEAR = re.compile(r"\d{4}")


@dataclass(frozen=True)
class Period:
    """A span of days with the name it is shown by. ``first`` and ``last`` both belong to it."""

    first: date
    last: date
    label: str

    def __post_init__(self) -> None:
        if self.last < self.first:
            raise ValidationError(f"period {self.label} ends before it begins")

    @classmethod
    def month(cls, year: int, month: int) -> Period:
        first = date(year, month, 1)
        length = calendar.monthrange(year, month)[1]
        return cls(first, first + timedelta(days=length), f"{year:04d}-{month:02d}")

    @classmethod
    def quarter(cls, year: int, quarter: int) -> Period:
        start, end = cls.month(year, 3 * quarter - 2), cls.month(year, 3 * quarter)
        return cls(start.first, end.last, f"{year:04d}-Q{quarter}")

    @classmethod
    def year(cls, year: int) -> Period:
        return cls(date(year, 1, 1), date(year, 12, 31), f"{year:04d}")

    @classmethod
    def between(cls, first: date, last: date) -> Period:
        return cls(first, last, f"{first}..{last}")

    @classmethod
    def parse(cls, text: str) -> Period:
        """Read ``2024``, ``2024-Q1``, ``2024-01`` or ``2024-01-10..2024-01-20`` (last day included)."""
        try:
            if found := _QUARTER.fullmatch(text):
                return cls.quarter(int(found[1]), int(found[2]))
            if found := _MONTH.fullmatch(text):
                return cls.month(int(found[1]), int(found[2]))
            if _YEAR.fullmatch(text):
                return cls.year(int(text))
            first, _, last = text.partition("..")
            return cls.between(date.fromisoformat(first), date.fromisoformat(last))
        except ValueError:
            raise ValidationError(f"not a period: {text!r}") from None

    def __contains__(self, day: date) -> bool:
        return self.first <= day <= self.last

    def __str__(self) -> str:
        return self.label
