"""Little stand-ins for ``hashlib``, ``json``, ``re`` and ``subprocess``, whose imports cost each sandbox 20 ms."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from hashlib import sha256
else:
    import _signal as signal

    try:
        from _sha2 import sha256
    except ImportError:
        try:
            from _sha256 import sha256
        except ImportError:
            from hashlib import sha256

__all__ = ["Child", "as_json", "sha256"]
_ESCAPED = frozenset('"\\')


def as_json(value: object) -> str:
    """Return a value of nested tuples and lists of texts, whole numbers, booleans and none as JSON, all in ASCII."""
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, tuple | list):
        return "[" + ",".join(as_json(item) for item in value) + "]"
    if value is None:
        return "null"
    # A truth value is a whole number too.
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quoted(text: str) -> str:
    if text.isascii() and text.isprintable() and _ESCAPED.isdisjoint(text):
        return f'"{text}"'
    return '"' + "".join(_letter(letter) for letter in text) + '"'


def _letter(letter: str) -> str:
    code = ord(letter)
    if code > 0xFFFF:
        high, low = divmod(code - 0x10000, 0x400)
        return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
    plain = 0x20 <= code < 0x7F and letter not in _ESCAPED
    return letter if plain else f"\\u{code:04x}"


class Child:
    """A program with one of its standard streams piped; ``pipe`` is this side's descriptor of it."""

    def __init__(self, argv: list[str], env: dict[str, str], stream: int) -> None:
        """Start it with standard input piped (``stream`` 0), or standard output (1)."""
        ends = os.pipe()
        theirs, self.pipe = ends if stream == 0 else ends[::-1]
        actions = [(os.POSIX_SPAWN_DUP2, theirs, stream)]
        # The interpreter ignores the signal of a broken pipe; what it starts should die of it.
        self.pid = os.posix_spawnp(argv[0], argv, env, file_actions=actions, setsigdef=[signal.SIGPIPE])
        os.close(theirs)

    def wait(self) -> int:
        """Return its exit status, the negative of the signal that ended it."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
