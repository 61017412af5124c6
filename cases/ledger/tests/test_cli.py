import contextlib
import io
import tempfile
import unittest
from pathlib import Path

from ledger.cli import main

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


class CommandLineTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.book = Path(scratch.name) / "book.json"
        self.run_ok("init", "--base", "eur")

    def run_cli(self, *args):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(["--book", str(self.book), *args])
        return status, out.getvalue(), err.getvalue()

    def run_ok(self, *args):
        status, out, err = self.run_cli(*args)
        self.assertEqual((status, err), (0, ""))
        return out

    def test_a_book_survives_from_command_to_command(self):
        self.run_ok("rate", "USD", "2024-01-02", "0.9132")
        self.assertEqual(self.run_ok("import", str(EXAMPLES / "invoices.csv")), "3 invoices imported\n")
        self.assertEqual(
            self.run_ok("pay", "INV-0001", "500.00", "--date", "2024-02-12"),
            "INV-0001: 500.00 EUR paid, 533.23 EUR open\n",
        )
        self.assertEqual(
            self.run_ok("invoices").splitlines(),
            [
                "number    date        customer     status             total         open",
                "INV-0001  2024-01-15  Acme         partly paid  1033.23 EUR   533.23 EUR",
                "INV-0002  2024-01-22  Bolt & Sons  open         1200.00 USD  1200.00 USD",
                "INV-0003  2024-02-05  Acme         open          406.98 EUR   406.98 EUR",
            ],
        )
        self.assertEqual(self.run_ok("check"), "ok\n")

    def test_invoice_and_settlement(self):
        self.assertEqual(
            self.run_ok("invoice", "Acme", "--date", "2024-03-01", "--line", "Work;2;50.00;s", "--early", "2/10"),
            "INV-0001 Acme: 119.00 EUR, due 2024-03-31\n",
        )
        self.assertEqual(self.run_ok("settlement", "INV-0001", "--date", "2024-03-05"), "116.62 EUR\n")

    def test_sums_without_a_book(self):
        self.assertEqual(self.run_ok("round", "12.344", "EUR"), "12.34 EUR\n")
        self.assertEqual(self.run_ok("tax", "10.00", "EUR", "S"), "net 10.00 EUR, VAT 1.90 EUR, gross 11.90 EUR\n")
        self.assertEqual(self.run_ok("convert", "10.00", "USD", "EUR", "--rate", "0.9123"), "9.12 EUR\n")

    def test_the_journal_as_csv(self):
        self.run_ok("invoice", "Acme", "--date", "2024-03-01", "--line", "Work;1;100.00;S")
        self.assertEqual(
            self.run_ok("journal", "--csv").splitlines(),
            [
                "date,reference,memo,account,debit,credit,tax_code",
                "2024-03-01,INV-0001,Invoice to Acme,1200,119.00,0.00,",
                "2024-03-01,INV-0001,Invoice to Acme,4000,0.00,100.00,S",
                "2024-03-01,INV-0001,Invoice to Acme,2200,0.00,19.00,S",
            ],
        )

    def test_an_error_is_one_line_and_changes_nothing(self):
        before = self.book.read_bytes()
        for args in (
            ("pay", "INV-0001", "1.00", "--date", "2024-03-01"),
            ("invoice", "Acme", "--date", "2024-03-01", "--line", "Work;1;1.005;S"),
            ("invoice", "Acme", "--date", "2024-03-01", "--line", "Work;1;1.00;S", "--currency", "USD"),
            ("init",),
        ):
            with self.subTest(args):
                status, out, err = self.run_cli(*args)
                self.assertEqual((status, out), (2, ""))
                self.assertRegex(err, r"\Aerror: .+\n\Z")
        self.assertEqual(self.book.read_bytes(), before)

    def test_a_bad_csv_line_is_named(self):
        source = self.book.with_name("bad.csv")
        source.write_text("customer,date,currency,terms,lines\nAcme,2024-02-30,EUR,30,Work;1;1.00;S\n")
        status, _, err = self.run_cli("import", str(source))
        self.assertEqual((status, err), (2, "error: line 2: not a date: '2024-02-30'\n"))


if __name__ == "__main__":
    unittest.main()
