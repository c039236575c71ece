"""Bodies are decoded by Python where it can, and told as Go would; both ways say the same."""

import json
from random import Random
from time import perf_counter
from typing import Any

import pytest

from moorage.faces.golang import decoding
from moorage.faces.golang.scanning import GoJsonError, check_whole, value_end
from tests.e2e.support import hostile

CASES = 4_000
SEED = 20261122
SECONDS_MAX = 0.5
LONGEST = 65_536


def bodies(chance: Random) -> list[bytes]:
    """Random bodies: whole ones, damaged values, damaged texts, texts behind the first value."""
    found = []
    for _ in range(CASES):
        value: Any = chance.choice(
            [{"names": ["a", "b"]}, {"a": "b", "c": ""}, {"NAMES": None}, {"a": {"b": [1]}}, [], 1]
        )
        text = hostile.written(hostile.mutated(chance, value))
        way = chance.random()
        if way < 0.3:
            text = hostile.garbled(chance, text)
        elif way < 0.4:
            text += chance.choice([b" x", b"{}", b"\n", b",", b"]", b"\xff"])
        elif way < 0.5:
            text = chance.choice([b" ", b"\n\t", b"\xef\xbb\xbf", b"\0", b"\x0b"]) + text
        found.append(text[:LONGEST])
    return found


def told(read: Any, *arguments: Any) -> Any:
    """Return what is read, or the words of the refusal."""
    try:
        return read(*arguments)
    except GoJsonError as error:
        return str(error)


def scanned_strings(data: bytes) -> Any:
    """Read a map of strings by the scanner alone."""
    end = value_end(data)
    return decoding.strings_read(data[:end], "main.UserDataMap") if end else {}


def scanned_names(data: bytes) -> Any:
    """Read names once the scanner has found nothing wrong."""
    check_whole(data)
    return decoding.names_read(data, "main.leaseNames", "names")


def test_both_ways_agree() -> None:
    """Python takes no body that the scanner refuses, and what is behind a value changes nothing."""
    taken = 0
    for data in bodies(Random(SEED)):
        strings = told(decoding.strings_read, data, "main.UserDataMap")
        again = told(scanned_strings, data)
        if again == "unexpected end of JSON input" or "invalid character ' '" in str(again):
            again = "unexpected EOF"
        assert strings == again, data
        names = told(decoding.names_read, data, "main.leaseNames", "names")
        assert names == told(scanned_names, data), data
        taken += isinstance(strings, dict) + isinstance(names, list)
    assert CASES / 10 < taken < CASES * 2 * 0.9  # both kinds were tried


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_no_json(number: str) -> None:
    """Python would take them; Go does not."""
    assert json.loads(number) != 0  # a control: it does
    with pytest.raises(GoJsonError, match="invalid character"):
        decoding.names_read(f'{{"names":{number}}}'.encode(), "main.leaseNames", "names")
    with pytest.raises(GoJsonError, match="invalid character"):
        decoding.strings_read(f'{{"a":{number}}}'.encode(), "main.UserDataMap")


@pytest.mark.parametrize(
    "data",
    [b"[" * LONGEST, b'{"a":"' + b"\\u0041" * 10_000, b" " * LONGEST, b'{"a":1' + b"0" * 65_000],
    ids=["brackets", "escapes", "blanks", "digits"],
)
def test_the_longest_bodies_are_quick(data: bytes) -> None:
    """A body as long as one may be is refused within far less than half a second."""
    begun = perf_counter()
    told(decoding.strings_read, data, "main.UserDataMap")
    told(decoding.names_read, data, "main.leaseNames", "names")
    assert perf_counter() - begun < SECONDS_MAX


def test_ordinary_bodies_are_not_scanned() -> None:
    """A body that is right is read several times as quickly as it would be scanned."""
    data = b'{"other":[' + b"1," * 30_000 + b"1]}"
    begun = perf_counter()
    for _ in range(10):
        assert decoding.names_read(data, "main.leaseNames", "names") == []
    quick = perf_counter() - begun
    begun = perf_counter()
    check_whole(data)
    assert quick / 10 < (perf_counter() - begun) / 3
