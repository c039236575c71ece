"""Controls: a difference planted in Moorage's answers must be found.

There is one for each compared aspect. Without it the same requests get the same answers.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.compare.exchange import Exchange
from tests.compare.generate.examples import (
    CHILD,
    TREE,
    claim,
    find,
    part,
    provider,
    tagged,
    with_header,
)
from tests.compare.generate.requests import Ask, Generations, plain
from tests.compare.playing import Outcome, Player
from tests.compare.report import shown_differences
from tests.compare.runs import smallest
from tests.compare.sides import Side, Sides
from tests.e2e.support.fuzzer import AGGREGATES
from tests.e2e.support.peer import Answer

Addresses = tuple[str, dict[str, str]]
Change = Callable[[Answer], Answer]

SCRIPT: list[Ask] = [
    plain("PUT", "/traits/CUSTOM_T", template="/traits/{trait}"),
    *TREE,
    tagged("traits", ["CUSTOM_T"]),
    tagged("aggregates", AGGREGATES[:1]),
    part("POST", "/inventories", body={"resource_class": "DISK_GB", "total": 8}),
    claim(),
    find("resources=VCPU:1"),
    find("resources=VCPU:1&limit=1"),
    find("resources=VCPU:1", minor=28),
    part("DELETE", "", CHILD),
    provider(),
    with_header(plain("POST", "/resource_providers", body={"x": 1}), "Accept", "text/html"),
]


def value(change: Callable[[Any], Any]) -> Change:
    """Change the JSON value of a body."""

    def changed(answer: Answer) -> Answer:
        found = answer.json()
        change(found)
        return replace(answer, body=json.dumps(found).encode())

    return changed


def bytes_of(old: bytes, new: bytes) -> Change:
    """Change the bytes of a body."""

    def changed(answer: Answer) -> Answer:
        assert old in answer.body
        return replace(answer, body=answer.body.replace(old, new))

    return changed


def header(name: str, text: str | None) -> Change:
    """Set or remove a header."""

    def changed(answer: Answer) -> Answer:
        rest = {key: of for key, of in answer.headers.items() if key != name}
        return replace(answer, headers=rest if text is None else {**rest, name: text})

    return changed


def turned(found: dict[str, Any], key: str) -> None:
    """Reverse the order of an object's keys or of a list."""
    of = found[key]
    found[key] = of[::-1] if isinstance(of, list) else dict(reversed(of.items()))


def first(candidates: Any) -> Any:
    """Return the first candidate's amounts."""
    return next(iter(candidates["allocation_requests"][0]["allocations"].values()))["resources"]


@dataclass(frozen=True)
class Plant:
    """A planted difference: which answers are changed, how, and the expected finding."""

    what: str
    status: int
    change: Change
    found: str
    query: tuple[str, ...] | None = None

    @property
    def where(self) -> tuple[str, int]:
        """The call and the status."""
        return self.what, self.status


LIST = "GET /allocation_candidates"
PLANTS = {
    "status": Plant(
        "PUT /allocations/{consumer}", 204, lambda answer: replace(answer, status=200), "status"
    ),
    "value": Plant(
        "GET /resource_providers/{provider}",
        200,
        value(lambda found: found.update(generation=found["generation"] + 1)),
        "body /generation",
    ),
    "kind of number": Plant(
        "GET /resource_providers/{provider}/inventories",
        200,
        value(lambda found: found["inventories"]["VCPU"].update(allocation_ratio=1)),
        "body /inventories/VCPU/allocation_ratio",
    ),
    "missing key": Plant(
        "GET /allocations/{consumer}",
        200,
        value(lambda found: found.pop("user_id", None)),
        "body {}",
    ),
    "order of keys": Plant(
        "GET /resource_providers/{provider}/inventories",
        200,
        value(lambda found: turned(found, "inventories")),
        "order /inventories{}",
    ),
    "order of a list": Plant(
        "GET /resource_classes",
        200,
        value(lambda found: turned(found, "resource_classes")),
        "order /resource_classes[]",
    ),
    "missing member": Plant(
        "GET /resource_classes",
        200,
        value(lambda found: found["resource_classes"].pop()),
        "body /resource_classes[]",
    ),
    "text": Plant(
        "POST /resource_providers",
        409,
        value(lambda found: found["errors"][0].update(detail="taken")),
        "body /errors/0/detail",
    ),
    "code": Plant(
        "POST /resource_providers",
        409,
        value(lambda found: found["errors"][0].update(code="placement.undefined_code")),
        "body /errors/0/code",
    ),
    "request id": Plant(
        "POST /resource_providers",
        409,
        value(lambda found: found["errors"][0].update(request_id="req-1")),
        "body /errors/0/request_id",
    ),
    "no JSON": Plant(
        "POST /resource_providers", 409, lambda answer: replace(answer, body=b"{"), "text"
    ),
    "text of a page": Plant(
        "POST /resource_providers", 400, bytes_of(b"validate", b"hold"), "body /errors/0/detail"
    ),
    "escapes of a page": Plant("POST /resource_providers", 400, bytes_of(b"&#x27;", b"'"), "text"),
    "frame of a page": Plant(
        "POST /resource_providers", 400, bytes_of(b"h1>", b"h2>"), "body /frame/0"
    ),
    "content type": Plant(
        "DELETE /resource_providers/{provider}",
        204,
        header("content-type", "text/plain"),
        "header content-type",
    ),
    "microversion": Plant(
        "GET /resource_classes",
        200,
        header("openstack-api-version", "placement 1.38"),
        "header openstack-api-version",
    ),
    "vary": Plant("GET /resource_classes", 200, header("vary", None), "header vary"),
    "cache control": Plant(
        "GET /resource_classes", 200, header("cache-control", None), "header cache-control"
    ),
    "modified": Plant(
        "GET /resource_providers/{provider}",
        200,
        header("last-modified", "Sun, 22 Nov 2020 04:00:00 GMT"),
        "header last-modified",
    ),
    "location": Plant(
        "POST /resource_providers/{provider}/inventories",
        201,
        header("location", "http://127.0.0.1/elsewhere"),
        "header location",
    ),
    "length": Plant(
        "PUT /allocations/{consumer}",
        204,
        header("content-length", None),
        "header content-length",
    ),
    "other header": Plant(
        "GET /resource_classes", 200, header("retry-after", "1"), "header retry-after"
    ),
    "amount of a candidate": Plant(
        LIST, 200, value(lambda found: first(found).update(VCPU=2)), "candidates"
    ),
    "missing candidate": Plant(
        LIST,
        200,
        value(lambda found: found["allocation_requests"].pop()),
        "candidates",
        ("resources=VCPU:1",),
    ),
    "limit": Plant(
        LIST,
        200,
        value(lambda found: found["allocation_requests"].pop()),
        "limit",
        ("resources=VCPU:1", "limit=1"),
    ),
    "summary": Plant(
        LIST,
        200,
        value(lambda found: found["provider_summaries"].popitem()),
        "body /provider_summaries{}",
    ),
    "order of summaries": Plant(
        LIST,
        200,
        value(lambda found: turned(found, "provider_summaries")),
        "order /provider_summaries{}",
    ),
}


class Changed(Side):
    """A Moorage that acknowledges a claim with another status."""

    async def send(self, ask: Ask, request: bytes) -> Answer:
        answer = await super().send(ask, request)
        plant = PLANTS["status"]
        return plant.change(answer) if (ask.what, answer.status) == plant.where else answer


class Forgetful(Side):
    """A Moorage that acknowledges a deletion, but does something else with the same answer."""

    async def send(self, ask: Ask, request: bytes) -> Answer:
        if ask.what == "DELETE /resource_providers/{provider}":
            request = part("DELETE", "/traits", CHILD).bytes(Generations())
        return await super().send(ask, request)


@pytest.fixture(scope="module")
def exchanges(addresses: Addresses) -> list[Exchange]:
    """The exchanges of the script with both sides."""

    async def run() -> list[Exchange]:
        async with Sides.open(*addresses) as both:
            player = Player(both, survey=True)
            await player.repeat(SCRIPT)
            return player.exchanges

    return asyncio.run(run())


def aspects(exchanges: Iterable[Exchange]) -> set[str]:
    """Return the aspects in which these exchanges differ."""
    found = {each.aspect for exchange in exchanges for each in exchange.differences()}
    return {re.sub(r"/[0-9a-f-]{36}", "/UUID", aspect) for aspect in found}


def test_without_a_plant_nothing_is_found(exchanges: list[Exchange]) -> None:
    """Otherwise a finding with a plant would prove nothing."""
    assert aspects(exchanges) == set()


@pytest.mark.parametrize("name", PLANTS)
def test_plant_is_found(name: str, exchanges: list[Exchange]) -> None:
    """It is found exactly where it was planted."""
    plant = PLANTS[name]
    there = [each for each in exchanges if (each.ask.what, each.ours.status) == plant.where]
    if plant.query is not None:
        there = [each for each in there if each.ask.query == plant.query]
    assert there
    changed = [replace(each, ours=plant.change(each.ours)) for each in there]
    assert aspects(changed) == {plant.found}


async def smallest_found(addresses: Addresses, kind: type[Side]) -> Outcome:
    """Play the script with a Moorage of a kind; return the smallest sequence with a finding."""
    async with Sides.open(*addresses) as both:
        ours = both.others["sqlite"]
        both.others = {"sqlite": kind(ours.peer, original=False, beginning=ours.beginning)}
        outcome = await Player(both).repeat(SCRIPT)
        assert outcome.findings
        return await smallest(both, outcome)


def test_a_sequence_is_shrunk(addresses: Addresses) -> None:
    """Of the whole script one claim is left, with only the necessary members."""
    outcome = asyncio.run(smallest_found(addresses, Changed))
    (ask,) = outcome.sent
    assert ask.what == "PUT /allocations/{consumer}"
    assert ask.body["allocations"] == {}
    assert "original: 204" in shown_differences(outcome)


def test_lost_change_is_found(addresses: Addresses) -> None:
    """No single answer shows it, but reading the state afterwards does."""
    outcome = asyncio.run(smallest_found(addresses, Forgetful))
    whats = [ask.what for ask in outcome.sent]
    assert whats == ["POST /resource_providers", "DELETE /resource_providers/{provider}"]
    assert outcome.findings[0].exchange.ask.what == "GET /resource_providers"
    assert "then: GET /resource_providers" in shown_differences(outcome)
