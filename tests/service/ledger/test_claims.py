"""Claims choose providers and take capacity in one batch, together with other requests."""

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import ProviderId
from moorage.core.ledger.capacity import shown_capacity
from moorage.core.ledger.claims import Claimed, ClaimRequest
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.requests import CandidateOrder, CandidateQuery, Group, Preference
from moorage.core.ledger.search import Catalog
from moorage.service.app import Service
from moorage.service.ledger import claims, provider_cases, vocabulary_cases
from moorage.service.ledger.claims import Claim
from moorage.store.open import open_engine
from tests.core.ledger.search import world
from tests.core.ledger.search.naive import Records
from tests.core.ledger.search.whole import candidates
from tests.service.running import ManualClock, Running, claim, consumer_id, provider_id, running

ONE = CandidateQuery((Group("", {"VCPU": 1}),))


def wish(n: int, preference: Preference = "pack", query: CandidateQuery = ONE) -> Claim:
    """A claim for the n-th consumer, by default of one VCPU anywhere."""
    return Claim(
        ClaimRequest(
            consumer_id(n), "project", "user", "INSTANCE", query, CandidateOrder(preference, n)
        )
    )


async def rack(one: Running, providers: int, **totals: int) -> None:
    """Create identical providers."""
    await asyncio.gather(*(one.provider(n, **totals) for n in range(providers)))


@pytest.mark.parametrize("preference", ["pack", "spread", "random"])
def test_64_claims_on_64_one_unit_nodes(tmp_path: Path, preference: Preference) -> None:
    """All succeed at once, each on a different node; the 65th finds no capacity."""

    async def main() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            await rack(one, 64, VCPU=1)
            batches = one.engine.transactions
            answers = await one.outcomes(*(wish(n, preference) for n in range(64)))
            assert len({uuid for answer in answers for uuid in answer.allocations}) == 64
            assert one.engine.transactions - batches <= 2
            assert max(one.engine.statements[batches:]) <= 12
            assert await one.outcomes(wish(64, preference)) == [Code.NO_CAPACITY]

    asyncio.run(main())


def test_queries_that_prefer_the_same_nodes(tmp_path: Path) -> None:
    """64 different queries prefer the same few nodes; all succeed."""

    async def main() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            await rack(one, 64, VCPU=1, DISK_GB=100)
            wishes = [
                wish(n, "pack", CandidateQuery((Group("", {"VCPU": 1, "DISK_GB": n + 1}),)))
                for n in range(64)
            ]
            answers = await one.outcomes(*wishes)
            assert len({uuid for answer in answers for uuid in answer.allocations}) == 64

    asyncio.run(main())


def test_queries_beyond_the_budget_of_a_batch_wait_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of 20 different queries are searched for in each batch, until all claims have succeeded.

    Requests without a search do not wait for them, nor do claims whose query is searched for.
    """
    monkeypatch.setattr(claims, "QUESTIONS_MAX", 2)

    async def main() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            await rack(one, 64, VCPU=1, DISK_GB=100)
            wishes = [
                wish(n, "pack", CandidateQuery((Group("", {"VCPU": 1, "DISK_GB": n % 20 + 1}),)))
                for n in range(40)
            ]
            batches = one.engine.transactions
            answers = await one.outcomes(*wishes, claim(99, provider_id(63), VCPU=1))
            assert one.engine.transactions - batches >= 10
            taken = {uuid for answer in answers[:40] for uuid in answer.allocations}
            assert len(taken) == 40

    asyncio.run(main())


def test_pack_fills_and_spread_spares(tmp_path: Path) -> None:
    """`pack` fills node after node; `spread` uses all of them equally."""

    async def main(preference: Preference) -> list[int]:
        async with running(tmp_path / f"{preference}.sqlite") as one:
            await rack(one, 8, VCPU=4)
            for n in range(0, 16, 2):
                await one.outcomes(wish(n, preference), wish(n + 1, preference))
            return sorted(one.used(provider_id(n)) for n in range(8))

    assert asyncio.run(main("pack")) == [0, 0, 0, 0, 4, 4, 4, 4]
    assert asyncio.run(main("spread")) == [2] * 8


def test_groups_in_trees(tmp_path: Path) -> None:
    """Claims of eight groups on eight cards: every tree serves one claim and is then full."""

    async def main() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            for host in range(6):
                root = provider_id(100 + host)
                await one.submit(provider_cases.ProviderCreate(root, f"host-{host}"))
                for card in range(8):
                    uuid = provider_id(1000 + 8 * host + card)
                    await one.submit(
                        provider_cases.ProviderCreate(uuid, f"card-{host}-{card}", root)
                    )
                    await one.submit(
                        provider_cases.InventoriesReplace(uuid, 0, {"VCPU": InventorySpec(1)})
                    )
            query = CandidateQuery(
                tuple(Group(f"_{n}", {"VCPU": 1}) for n in range(8)), group_policy="isolate"
            )
            answers = await one.outcomes(*(wish(n, "random", query) for n in range(8)))
            served = [answer for answer in answers if isinstance(answer, Claimed)]
            assert answers.count(Code.NO_CAPACITY) == 2
            cards = [uuid for answer in served for uuid in answer.allocations]
            assert len(served) == 6 and len(set(cards)) == 48
            for answer in served:
                assert answer.mappings.keys() == {f"_{n}" for n in range(8)}

    asyncio.run(main())


def test_claims_and_allocations_in_one_batch(tmp_path: Path) -> None:
    """Simultaneous claims and named allocations never exceed a node, and none is lost."""

    async def main() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            await rack(one, 16, VCPU=2)
            named = [claim(100 + n, provider_id(n % 16), VCPU=1) for n in range(24)]
            answers = await one.outcomes(
                *(each for n in range(24) for each in (named[n], wish(n, "random")))
            )
            assert all(isinstance(answer, Claimed) for answer in answers[1::2])
            refused = answers[::2].count(Code.CAPACITY_EXCEEDED)
            used = [one.used(provider_id(n)) for n in range(16)]
            assert max(used) <= 2 and sum(used) == 48 - refused

    asyncio.run(main())


def test_the_same_consumer_twice(tmp_path: Path) -> None:
    """Of two claims for one consumer one succeeds, the other is a conflict."""

    async def main() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            await rack(one, 4, VCPU=4)
            first, second = await one.outcomes(wish(1), wish(1))
            assert isinstance(first, Claimed) and second is Code.CONSUMER_GENERATION

    asyncio.run(main())


def test_a_cancelled_claim_takes_nothing(tmp_path: Path) -> None:
    """A claim whose caller leaves before its turn is not executed."""

    async def main() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            await rack(one, 1, VCPU=1)
            one.engine.hold_commits()
            first = asyncio.ensure_future(one.submit(vocabulary_cases.ClassEnsure("CUSTOM_A")))
            await one.engine.held.wait()
            gone = asyncio.ensure_future(one.submit(wish(1)))
            await asyncio.wait({gone}, timeout=0)
            assert one.service.transactor.waiting == 1
            gone.cancel()
            one.engine.continue_commits()
            await first
            assert isinstance((await one.outcomes(wish(2)))[0], Claimed)

    asyncio.run(main())


def fill(records: Records) -> list[list[Any]]:
    """Return commands that create these providers, in steps; those of a step may run at once."""
    made: list[Any] = [
        vocabulary_cases.ClassEnsure("CUSTOM_NIC"),
        *map(vocabulary_cases.TraitEnsure, world.TRAITS),
    ]
    steps: list[list[Any]] = [made]
    for uuid, record in records.items():
        provider = record.provider
        specs = {
            name: InventorySpec(
                i.total, i.reserved, i.min_unit, i.max_unit, i.step_size, i.allocation_ratio
            )
            for name, i in record.inventories.items()
        }
        steps += [
            [provider_cases.ProviderCreate(uuid, provider.name, provider.parent)],
            [provider_cases.InventoriesReplace(uuid, 0, specs)],
            [provider_cases.TraitsReplace(uuid, 1, record.tags.traits)],
            [provider_cases.AggregatesReplace(uuid, record.tags.aggregates)],
        ]
    return steps


async def outcome(service: Service, command: Any) -> Any:
    """Execute one command; a refusal is returned as its code."""
    try:
        return await service.transactor.submit(command)
    except Error as error:
        return error.code


@pytest.mark.parametrize("seed", range(24))
def test_random_claims(tmp_path: Path, seed: int) -> None:
    """Nothing is overcommitted, refused claims had no candidate, and others got a candidate."""
    random = Random(f"claims/{seed}")
    records = world.some_fleet(random, random.randint(3, 12))
    queries = [world.some_query(random, len(records)) for _ in range(4)]
    preferences: tuple[Preference, ...] = ("random", "pack", "spread")

    async def main() -> None:
        engine = open_engine(f"sqlite:///{tmp_path}/m.sqlite")
        standard = world.STANDARD_CLASSES, world.STANDARD_TRAITS
        clock = ManualClock()
        service = await Service.start(engine, clock, *standard, on_fatal=pytest.fail)
        for step in fill(records):
            await asyncio.gather(*(outcome(service, command) for command in step))
        before = {id(q): answers_of(service.index.catalog, q) for q in queries}
        wishes = [wish(n, random.choice(preferences), random.choice(queries)) for n in range(40)]
        answers = await asyncio.gather(*(outcome(service, each) for each in wishes))
        for asked, answer in zip(wishes, answers, strict=True):
            if isinstance(answer, Claimed):
                assert sets_of(answer.mappings) in before[id(asked.wish.query)]
            else:
                # Claims only take: room at the end was room when this was refused.
                assert answer is Code.NO_CAPACITY
                assert not answers_of(service.index.catalog, asked.wish.query)
        overfull = [uuid for uuid in records if over(service.index.catalog, uuid)]
        assert overfull == []
        assert await service.operations.check() == []
        await service.stop()

    asyncio.run(main())


def answers_of(catalog: Catalog, query: CandidateQuery) -> list[Any]:
    """Return the mappings of all candidates."""
    return [sets_of(candidate.mappings) for candidate in candidates(catalog, query).candidates]


def sets_of(mappings: dict[str, tuple[ProviderId, ...]]) -> dict[str, set[ProviderId]]:
    """Return mappings with unordered providers."""
    return {suffix: set(providers) for suffix, providers in mappings.items()}


def over(catalog: Catalog, uuid: ProviderId) -> bool:
    """Return whether more of a provider is used than it has."""
    record = catalog.record(uuid)
    assert record is not None and record.provider.created_at > Instant(0)
    return any(held.used > max(shown_capacity(held), 0) for held in record.inventories.values())
