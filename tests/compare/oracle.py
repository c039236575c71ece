"""The oracle for candidates where the sides differ: the naive search of the core's tests.

It searches the original's state, so that no difference is tolerated because of its form alone.
"""

from collections import Counter
from typing import Any

from moorage.core.clock import Instant
from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger.model import Inventory, Provider, ProviderRecord, Tags
from moorage.faces.query_strings.queries import candidate_query
from moorage.faces.web import Limits
from tests.compare.generate.candidates import REQUESTS, limit_of
from tests.compare.generate.requests import Ask, Generations, plain
from tests.compare.sides import Side
from tests.core.ledger.search.naive import Plain, Records, naive_candidates

EPOCH = Instant(0)


async def matches_model(side: Side, ask: Ask, answer: dict[str, Any]) -> bool:
    """Return whether an answer has the naive search's candidates for a side's providers."""
    question = candidate_query("&".join(ask.query).encode(), ask.minor or 0, Limits())
    expected = naive_candidates(await _records(side), question.query)
    found = [_plain(each) for each in answer[REQUESTS]]
    with_mappings = all("mappings" in each for each in answer[REQUESTS])
    counted = Counter(_shown(each, with_mappings) for each in expected)
    surplus = Counter(_shown(each, with_mappings) for each in found) - counted
    limit = limit_of(ask) or len(expected)
    return not surplus and len(found) == min(limit, len(expected))


def _shown(candidate: Plain, with_mappings: bool) -> Any:
    return candidate if with_mappings else candidate[0]


def _plain(candidate: dict[str, Any]) -> Plain:
    given = candidate["allocations"]
    if isinstance(given, list):
        given = {each["resource_provider"]["uuid"]: each for each in given}
    return (
        frozenset(
            (ProviderId(uuid), frozenset(of["resources"].items())) for uuid, of in given.items()
        ),
        frozenset(
            (suffix, frozenset(map(ProviderId, uuids)))
            for suffix, uuids in candidate.get("mappings", {}).items()
        ),
    )


async def _records(side: Side) -> Records:
    listed = (await _read(side, "/resource_providers"))["resource_providers"]
    return {ProviderId(each["uuid"]): await _record(side, each) for each in listed}


async def _record(side: Side, shown: dict[str, Any]) -> ProviderRecord:
    path = f"/resource_providers/{shown['uuid']}"
    inventories = (await _read(side, f"{path}/inventories"))["inventories"]
    usages = (await _read(side, f"{path}/usages"))["usages"]
    traits = (await _read(side, f"{path}/traits"))["traits"]
    aggregates = (await _read(side, f"{path}/aggregates"))["aggregates"]
    parent = shown["parent_provider_uuid"]
    return ProviderRecord(
        Provider(
            ProviderId(shown["uuid"]),
            shown["name"],
            shown["generation"],
            None if parent is None else ProviderId(parent),
            ProviderId(shown["root_provider_uuid"]),
            EPOCH,
            EPOCH,
        ),
        {name: Inventory(**each, used=usages[name]) for name, each in inventories.items()},
        Tags(frozenset(traits), frozenset(map(AggregateId, aggregates))),
        0,
    )


async def _read(side: Side, path: str) -> Any:
    answer = await side.peer.send(plain("GET", path).bytes(Generations()))
    assert answer.status == 200, answer
    return answer.json()
