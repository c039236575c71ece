"""Values and texts that break parsers, and a JSON writer that can write what no library would."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

MAX_INT = 2_147_483_647


class Raw(bytes):
    """Bytes that are written into a JSON text unchanged."""


class Pairs(list[tuple[str, Any]]):
    """A JSON object that may contain a key twice."""


DEEP_LIST = Raw(b"[" * 20_000 + b"]" * 20_000)
DEEP_OBJECT = Raw(b'{"a":' * 5_000 + b"1" + b"}" * 5_000)
LONG_LIST = Raw(b"[" + b"1," * 99_999 + b"1]")
LONG_TEXTS = Raw(b"[" + b'"CUSTOM_A",' * 99_999 + b'"A"]')
LONG_OBJECT = Raw(b"{" + b",".join(b'"%d":1' % n for n in range(50_000)) + b"}")

HUGE = [DEEP_LIST, DEEP_OBJECT, LONG_LIST, LONG_TEXTS, LONG_OBJECT]

INTEGERS: list[Any] = [
    *(0, -1, 1, 2, 3, MAX_INT, MAX_INT + 1, -MAX_INT, 2**53 + 1, 2**63 - 1, 2**63, -(2**63)),
    *(2**64, 10**30, -(10**30), Raw(b"1" + b"0" * 5_000), Raw(b"-0"), Raw(b"01"), Raw(b"+1")),
]
NUMBERS: list[Any] = [
    *(0.0, -0.0, 0.1, 1.5, 16.0, -1.0, 3.40282e38, -3.40282e38, 3.4028236e38, 1e308, -1e308),
    *(5e-324, Raw(b"1e999"), Raw(b"-1e999"), Raw(b"1E+2"), Raw(b"1.0e-400"), Raw(b".5")),
    *(Raw(b"NaN"), Raw(b"Infinity"), Raw(b"-Infinity"), Raw(b"0x10"), Raw(b"1_000")),
]
TEXTS: list[Any] = [
    *("", " ", "\0", "a\0b", "\n", "é", "💩", "\u202e", "ß" * 200, "x" * 200, "x" * 201),
    *("x" * 256, "x" * 10_000, "CUSTOM_X\n", "CUSTOM_", "custom_x", "null", "NaN", "true"),
    *("../..", "%00", "' OR 1=1 --", "<script>", "\x7f", "\ufeff", "\ud83d\ude00"),
    *("0" * 32, "0" * 36, "-" * 36, "G" * 36, "{00000000-0000-0000-0000-000000000001}"),
    *("urn:uuid:00000000-0000-0000-0000-000000000001", "00000000000000000000000000000001"),
    *("AAAAAAAA-AAAA-4AAA-8AAA-AAAAAAAAAAAA", "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaA"),
    *(Raw(b'"\\ud800"'), Raw(b'"\\udc00\\ud800"'), Raw(b'"\xff"'), Raw(b'"\xc3\x28"')),
    *(Raw(b'"\xed\xa0\x80"'), Raw(b'"\xf4\x90\x80\x80"'), Raw(b'"\\u12"'), Raw(b'"\\x00"')),
    *(Raw(b'"\t"'), Raw(b'"\\u0000"'), Raw(b"'single'"), Raw(b'"open')),
]
OTHERS: list[Any] = [
    None,
    True,
    False,
    [],
    {},
    [[]],
    {"": {}},
    [None],
    [{}],
    {"a": []},
    Raw(b""),
    Raw(b","),
]


def hostile(choice: Random) -> Any:
    """Return a value that is probably not valid in its place."""
    if choice.random() < 0.01:
        return choice.choice(HUGE)
    return choice.choice(choice.choice([INTEGERS, NUMBERS, TEXTS, OTHERS]))


def written(value: Any) -> bytes:
    """Return JSON text, legal or not."""
    if isinstance(value, Raw):
        return bytes(value)
    if isinstance(value, Pairs | dict):
        pairs = value if isinstance(value, Pairs) else value.items()
        return b"{" + b",".join(_key(key) + b":" + written(of) for key, of in pairs) + b"}"
    if isinstance(value, list):
        return b"[" + b",".join(map(written, value)) + b"]"
    return json.dumps(value).encode()


def _key(key: Any) -> bytes:
    return written(key) if isinstance(key, str | Raw) else json.dumps(str(key)).encode()


def mutated(choice: Random, value: Any, wrong: Callable[[Random], Any] = hostile) -> Any:
    """Return the value with one thing changed, somewhere inside; `wrong` makes what is put in."""
    if isinstance(value, Pairs):
        value = dict(value)
    if isinstance(value, dict) and value and choice.random() < 0.85:
        return _mutated_object(choice, value, wrong)
    if isinstance(value, list) and value and choice.random() < 0.7:
        at = choice.randrange(len(value))
        way = choice.random()
        if way < 0.6:
            return [*value[:at], mutated(choice, value[at], wrong), *value[at + 1 :]]
        return [*value, value[at]] if way < 0.8 else value[:at] + value[at + 1 :]
    return wrong(choice)


def _mutated_object(choice: Random, value: dict[Any, Any], wrong: Callable[[Random], Any]) -> Any:
    key = choice.choice(list(value))
    way = choice.random()
    if way < 0.6:
        return {**value, key: mutated(choice, value[key], wrong)}
    rest = {k: v for k, v in value.items() if k != key}
    if way < 0.7:
        return rest
    if way < 0.8:
        return Pairs([*value.items(), (key, choice.choice([value[key], wrong(choice)]))])
    name = choice.choice(TEXTS)
    if way < 0.9:
        return Pairs([*rest.items(), (name, value[key])])
    return Pairs([*value.items(), (name, wrong(choice))])


def garbled(choice: Random, text: bytes) -> bytes:
    """Return a body that is broken as a text."""
    at = choice.randrange(len(text) + 1)
    noise = bytes(choice.randrange(256) for _ in range(choice.randint(1, 4)))
    return choice.choice(
        [
            text[:at],
            text[:at] + noise + text[at:],
            text + text,
            b"\xef\xbb\xbf" + text,
            text.decode("utf-8", "replace").encode("utf-16"),
            b"[" + text + b"]",
            text + b"\0",
            noise,
            b"",
            b" " * 1_000 + text,
        ]
    )
