"""Digests that bind evidence."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_wfbench.digests import digest_bytes, digest_tree, digest_value

plain = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
values = st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner))
trees = st.dictionaries(st.text(max_size=4), st.binary(max_size=4), max_size=4)


def shuffled(value: Any) -> Any:
    if isinstance(value, dict):
        keys = list(value)
        random.Random(1).shuffle(keys)
        return {key: shuffled(value[key]) for key in keys}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


class TestValues:
    def test_known(self) -> None:
        """The form is part of the evidence and does not change."""
        assert digest_bytes(b"") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        assert digest_value({"b": [1, None], "a": "\u00e9"}) == digest_bytes('{"a":"\u00e9","b":[1,null]}'.encode())

    @given(values)
    def test_key_order(self, value: Any) -> None:
        """The order of keys does not matter."""
        assert digest_value(shuffled(value)) == digest_value(value)

    @given(values, values)
    def test_injective(self, first: Any, second: Any) -> None:
        """Different values have different digests; true is not 1."""
        assert (digest_value(first) == digest_value(second)) == (repr(shuffled(first)) == repr(shuffled(second)))

    def test_order_of_lists_matters(self) -> None:
        """The order of a list is part of it."""
        assert digest_value([1, 2]) != digest_value([2, 1])

    def test_lone_surrogates(self) -> None:
        """Half a character, as in a name that is not UTF-8, has a digest too."""
        assert digest_value("\udcff") != digest_value("\udcfe")


class TestTrees:
    @given(trees, st.randoms())
    def test_order(self, tree: dict[str, bytes], random: random.Random) -> None:
        """The order of entries does not matter."""
        entries = list(tree.items())
        random.shuffle(entries)
        assert digest_tree(entries) == digest_tree(tree.items())

    @given(trees, trees)
    def test_injective(self, first: dict[str, bytes], second: dict[str, bytes]) -> None:
        """A name, a byte, or which byte belongs to which name changes the digest."""
        assert (digest_tree(first.items()) == digest_tree(second.items())) == (first == second)
