"""Exceptions of the library. The command line turns each of them into one line and exit status 2."""


class LedgerError(Exception):
    """Base class: something about the books or the request is wrong."""


class ValidationError(LedgerError):
    """A value that came from outside (arguments, CSV, JSON) is not usable."""


class UnknownCurrencyError(LedgerError):
    """A currency code that the library has no minor unit for."""


class CurrencyMismatchError(LedgerError):
    """Two amounts of different currencies met where one currency is needed."""


class UnknownAccountError(LedgerError):
    """An account number that is not in the chart."""


class UnbalancedEntryError(LedgerError):
    """Debits and credits of an entry differ."""


class ClosedPeriodError(LedgerError):
    """A posting is dated in a period that has been closed."""


class MissingRateError(LedgerError):
    """No exchange rate is known for a currency on or before a day."""


class NotFoundError(LedgerError):
    """A document or customer that the book does not hold."""
