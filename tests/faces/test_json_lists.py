"""Long JSON lists, cut into their members bit by bit."""

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


def pieced(body: bytes) -> list[Any] | None:
    """Read the items of a body by cutting it; None: it is refused."""
    try:
        parts = to_end(cut(body, members_max=MEMBERS_MAX, member_bytes_max=MEMBER_BYTES_MAX))
        if msgspec.json.decode(parts.around, type=Body).items:
            return None
        return [msgspec.json.decode(body[begin:end]) for begin, end in parts.members]
    except ValueError:
        return None


def whole(body: bytes) -> list[Any] | None:
    """Read the items of a body in one go."""
    try:
        return [msgspec.json.decode(item) for item in msgspec.json.decode(body, type=Body).items]
    except ValueError:
        return None


def value(random: Random, depth: int = 0) -> Any:
    """Make up a value, with whatever brackets, quotes and commas in its texts."""
    kind = random.randrange(5 if depth > 3 else 7)
    if kind < 3:
        return "".join(random.choices(LETTERS, k=random.randrange(6)))
    if kind < 5:
        return random.choice([None, True, -1.5e3, 0])
    inner = [value(random, depth + 1) for _ in range(random.randrange(4))]
    return inner if kind == 5 else {value_name(random): one for one in inner}


def value_name(random: Random) -> str:
    """Make up the name of a member of an object."""
    return "".join(random.choices(LETTERS, k=2))


def body_made(random: Random) -> bytes:
    """Make up a body, written in some way or other."""
    items = [value(random) for _ in range(random.randrange(5))]
    if random.random() < 0.5:  # what is looked at in one step ends within the other members
        items.insert(0, "x" * random.randrange(AROUND_BYTES_MAX - 150, AROUND_BYTES_MAX))
    body: dict[str, Any] = {"items": items}
    if random.random() < 0.5:
        body = {"flag": True, **body} if random.random() < 0.5 else {**body, "flag": False}
    indent, plain = random.choice([None, 0, 1]), random.random() < 0.5
    text = json.dumps(body, indent=indent, ensure_ascii=plain)
    blanks = random.choice(["", " ", "\r\n\t"])
    return (blanks + text + blanks).encode()


@pytest.mark.parametrize("seed", range(20))
def test_members_are_what_a_decoder_finds(seed: int) -> None:
    """Of any body the members are those that a decoder finds; and it is refused where that does."""
    random = Random(seed)
    for _ in range(100):
        body = body_made(random)
        assert whole(body) is not None
        assert pieced(body) == whole(body), body
        broken = bytearray(body)
        for _ in range(random.randrange(1, 3)):
            at = random.randrange(max(0, len(broken) - 300), len(broken))
            broken[at : at + random.randrange(2)] = random.choice([b"", b'"[]{},:\\ '])[:2]
        damaged = bytes(broken)
        if damaged.count(b'"items"') + damaged.count(b'"flag"') == body.count(b'"items"') + (
            body.count(b'"flag"')
        ):
            assert pieced(damaged) == whole(damaged), damaged


def lists(member: bytes, count: int) -> bytes:
    """Return a body of lists with many short members each."""
    one = b"[" + (member + b",") * 80_000 + member + b"]"
    return b'{"items": [' + b",".join([one] * count) + b"]}"


HOSTILE: dict[str, Callable[[], bytes]] = {
    "many numbers": lambda: b'{"items": [' + b"0," * (2 << 20) + b"0]}",
    "one text": lambda: b'{"items": ["' + b"x" * (8 << 20) + b'"]}',
    "one text of escapes": lambda: b'{"items": ["' + b"\\n" * (4 << 20) + b'"]}',
    "no end of a text": lambda: b'{"items": ["' + b"\\n" * 100_000,
    "brackets": lambda: b'{"items": [' + b"[" * (8 << 20),
    "pairs of brackets": lambda: lists(b"[]", 4),
    "short texts": lambda: lists(b'""', 16),
    "blanks before": lambda: b" " * (8 << 20) + b'{"items": []}',
    "blanks within": lambda: b'{"items": [' + b" " * (8 << 20) + b"1]}",
    "blanks behind": lambda: b'{"items": []}' + b" " * (8 << 20),
    "no list": lambda: b'{"' + b"x" * (8 << 20) + b'": 1}',
    "objects only": lambda: b'{"items":' * (1 << 20),
    "another list behind": lambda: b'{"items": [], "items": [' + b"0," * (2 << 20) + b"0]}",
}


def longest_step(body: bytes) -> float:
    """Return for how long cutting a body holds up everybody else, in seconds."""
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
    """Whatever the body is, others can run every few milliseconds."""
    body = made()
    assert min(longest_step(body) for _ in range(3)) < SECONDS_MAX


def test_one_go_takes_long() -> None:
    """The bound above tells the difference: a decoder takes longer for the whole body."""
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
def test_what_cannot_be_cut(body: bytes, error: type[ValueError]) -> None:
    """It is refused with the kind of fault."""
    with pytest.raises(ValueError) as refused:
        to_end(cut(body, members_max=MEMBERS_MAX, member_bytes_max=MEMBER_BYTES_MAX))
    assert type(refused.value) is error


def test_the_longest_that_is_allowed() -> None:
    """The bounds themselves are within the bounds."""
    text = b'"' + b"x" * (MEMBER_BYTES_MAX - 2) + b'"'
    body = b'{"items": [' + text + b"," + b"0," * (MEMBERS_MAX - 2) + b"0]}"
    parts = to_end(cut(body, members_max=MEMBERS_MAX, member_bytes_max=MEMBER_BYTES_MAX))
    assert len(parts.members) == MEMBERS_MAX
    assert parts.around == b'{"items": []}'
    assert body[slice(*parts.members[0])] == text
