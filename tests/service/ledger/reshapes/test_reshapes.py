"""Previews, commits by digest, repetitions and undoing, on both engines."""

import asyncio
import threading
from typing import Any

import msgspec
import pytest

from moorage.core.errors import Code, Error
from moorage.core.ids import ProviderId
from moorage.core.ledger.facts import Facts, Keys
from moorage.core.ledger.import_mark import Beginning
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.model import Withheld
from moorage.core.ledger.reshaping.plan import Generations, ReshapePlan
from moorage.core.ledger.reshaping.planning import Planned
from moorage.core.ledger.reshaping.tenants import Leases
from moorage.core.ledger.reshaping.violations import ViolationCode
from moorage.service.access.audit import AuditFilter
from moorage.service.ledger import provider_cases
from moorage.service.ledger.reshapes import ReshapeRefusal, task_of
from moorage.store import changelog
from moorage.store.ledger.load import facts_load
from tests.service.ledger.imports.conftest import Database
from tests.service.ledger.reshapes.trees import (
    HOST,
    LEFT,
    RIGHT,
    TRAIT,
    commit,
    elsewhere,
    expecting,
    host,
    preview,
    reallocated,
    records,
    split,
    state,
    undo,
    wish,
)
from tests.service.running import CLASSES, TESTER, TRAITS, claim, consumer_id

GUESTS = {1: 3, 2: 5, 3: 4}
ASSIGN = {1: LEFT, 2: LEFT, 3: RIGHT}
PLAN = split(ASSIGN, GUESTS)

SECONDS = 60.0


async def refused(awaitable: Any) -> ReshapeRefusal:
    """Return the refusal of a plan."""
    with pytest.raises(ReshapeRefusal) as refusal:
        await awaitable
    return refusal.value


def codes(planned: Planned) -> list[ViolationCode]:
    """Return the codes of all violations."""
    return [one.code for one in planned.violations]


def test_a_preview_writes_nothing_and_waits_for_nobody(database: Database) -> None:
    """It is made while another transaction holds the locks that a commit needs; the revision stays.

    The control: a commit waits for that transaction.
    """

    async def scenario() -> None:
        async with database.served() as service:
            await host(service, GUESTS)
            before = await service.engine.read(changelog.clock_load())
            keys = Keys(providers={HOST}, trees={HOST}, consumers={consumer_id(1)})
            async with service.engine.transaction() as transaction:
                await transaction.run(facts_load(keys, CLASSES, TRAITS))
                shown = await asyncio.wait_for(preview(service, PLAN), SECONDS)
                waiting = asyncio.ensure_future(commit(service, PLAN))
                done, _ = await asyncio.wait([waiting], timeout=0.5)
                assert not done, "a commit takes no lock either, so this shows nothing"
            assert codes(shown.planned) == []
            assert reallocated(shown.planned) == {consumer_id(n) for n in GUESTS}
            assert shown.revision == ".".join(map(str, before))
            assert (await waiting).record.digest == shown.planned.digest
            assert await service.engine.read(changelog.clock_load()) != before

    asyncio.run(scenario())


def test_a_preview_shows_what_is_above_what_is_vacated(database: Database) -> None:
    """A commit does not load that: it would lock the tree. Both have the same effects."""

    async def scenario() -> None:
        async with database.served() as service:
            await host(service, GUESTS)
            await commit(service, PLAN)
            who = consumer_id(1)
            heal = ReshapePlan(vacate={who: frozenset({LEFT})}, release=frozenset({who}))
            shown = (await preview(service, heal)).planned
            assert {one.provider for one in shown.summary.providers} == {HOST, LEFT}
            done = await commit(service, heal, 2, shown.digest)
            assert {one.provider for one in done.summary.providers} == {LEFT}
            assert done.effects == shown.effects

    asyncio.run(scenario())


def test_claims_go_on_beside_a_preview(database: Database) -> None:
    """While a plan is thought about, a claim on its source is granted."""

    async def scenario() -> None:
        async with database.served() as service:
            await host(service, GUESTS)
            task = task_of(PLAN)
            begun, go = threading.Event(), threading.Event()

            def slowly(facts: Facts, now: Any, leases: Leases) -> Planned:
                begun.set()
                assert go.wait(SECONDS)
                return task.decide(facts, now, leases)

            thinking = asyncio.ensure_future(
                service.reshapes.preview(msgspec.structs.replace(task, decide=slowly))
            )
            assert await asyncio.to_thread(begun.wait, SECONDS)
            try:
                await asyncio.wait_for(service.transactor.submit(claim(9, HOST, VCPU=1)), SECONDS)
            finally:
                go.set()
            assert consumer_id(9) not in (await thinking).planned.generations.consumers
            later = await preview(service, PLAN)
            assert codes(later.planned) == [ViolationCode.UNASSIGNED]

    asyncio.run(scenario())


def test_a_preview_agrees_with_the_commit(database: Database) -> None:
    """The effects that were shown are those that are done, and the audit log names the reshape."""

    async def scenario() -> None:
        async with database.served() as service:
            await host(service, GUESTS)
            shown = (await preview(service, PLAN)).planned
            done = await commit(service, PLAN, digest=shown.digest)
            assert done.effects == shown.effects
            assert done.summary == shown.summary
            found = await records(service)
            assert found[LEFT].tags.traits == {TRAIT}
            assert found[LEFT].inventories["VCPU"].used == 8
            assert found[RIGHT].inventories["VCPU"].used == 4
            assert "VCPU" not in found[HOST].inventories
            for uuid, generation in done.generations.providers.items():
                assert found[uuid].provider.generation == generation
            consumer = await service.reads.consumer(consumer_id(3))
            assert consumer is not None
            assert consumer.allocations == {RIGHT: {"VCPU": 4}}
            assert done.generations.consumers[consumer_id(3)] == consumer.generation
            assert await service.reshapes.read(done.record.id) == done
            listed, following = await service.reshapes.page(None, 10)
            assert (listed, following) == ([done.record], None)
            rows, _ = await service.audit.page(None, 10, AuditFilter(done.record.id))
            assert [row.action for row in rows] == ["reshape.commit"]
            noted = msgspec.json.decode(rows[0].after or "null")
            assert noted["digest"] == shown.digest
            assert (noted["providers"], noted["consumers"]) == (3, 3)
            cursor = await service.watch.now()
            assert cursor is not None

    asyncio.run(scenario())


def test_claims_of_others_do_not_stand_in_the_way(database: Database) -> None:
    """Generations that rise between preview and commit change nothing that was promised.

    The control: with the generations of the preview, the same plan is refused.
    """

    async def scenario() -> None:
        async with database.served() as service:
            await host(service, GUESTS)
            shown = (await preview(service, PLAN)).planned
            await service.transactor.submit(claim(7, HOST, DISK_GB=5))
            places = {HOST: {"VCPU": 3, "DISK_GB": 2}}
            await service.transactor.submit(elsewhere(1, places, 1))
            strict = expecting(PLAN, shown.generations)
            late = await refused(commit(service, strict))
            assert late.code is Code.RESHAPE_REFUSED
            assert set(codes(late.planned)) == {ViolationCode.GENERATION_CHANGED}
            assert {one.provider or one.consumer for one in late.planned.violations} == {
                HOST,
                consumer_id(1),
            }
            done = await commit(service, PLAN, digest=shown.digest)
            assert done.record.digest == shown.digest
            consumer = await service.reads.consumer(consumer_id(1))
            assert consumer is not None
            assert consumer.allocations == {LEFT: {"VCPU": 3}, HOST: {"DISK_GB": 2}}

    asyncio.run(scenario())


def test_other_effects_are_refused_with_a_fresh_plan(database: Database) -> None:
    """What was shown would no longer happen, so nothing does; the answer has the new plan."""

    async def scenario() -> None:
        async with database.served() as service:
            await host(service, GUESTS)
            plan = split(ASSIGN, GUESTS, accept_drift=frozenset({consumer_id(1)}))
            shown = (await preview(service, plan)).planned
            assert codes(shown) == []
            await service.transactor.submit(elsewhere(1, {HOST: {"VCPU": 2}}, 1))
            before = await state(service, GUESTS)
            changed = await refused(commit(service, plan, digest=shown.digest))
            assert changed.code is Code.RESHAPE_CHANGED
            assert changed.planned.digest != shown.digest
            assert codes(changed.planned) == []
            assert await state(service, GUESTS) == before
            again = await commit(service, plan, digest=changed.planned.digest)
            assert again.effects == changed.planned.effects

    asyncio.run(scenario())


def test_all_violations_are_in_one_answer(database: Database) -> None:
    """Everything that is wrong is named at once, and nothing is changed."""

    async def scenario() -> None:
        async with database.served() as service:
            await host(service, GUESTS)
            wrong = msgspec.structs.replace(
                split({1: {LEFT: 4}}, GUESTS),
                rename={ProviderId("99999999-aaaa-4aaa-8aaa-aaaaaaaaaaaa"): "nobody"},
                traits={LEFT: frozenset({"CUSTOM_NOT_THERE"})},
            )
            before = await state(service, GUESTS)
            shown = codes((await preview(service, wrong)).planned)
            assert {
                ViolationCode.PROVIDER_UNKNOWN,
                ViolationCode.TRAIT_UNKNOWN,
                ViolationCode.DRIFT,
                ViolationCode.UNASSIGNED,
            } <= {*shown}
            assert shown.count(ViolationCode.UNASSIGNED) == 2
            refusal = await refused(commit(service, wrong))
            assert refusal.code is Code.RESHAPE_REFUSED
            assert codes(refusal.planned) == shown
            assert await state(service, GUESTS) == before
            assert await service.reshapes.page(None, 10) == ([], None)

    asyncio.run(scenario())


def test_a_repetition_is_answered_again(database: Database) -> None:
    """The answer of a commit may be lost: the same request is not carried out twice.

    Another request under its id is refused.
    """

    async def scenario() -> None:
        async with database.served() as service:
            await host(service, GUESTS)
            done = await commit(service, PLAN)
        async with database.served() as service:
            before = await state(service, GUESTS)
            assert await commit(service, PLAN) == done
            assert await commit(service, PLAN, digest=done.record.digest) == done
            for other, digest in ((ReshapePlan(), None), (PLAN, "0" * 64)):
                with pytest.raises(Error) as reused:
                    await commit(service, other, digest=digest)
                assert reused.value.code is Code.KEY_REUSED
            assert await state(service, GUESTS) == before
            refusal = await refused(commit(service, PLAN, n=2))
            assert refusal.code is Code.RESHAPE_REFUSED, "without its id it is another request"

    asyncio.run(scenario())


def test_undo_and_undo_again(database: Database) -> None:
    """Undoing leads back, also after a restart; undoing that does the reshape again."""

    async def scenario() -> None:
        async with database.served() as service:
            await host(service, GUESTS)
            before = await state(service, GUESTS)
            await commit(service, PLAN)
            after = await state(service, GUESTS)
        async with database.served() as service:
            shown = await service.reshapes.undo_preview(wish(1).id)
            assert codes(shown.planned) == []
            assert await state(service, GUESTS) == after, "a preview has undone it"
            back = await undo(service, 1, 2)
            assert back.record.digest == shown.planned.digest
            assert back.record.undoes == wish(1).id
            assert await state(service, GUESTS) == before
            assert await undo(service, 1, 2) == back, "a repetition"
            for again in (undo(service, 1, 3), service.reshapes.undo_preview(wish(1).id)):
                with pytest.raises(Error) as twice:
                    await again
                assert twice.value.code is Code.RESHAPE_UNDONE
            with pytest.raises(Error) as unknown:
                await undo(service, 8, 9)
            assert unknown.value.code is Code.RESHAPE_NOT_FOUND
        async with database.served() as service:
            await undo(service, 2, 4)
            assert await state(service, GUESTS) == after
            await undo(service, 4, 5)
            assert await state(service, GUESTS) == before
            listed, _ = await service.reshapes.page(None, 10)
            ids = {n: wish(n).id for n in (1, 2, 4, 5)}
            assert {one.id: (one.undoes, one.undone_by) for one in listed} == {
                ids[1]: (None, ids[2]),
                ids[2]: (ids[1], ids[4]),
                ids[4]: (ids[2], ids[5]),
                ids[5]: (ids[4], None),
            }
            rows, _ = await service.audit.page(None, 10, AuditFilter(ids[2]))
            assert [row.action for row in rows] == ["reshape.undo"]
            assert msgspec.json.decode(rows[0].after or "null")["undoes"] == ids[1]

    asyncio.run(scenario())


def test_undoing_is_refused_where_something_has_changed(database: Database) -> None:
    """Claims of others that fit do not matter; a guest on a new child, and another trait, do."""

    async def scenario() -> None:
        async with database.served() as service:
            await host(service, GUESTS)
            await commit(service, PLAN)
            await service.transactor.submit(claim(7, HOST, DISK_GB=5))
            assert codes((await service.reshapes.undo_preview(wish(1).id)).planned) == []
            await service.transactor.submit(claim(8, RIGHT, VCPU=1))
            generation = (await records(service))[LEFT].provider.generation
            await service.transactor.submit(
                provider_cases.TraitsReplace(LEFT, generation, frozenset())
            )
            refusal = await refused(undo(service, 1, 2))
            assert refusal.code is Code.RESHAPE_REFUSED
            found = refusal.planned.violations
            assert any(one.consumer == consumer_id(8) for one in found), found
            changed = [one for one in found if one.code is ViolationCode.CHANGED_SINCE]
            assert LEFT in {one.provider for one in changed}, found

    asyncio.run(scenario())


def test_a_reshape_that_is_too_long_to_be_kept_is_refused(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is done that could not be undone."""

    async def scenario() -> None:
        async with database.served() as service:
            await host(service, GUESTS)
            with monkeypatch.context() as patched:
                patched.setattr("moorage.service.ledger.reshapes.RESHAPE_BYTES_MAX", 500)
                with pytest.raises(Error) as long:
                    await commit(service, PLAN)
            assert long.value.code is Code.LIMIT_EXCEEDED
            assert LEFT not in await records(service)
            await commit(service, PLAN)

    asyncio.run(scenario())


def test_hosts_with_too_many_guests_are_refused(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not even loaded, neither for a preview nor for a commit nor to undo."""

    async def scenario() -> None:
        async with database.served() as service:
            await host(service, GUESTS)
            await commit(service, PLAN)
            await undo(service, 1, 2)
            with monkeypatch.context() as patched:
                patched.setattr("moorage.store.ledger.load.HOLDERS_MAX", len(GUESTS) - 1)
                asked = (preview(service, PLAN), commit(service, PLAN, 3), undo(service, 2, 3))
                for one in asked:
                    with pytest.raises(Error) as many:
                        await one
                    assert many.value.code is Code.LIMIT_EXCEEDED
            await commit(service, PLAN, 3)

    asyncio.run(scenario())


def test_an_import_refuses_plans(database: Database) -> None:
    """While a ledger is imported, neither a preview nor a commit is answered."""

    async def scenario() -> None:
        async with database.served() as service:
            await service.imports.begin(Beginning("elsewhere"), TESTER)
            for asked in (preview(service, PLAN), commit(service, PLAN)):
                with pytest.raises(Error) as refusal:
                    await asked
                assert refusal.value.code is Code.IMPORTING
            await service.imports.abort(TESTER)

    asyncio.run(scenario())


def test_a_drain_of_a_plan_is_in_force_with_it(database: Database) -> None:
    """Nothing new lands on what a plan drains, or on what it creates below; undo opens it again."""

    async def scenario() -> None:
        async with database.served() as service:
            await host(service, GUESTS)
            plan = split(ASSIGN, GUESTS, drain={HOST: "broken fan"})
            shown = (await preview(service, plan)).planned
            assert (shown.violations, shown.summary.providers[0].provider) == ((), HOST)
            await commit(service, plan, digest=shown.digest)
            for record in (await records(service)).values():
                assert record.provider.withheld == Withheld("drained: broken fan", HOST)
            for refused_one in (claim(7, HOST, DISK_GB=5), claim(7, RIGHT, VCPU=1)):
                with pytest.raises(Error) as closed:
                    await service.transactor.submit(refused_one)
                assert closed.value.code is Code.CAPACITY_EXCEEDED
            assert await service.operations.check() == []
            await undo(service, 1, 2)
            await service.transactor.submit(claim(7, HOST, DISK_GB=5, VCPU=1))
            assert (await records(service))[HOST].provider.withheld is None

    asyncio.run(scenario())


def test_followers_learn_of_reshapes(database: Database) -> None:
    """The change feed has a record of each, and says when it is undone."""

    async def scenario() -> None:
        async with database.served() as service:
            await host(service, GUESTS)
            cursor = await service.watch.now()
            await commit(service, PLAN)
            await undo(service, 1, 2)
            window = await service.watch.window(cursor)
            rows = [one.row for one in window.changes if one.row.kind == "reshape"]
            assert [row.key for row in rows] == [wish(1).id, wish(2).id, wish(1).id]
            values = [msgspec.json.decode(row.body or "null") for row in rows]
            assert [one["undone_by"] for one in values] == [None, None, wish(2).id]

    asyncio.run(scenario())


def test_generations_of_a_preview_are_those_of_a_strict_commit(database: Database) -> None:
    """If nothing has happened in between, a plan with the generations of its preview is done."""

    async def scenario() -> None:
        async with database.served() as service:
            await host(service, GUESTS)
            shown = (await preview(service, PLAN)).planned
            assert shown.generations == Generations(
                {HOST: shown.generations.providers[HOST]},
                {consumer_id(n): 1 for n in GUESTS},
            )
            await commit(service, expecting(PLAN, shown.generations), digest=shown.digest)

    asyncio.run(scenario())


def test_a_host_may_shrink_below_what_it_had(database: Database) -> None:
    """Inventories that a plan sets are judged with everybody who is there."""

    async def scenario() -> None:
        async with database.served() as service:
            await host(service, GUESTS)
            specs = {"VCPU": InventorySpec(12), "DISK_GB": InventorySpec(1_000)}
            generation = (await records(service))[HOST].provider.generation
            await service.transactor.submit(
                provider_cases.InventoriesReplace(HOST, generation, specs)
            )
            plan = split(ASSIGN, GUESTS, total=6)
            shown = codes((await preview(service, plan)).planned)
            assert shown == [ViolationCode.CAPACITY]

    asyncio.run(scenario())
