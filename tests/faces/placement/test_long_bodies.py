"""Long bodies are read in a thread and in parts, with the same result as short ones."""

import asyncio
import json
import threading
import tracemalloc
from random import Random
from typing import Any

import pytest

from moorage.core import limits
from moorage.faces import json_decoding
from moorage.faces.json_decoding import LONG_BYTES, PIECE_BYTES, decoded, json_decode
from moorage.faces.placement.input import bodies, schemas
from moorage.faces.query_strings.refusals import ProblemError
from moorage.faces.web import Limits, RefusalError
from tests.faces.placement.support.client import Client

HOST = "aaaaaaaa-0000-4000-8000-000000000001"
COUNT = 12_000


def consumer(number: int) -> str:
    """Return the UUID of a consumer."""
    return f"cccccccc-0000-4000-8000-{number:012x}"


def reshape(count: int) -> dict[str, Any]:
    """Return a reshape with this many consumers of one host."""
    inventories = {"VCPU": {"total": 1_000_000}}
    return {
        "inventories": {HOST: {"resource_provider_generation": 1, "inventories": inventories}},
        "allocations": {
            consumer(number): {
                "allocations": {HOST: {"resources": {"VCPU": 1 + number % 3}}},
                "project_id": "project",
                "user_id": "user",
                "consumer_generation": None,
                "consumer_type": "INSTANCE",
            }
            for number in range(count)
        },
    }


NAMES = ("inventories", "allocations")


def test_a_long_reshape(api: Client) -> None:
    """The body is decoded in parts, and every consumer gets its allocations."""
    api.provider(HOST, VCPU=9)
    body = reshape(COUNT)
    assert len(json.dumps(body)) > PIECE_BYTES
    assert api.ask("POST", "/reshaper", body).status == 204
    shown = api.ask("GET", f"/resource_providers/{HOST}/allocations")
    held = json.loads(shown.body)["allocations"]
    assert {uuid: one["resources"]["VCPU"] for uuid, one in held.items()} == {
        consumer(number): 1 + number % 3 for number in range(COUNT)
    }
    used = json.loads(api.ask("GET", f"/resource_providers/{HOST}/usages").body)["usages"]
    assert used == {"VCPU": sum(1 + number % 3 for number in range(COUNT))}


def test_long_json_has_the_same_values() -> None:
    """Objects and lists that are decoded member by member have the same values."""
    for value in (
        reshape(COUNT),
        [reshape(9), *map(str, range(200_000))],
        {"a:b": "x" * 2_000_000},
    ):
        body = json.dumps(value).encode()
        assert len(body) > PIECE_BYTES
        assert json_decode(body) == value


def some_value(random: Random, depth: int) -> Any:
    """Return a random JSON value, often with many short members."""
    kind = random.randrange(7 if depth else 4)
    if kind < 4:
        text = "".join(random.choice("ab:,{[") for _ in range(random.randrange(9)))
        return (random.randrange(99), text, None, "x" * random.randrange(60))[kind]
    count = random.choice((0, 1, 3, 30))
    if kind == 4:
        return [some_value(random, depth - 1) for _ in range(count)]
    return {f"{number}:{number}": some_value(random, depth - 1) for number in range(count)}


def test_runs_of_short_members_are_decoded_correctly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever runs of short members end, the values are those of the standard library."""
    monkeypatch.setattr(json_decoding, "PIECE_BYTES", 64)
    monkeypatch.setattr(json_decoding, "RUN_BYTES", 24)
    monkeypatch.setattr(json_decoding, "RUN_VALUES", 5)
    long = 0
    for number in range(600):
        value = some_value(Random(f"members/{number}"), 4)
        body = json.dumps(value).encode()
        long += len(body) > json_decoding.PIECE_BYTES
        assert json_decode(body) == value, f"Random('members/{number}')"
        if len(body) > json_decoding.PIECE_BYTES:
            twice = b'{"a":1,"b":%b,"a":2}' % body
            with pytest.raises(RefusalError, match="more than once"):
                json_decode(twice)
    assert long > 50


def test_short_members_are_not_decoded_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long list of empty objects takes a few steps, not one for each object."""
    steps = 0
    decode = json_decoding._loose

    def counted(body: bytes, levels: int = 3) -> tuple[Any, int]:
        nonlocal steps
        steps += 1
        return decode(body, levels)

    monkeypatch.setattr(json_decoding, "_loose", counted)
    count = 500_000
    assert json_decode(b"[" + b"{}," * count + b"1]") == [{}] * count + [1]
    assert steps < 10


@pytest.mark.parametrize("member", [b"{}", b"[]", b"1", b'{"a":{}}'])
def test_bodies_of_very_many_values_are_refused(member: bytes) -> None:
    """They are refused before they are decoded, which would take a hundred bytes per value."""
    body = b'{"a":[' + (member + b",") * limits.BODY_VALUES_MAX + b"1]}"
    tracemalloc.start()
    try:
        with pytest.raises(RefusalError) as refused:
            json_decode(body)
        assert tracemalloc.get_traced_memory()[1] < len(body)
    finally:
        tracemalloc.stop()
    assert refused.value.status == 413
    assert "more than 2000000 values" in refused.value.message


def test_the_largest_bulk_bodies_are_read() -> None:
    """A body of the default size that is full of consumers has fewer values than the limit."""
    one = json.dumps(reshape(1), separators=(",", ":")).encode()
    two = json.dumps(reshape(2), separators=(",", ":")).encode()
    most = Limits().bulk_bytes_max // (len(two) - len(one))
    values = [sum(body.count(mark) for mark in (b",", b"{", b"[")) for body in (one, two)]
    assert most * (values[1] - values[0]) < limits.BODY_VALUES_MAX


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b'"user_id"', b'"project_id"', "more than once"),
        (f'"{consumer(1)}"'.encode(), f'"{consumer(2)}"'.encode(), "more than once"),
        (b'"user"', b'"\\u0000"', "NUL"),
        (b'"user"', b"NaN", "malformed"),
        (b'"user",', b'"user"', "malformed"),
    ],
)
def test_long_json_is_read_strictly(old: bytes, new: bytes, says: str) -> None:
    """Long JSON is refused for the same reasons as short JSON, in whichever part they are."""
    whole = json.dumps(reshape(COUNT)).encode()
    json_decode(whole)
    place = whole.rindex(old) if whole.count(old) > 1 else whole.index(old)
    with pytest.raises(RefusalError) as refused:
        json_decode(whole[:place] + new + whole[place + len(old) :])
    assert says in refused.value.message or says == "malformed"


def test_long_bodies_are_checked_in_parts() -> None:
    """A wrong member is refused wherever it is; as elsewhere, integers may be written as floats."""
    body = reshape(COUNT)
    whole = bodies.long_check(body, schemas.Reshape38, NAMES)
    assert whole == bodies.body_check(body, schemas.Reshape38)
    wrong: Any
    for number in (0, COUNT // 2, COUNT - 1):
        body["allocations"][consumer(number)]["allocations"][HOST]["resources"]["VCPU"] = 4.0
        found = bodies.long_check(body, schemas.Reshape38, NAMES)
        assert found.allocations[consumer(number)].allocations[HOST].resources == {"VCPU": 4}
        for wrong in ({"VCPU": 0}, {}, 7):
            body["allocations"][consumer(number)]["allocations"][HOST]["resources"] = wrong
            with pytest.raises(ProblemError) as refused:
                bodies.long_check(body, schemas.Reshape38, NAMES)
            assert refused.value.status == 400
        body["allocations"][consumer(number)]["allocations"][HOST]["resources"] = {"VCPU": 1}
    for wrong in (7, [], {}, {"inventories": 1, "allocations": {}}):
        with pytest.raises(ProblemError):
            bodies.long_check(wrong, schemas.Reshape38, NAMES)


def test_long_bodies_are_read_in_a_thread() -> None:
    """A short body is not, because the thread would take longer than reading it."""

    async def run() -> None:
        def where() -> str:
            return threading.current_thread().name

        assert await decoded(b" " * LONG_BYTES, where) != where()
        assert await decoded(b" " * (LONG_BYTES - 1), where) == where()

    asyncio.run(run())
