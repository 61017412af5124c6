import unittest
from datetime import date

from ledger.errors import ValidationError
from ledger.periods import Period


class PeriodTest(unittest.TestCase):
    def test_a_month_holds_its_days(self):
        january = Period.parse("2024-01")
        self.assertIn(date(2024, 1, 1), january)
        self.assertIn(date(2024, 1, 31), january)
        self.assertNotIn(date(2023, 12, 31), january)
        self.assertNotIn(date(2024, 2, 10), january)

    def test_a_quarter_holds_its_months(self):
        second = Period.parse("2024-q2")
        self.assertEqual(str(second), "2024-Q2")
        self.assertIn(date(2024, 4, 1), second)
        self.assertIn(date(2024, 6, 30), second)
        self.assertNotIn(date(2024, 3, 31), second)
        self.assertNotIn(date(2024, 7, 15), second)

    def test_a_year_holds_its_days(self):
        year = Period.parse("2024")
        self.assertIn(date(2024, 12, 31), year)
        self.assertNotIn(date(2025, 1, 1), year)

    def test_a_span_keeps_its_text_as_label(self):
        self.assertEqual(str(Period.parse("2024-01-10..2024-01-20")), "2024-01-10..2024-01-20")
        self.assertIn(date(2024, 1, 15), Period.parse("2024-01-10..2024-01-20"))

    def test_what_is_not_a_period_is_refused(self):
        for text in ("", "2024-13", "2024-Q5", "2024-02-30..2024-03-01", "2024-02-01..2024-01-01", "soon"):
            with self.subTest(text), self.assertRaises(ValidationError):
                Period.parse(text)


if __name__ == "__main__":
    unittest.main()
