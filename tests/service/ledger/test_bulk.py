"""Bulk changes through the service: small units, no needless writes, other requests in between."""

import asyncio
import json
from operator import itemgetter
from pathlib import Path
from typing import Any

import apsw

from moorage.core.errors import Code
from moorage.core.ids import ProviderId
from moorage.core.ledger.bulk import BulkResult, ProviderSpec, Upserted
from moorage.core.ledger.inventory import InventorySpec
from moorage.service.fair_turns import Pieces
from moorage.service.ledger import bulk, vocabulary_cases
from moorage.service.ledger.bulk import UNIT_PROVIDERS, TreesUpsert, providers_upsert
from moorage.store.api import Unavailable
from tests.core.ledger.build import Refused
from tests.service.running import TESTER, Running, claim, provider_id, running

SSD = frozenset({"STORAGE_DISK_SSD"})


def nodes(count: int, total: int = 4, first: int = 0) -> list[ProviderSpec]:
    """Describe providers, each a separate tree."""
    specs = {"VCPU": InventorySpec(total)}
    return [
        ProviderSpec(provider_id(n), f"node-{n}", None, specs, SSD, frozenset())
        for n in range(first, first + count)
    ]


async def upsert(one: Running, specs: list[ProviderSpec], teach: bool = False) -> list[Any]:
    """Execute a bulk request; return the outcomes, and the codes of refusals."""
    return [outcome_of(each) for each in await answers(one, specs, teach)]


def outcome_of(answer: Upserted) -> Any:
    """Return the outcome, or the code of a refusal."""
    return answer.refusal.code if answer.refusal else answer.outcome


async def answers(one: Running, specs: list[ProviderSpec], teach: bool = False) -> list[Upserted]:
    """Execute a bulk request."""
    service = one.service
    pieces = Pieces(service.turns)
    return await providers_upsert(service.index, service.transactor, pieces, TESTER, specs, teach)


async def audited(one: Running) -> list[tuple[str, Any]]:
    """Return the targets and contents of the audit rows, newest first."""
    rows, _ = await one.service.audit.page(None, 100)
    assert all((row.who, row.action) == (TESTER.who, "providers.bulk") for row in rows)
    return [(row.target, json.loads(row.after or "")) for row in rows]


def test_the_same_again_writes_nothing(tmp_path: Path) -> None:
    """3,100 unchanged providers need no transaction and get no new generation."""

    async def main() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            assert await upsert(one, nodes(3_100)) == [BulkResult.CREATED] * 3_100
            assert one.engine.transactions == -(-3_100 // UNIT_PROVIDERS)
            before, revision = one.engine.transactions, one.service.index.revision
            again = await answers(one, nodes(3_100))
            assert {each.outcome for each in again} == {BulkResult.UNCHANGED}
            assert (one.engine.transactions, one.service.index.revision) == (before, revision)
            assert {each.generation for each in again} == {2}

    asyncio.run(main())


def test_only_the_difference_is_written(tmp_path: Path) -> None:
    """Two changes in a hundred take one transaction; answers are in the order of the request."""

    async def main() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            await upsert(one, nodes(100))
            before = one.engine.transactions
            mixed = nodes(50) + nodes(2, 9, 50) + nodes(48, 4, 52)
            outcomes = await upsert(one, mixed)
            assert one.engine.transactions == before + 1
            assert [n for n, each in enumerate(outcomes) if each is BulkResult.UPDATED] == [50, 51]

    asyncio.run(main())


def test_a_refused_tree_affects_no_other(tmp_path: Path) -> None:
    """A tree of a unit is refused as a whole; the other trees and later units are changed."""

    async def main() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            await upsert(one, nodes(1))
            await one.submit(claim(1, provider_id(0), VCPU=1))
            child = ProviderSpec(provider_id(500), "child", provider_id(0))
            empty = ProviderSpec(provider_id(0), inventories={})
            outcomes = await upsert(one, [child, *nodes(80, first=1), empty])
            assert outcomes[0] is Code.TREE_REFUSED and outcomes[-1] is Code.INVENTORY_IN_USE
            assert outcomes[1:-1] == [BulkResult.CREATED] * 80
            assert one.service.index.catalog.record(provider_id(500)) is None

    asyncio.run(main())


def test_trees_are_created_moved_and_renamed(tmp_path: Path) -> None:
    """A whole subtree moves below another root, which the same request creates."""

    async def main() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            a, b, c, d = (provider_id(n) for n in range(4))
            made = [ProviderSpec(c, "c", b), ProviderSpec(b, "b", a), ProviderSpec(a, "a")]
            assert await upsert(one, made) == [BulkResult.CREATED] * 3
            moved = [ProviderSpec(b, "b2", d), ProviderSpec(d, "d")]
            assert await upsert(one, moved) == [BulkResult.UPDATED, BulkResult.CREATED]
            record = one.service.index.catalog.record(c)
            assert record is not None and record.provider.root == d
            assert await upsert(one, [ProviderSpec(d, parent=c)]) == [Code.TREE_LOOP]

    asyncio.run(main())


def test_new_classes_and_traits(tmp_path: Path) -> None:
    """Unknown custom classes and traits are refused per provider, unless they may be created."""

    async def main() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            specs = nodes(2)
            specs.append(
                ProviderSpec(
                    provider_id(9),
                    "nine",
                    inventories={"CUSTOM_BM": InventorySpec(1)},
                    traits=frozenset({"CUSTOM_GOLD"}),
                )
            )
            assert await upsert(one, specs) == [*[BulkResult.CREATED] * 2, Code.CLASS_UNKNOWN]
            assert (await upsert(one, specs, teach=True))[2] is BulkResult.CREATED
            assert one.service.index.catalog.has_class("CUSTOM_BM")
            assert one.service.index.catalog.has_trait("CUSTOM_GOLD")

    asyncio.run(main())


def test_other_requests_run_between_units(tmp_path: Path) -> None:
    """A request that arrives during a bulk change is executed before its next unit."""

    async def main() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            one.engine.hold_commits()
            report = asyncio.ensure_future(upsert(one, nodes(5 * UNIT_PROVIDERS)))
            await one.engine.held.wait()
            other = asyncio.ensure_future(one.submit(vocabulary_cases.ClassEnsure("CUSTOM_A")))
            await asyncio.wait({other}, timeout=0)
            one.engine.continue_commits()
            await other
            assert len(one.service.index.catalog) <= 2 * UNIT_PROVIDERS
            assert await report == [BulkResult.CREATED] * 5 * UNIT_PROVIDERS

    asyncio.run(main())


def test_units_of_several_requests_are_not_piled_up(tmp_path: Path) -> None:
    """A request waits only for the unit in progress, however many units are left."""

    async def main() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            one.engine.hold_commits()
            reports = [
                asyncio.ensure_future(upsert(one, nodes(UNIT_PROVIDERS, first=n * UNIT_PROVIDERS)))
                for n in range(8)
            ]
            await one.engine.held.wait()
            await asyncio.wait(reports, timeout=0)
            assert one.service.transactor.waiting == 0
            other = asyncio.ensure_future(one.submit(vocabulary_cases.ClassEnsure("CUSTOM_A")))
            await asyncio.wait({other}, timeout=0)
            one.engine.continue_commits()
            await other
            assert len(one.service.index.catalog) == UNIT_PROVIDERS
            await asyncio.gather(*reports)
            assert one.engine.transactions == 8 + 1

    asyncio.run(main())


def test_changes_unknown_to_the_index_are_decided_by_the_rows(tmp_path: Path) -> None:
    """Of two requests for the same new provider one creates it, the other finds it unchanged."""

    async def main() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            same = [TreesUpsert([nodes(1)], set(), False, TESTER) for _ in range(2)]
            first, second = await one.outcomes(*same)
            assert [outcome_of(*first), outcome_of(*second)] == [
                BulkResult.CREATED,
                BulkResult.UNCHANGED,
            ]
            elsewhere = [
                TreesUpsert([[ProviderSpec(provider_id(7), "x", parent)]], set(), False, TESTER)
                for parent in (None, provider_id(0))
            ]
            third, fourth = await one.outcomes(*elsewhere)
            assert [outcome_of(*third), outcome_of(*fourth)] == [
                BulkResult.CREATED,
                Code.PROVIDER_GENERATION,
            ]

    asyncio.run(main())


def test_a_database_that_fails_in_between(tmp_path: Path) -> None:
    """Finished providers are reported as such, the rest as refused; if none is, it is an error."""

    async def main() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            specs = nodes(3 * UNIT_PROVIDERS)
            one.engine.failures.append(Unavailable("disk full"))
            with Refused(Code.UNAVAILABLE):
                await upsert(one, specs)
            await upsert(one, specs[:1])
            one.engine.failures.append(Unavailable("disk full"))
            outcomes = await upsert(one, specs)
            assert outcomes == [BulkResult.UNCHANGED, *[Code.UNAVAILABLE] * (len(specs) - 1)]
            assert (await upsert(one, specs)).count(BulkResult.CREATED) == len(specs) - 1

    asyncio.run(main())


def test_every_transaction_that_changes_something_is_audited(tmp_path: Path) -> None:
    """Each unit counts its own outcomes; a unit that changes nothing leaves no row."""

    async def main() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            bad = ProviderSpec(provider_id(9_999), "bad", traits=frozenset({"NO_SUCH"}))
            assert await upsert(one, [bad]) == [Code.TRAIT_UNKNOWN]
            await upsert(one, [*nodes(UNIT_PROVIDERS + 1), bad])
            counts = {"created": 0, "updated": 0, "unchanged": 0, "refused": 0}
            assert sorted(await audited(one), key=itemgetter(0)) == [
                ("2 providers", {**counts, "created": 1, "refused": 1}),
                (f"{UNIT_PROVIDERS} providers", {**counts, "created": UNIT_PROVIDERS}),
            ]

    asyncio.run(main())


def test_a_change_that_cannot_be_audited_is_not_made(tmp_path: Path) -> None:
    """The audit row is in the transaction of the change."""

    async def main() -> None:
        path = tmp_path / "m.sqlite"
        async with running(path) as one:
            await upsert(one, nodes(UNIT_PROVIDERS))
            with apsw.Connection(str(path)) as other:
                other.execute(
                    "CREATE TRIGGER full BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'x'); END"
                )
            with Refused(Code.UNAVAILABLE):
                await upsert(one, nodes(1, first=UNIT_PROVIDERS))
            assert len(one.service.index.catalog) == UNIT_PROVIDERS
            with apsw.Connection(str(path)) as other:
                other.execute("DROP TRIGGER full")
            other.close()
            assert await upsert(one, nodes(1, first=UNIT_PROVIDERS)) == [BulkResult.CREATED]
            assert len(await audited(one)) == 2

    asyncio.run(main())


def test_bounds(tmp_path: Path) -> None:
    """Too many providers or one described twice are refused; an empty request is not."""

    async def main() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            with Refused(Code.LIMIT_EXCEEDED):
                await upsert(one, nodes(5_001))
            with Refused(Code.INVALID):
                await upsert(one, nodes(2) + nodes(1))
            assert await upsert(one, []) == []

    asyncio.run(main())


def test_a_unit_holds_whole_trees() -> None:
    """A tree is never split across units, and units are not larger than necessary."""
    top = ProviderId("top")
    tree = [ProviderSpec(ProviderId(f"{n}"), parent=top) for n in range(50)]
    many = [[ProviderSpec(ProviderId(f"x{n}"))] for n in range(40)]
    units = list(bulk.units([tree, *many]))
    assert [sum(map(len, unit)) for unit in units] == [50, UNIT_PROVIDERS, 40 - UNIT_PROVIDERS]
