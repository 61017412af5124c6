"""Records that travel into a sandbox: ``dataclasses`` would cost each of them 10 ms there."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, dataclass_transform
else:

    def dataclass_transform(**_):  # noqa: D103
        return lambda kind: kind


@dataclass_transform(eq_default=False)
class Record:
    """A class whose annotated fields are taken by place or by name; what one is assigned there is its default."""

    def __init__(self, *values: Any, **named: Any) -> None:
        names = tuple(type(self).__annotations__)
        if len(values) > len(names) or not named.keys() <= set(names[len(values) :]):
            raise TypeError(f"{type(self).__name__} takes {', '.join(names)}")
        self.__dict__.update(zip(names, values, strict=False), **named)
        if missing := [name for name in names if not hasattr(self, name)]:
            raise TypeError(f"{type(self).__name__} lacks {', '.join(missing)}")

    def plain(self) -> tuple[Any, ...]:
        """Return the fields in the order in which the class takes them, for ``marshal`` or JSON."""
        return tuple(getattr(self, name) for name in type(self).__annotations__)
