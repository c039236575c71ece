"""Long JSON lists, cut into their members step by step."""

import json
from collections.abc import Callable
from random import Random
from time import thread_time
from typing import Any

import msgspec
import pytest
from msgspec import Raw, Struct

from moorage.core.limits import AROUND_BYTES_MAX
from moorage.faces.json_lists import (
    LongMemberError,
    ManyMembersError,
    NoListError,
    cut,
)
from tests.core.ledger.search.whole import to_end

MEMBERS_MAX, MEMBER_BYTES_MAX = 5_000, 1 << 18
LETTERS = 'ab\\"[]{},: \n\t\u20ac\u2028é/'
SECONDS_MAX = 0.015


class Body(Struct, forbid_unknown_fields=True):
    items: list[Raw]
    flag: bool = False


def cut_items(body: bytes) -> list[Any] | None:
    """Read the items of a body by cutting it; None: it is refused."""
    try:
        parts = to_end(cut(body, members_max=MEMBERS_MAX, member_bytes_max=MEMBER_BYTES_MAX))
        if msgspec.json.decode(parts.around, type=Body).items:
            return None
        return [msgspec.json.decode(body[begin:end]) for begin, end in parts.members]
    except ValueError:
        return None


def decoded_items(body: bytes) -> list[Any] | None:
    """Read the items of a body with a decoder; None: it is refused."""
    try:
        return [msgspec.json.decode(item) for item in msgspec.json.decode(body, type=Body).items]
    except ValueError:
        return None


def random_value(random: Random, depth: int = 0) -> Any:
    """Return a random value, with brackets, quotes and commas in its texts."""
    kind = random.randrange(5 if depth > 3 else 7)
    if kind < 3:
        return "".join(random.choices(LETTERS, k=random.randrange(6)))
    if kind < 5:
        return random.choice([None, True, -1.5e3, 0])
    inner = [random_value(random, depth + 1) for _ in range(random.randrange(4))]
    return inner if kind == 5 else {random_name(random): one for one in inner}


def random_name(random: Random) -> str:
    """Return a random name of an object's member."""
    return "".join(random.choices(LETTERS, k=2))


def random_body(random: Random) -> bytes:
    """Return a random body in one of several notations."""
    items = [random_value(random) for _ in range(random.randrange(5))]
    if random.random() < 0.5:  # one step then ends within the other members
        items.insert(0, "x" * random.randrange(AROUND_BYTES_MAX - 150, AROUND_BYTES_MAX))
    body: dict[str, Any] = {"items": items}
    if random.random() < 0.5:
        body = {"flag": True, **body} if random.random() < 0.5 else {**body, "flag": False}
    indent, plain = random.choice([None, 0, 1]), random.random() < 0.5
    text = json.dumps(body, indent=indent, ensure_ascii=plain)
    blanks = random.choice(["", " ", "\r\n\t"])
    return (blanks + text + blanks).encode()


@pytest.mark.parametrize("seed", range(20))
def test_members_are_those_of_a_decoder(seed: int) -> None:
    """A decoder finds the same members in any body, and refuses the same bodies."""
    random = Random(seed)
    for _ in range(100):
        body = random_body(random)
        assert decoded_items(body) is not None
        assert cut_items(body) == decoded_items(body), body
        broken = bytearray(body)
        for _ in range(random.randrange(1, 3)):
            at = random.randrange(max(0, len(broken) - 300), len(broken))
            broken[at : at + random.randrange(2)] = random.choice([b"", b'"[]{},:\\ '])[:2]
        damaged = bytes(broken)
        if damaged.count(b'"items"') + damaged.count(b'"flag"') == body.count(b'"items"') + (
            body.count(b'"flag"')
        ):
            assert cut_items(damaged) == decoded_items(damaged), damaged


def body_of_lists(member: bytes, count: int) -> bytes:
    """Return a body of lists with many short members each."""
    one = b"[" + (member + b",") * 80_000 + member + b"]"
    return b'{"items": [' + b",".join([one] * count) + b"]}"


HOSTILE: dict[str, Callable[[], bytes]] = {
    "many numbers": lambda: b'{"items": [' + b"0," * (2 << 20) + b"0]}",
    "one text": lambda: b'{"items": ["' + b"x" * (8 << 20) + b'"]}',
    "one text of escapes": lambda: b'{"items": ["' + b"\\n" * (4 << 20) + b'"]}',
    "no end of a text": lambda: b'{"items": ["' + b"\\n" * 100_000,
    "brackets": lambda: b'{"items": [' + b"[" * (8 << 20),
    "pairs of brackets": lambda: body_of_lists(b"[]", 4),
    "short texts": lambda: body_of_lists(b'""', 16),
    "blanks before": lambda: b" " * (8 << 20) + b'{"items": []}',
    "blanks within": lambda: b'{"items": [' + b" " * (8 << 20) + b"1]}",
    "blanks behind": lambda: b'{"items": []}' + b" " * (8 << 20),
    "no list": lambda: b'{"' + b"x" * (8 << 20) + b'": 1}',
    "objects only": lambda: b'{"items":' * (1 << 20),
    "another list behind": lambda: b'{"items": [], "items": [' + b"0," * (2 << 20) + b"0]}",
}


def longest_step(body: bytes) -> float:
    """Return how long the longest step of cutting a body blocks other work, in seconds."""
    work = cut(body, members_max=MEMBERS_MAX, member_bytes_max=MEMBER_BYTES_MAX)
    longest = 0.0
    while True:
        begun = thread_time()
        try:
            next(work)
        except (StopIteration, ValueError):
            return max(longest, thread_time() - begun)
        longest = max(longest, thread_time() - begun)


@pytest.mark.parametrize("made", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_step_takes_long(made: Callable[[], bytes]) -> None:
    """For any body, other work can run every few milliseconds."""
    body = made()
    assert min(longest_step(body) for _ in range(3)) < SECONDS_MAX


def test_decoding_at_once_takes_long() -> None:
    """Control: decoding the whole body takes longer than this bound."""
    body = HOSTILE["many numbers"]()
    begun = thread_time()
    msgspec.json.decode(body, type=Body)
    assert thread_time() - begun > SECONDS_MAX


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"", NoListError),
        (b"[1]", NoListError),
        (b'{"items": {}}', NoListError),
        (b'{"' + b"x" * AROUND_BYTES_MAX + b'": [1]}', NoListError),
        (b'{"items": [' + b"0," * MEMBERS_MAX + b"0]}", ManyMembersError),
        (b'{"items": [1, "' + b"x" * MEMBER_BYTES_MAX + b'"]}', LongMemberError),
        (b'{"items": [1, [' + b"0," * MEMBER_BYTES_MAX + b"0]]}", LongMemberError),
        (b'{"items": [1, ', ValueError),
        (b'{"items": [1}', ValueError),
        (b'{"items": [1], "flag": ' + b"x" * (1 + AROUND_BYTES_MAX), ValueError),
    ],
)
def test_lists_that_cannot_be_cut(body: bytes, error: type[ValueError]) -> None:
    """The type of the exception shows what is wrong."""
    with pytest.raises(ValueError) as refused:
        to_end(cut(body, members_max=MEMBERS_MAX, member_bytes_max=MEMBER_BYTES_MAX))
    assert type(refused.value) is error


def test_the_longest_permitted_list() -> None:
    """The limits themselves are permitted."""
    text = b'"' + b"x" * (MEMBER_BYTES_MAX - 2) + b'"'
    body = b'{"items": [' + text + b"," + b"0," * (MEMBERS_MAX - 2) + b"0]}"
    parts = to_end(cut(body, members_max=MEMBERS_MAX, member_bytes_max=MEMBER_BYTES_MAX))
    assert len(parts.members) == MEMBERS_MAX
    assert parts.around == b'{"items": []}'
    assert body[slice(*parts.members[0])] == text
