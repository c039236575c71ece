"""Saved values are loaded: facts, guards, snapshots, change rows, reads."""

import asyncio
from collections import Counter
from itertools import islice

import pytest

from moorage.core.clock import Instant
from moorage.core.ledger.facts import Changes, Facts, Keys
from moorage.core.ledger.model import CustomName, Inventory, Provider, Tags
from moorage.store import changelog, changelog_compaction
from moorage.store.api import Conflict, Engine
from moorage.store.batch import batch_save
from moorage.store.changelog import WHOLE
from moorage.store.ledger import reads as ledger_reads
from moorage.store.ledger import save as ledger_save
from moorage.store.ledger.save import LedgerPart
from tests.store.build import (
    CLASSES,
    NOW,
    TRAITS,
    Batch,
    aggregate_id,
    claimed,
    consumer_id,
    custom_name_new,
    facts_of,
    index_load,
    provider_deleted,
    provider_id,
    provider_new,
    provider_renamed,
    run,
    stream,
    tagged,
    together,
)

A, B, C, D = (provider_id(n) for n in range(4))


def test_providers_with_inventories(engine: Engine) -> None:
    """A provider is loaded as it was saved, with name, inventories and used amounts."""

    async def scenario() -> None:
        await run(engine, provider_new(0, VCPU=8, DISK_GB=100))
        await run(engine, claimed(1, {0: {"VCPU": 3}}))
        facts = await facts_of(engine, providers={A, B})
        assert facts.providers == {A: Provider(A, "name-0", 2, None, A, NOW, Instant(NOW + 1))}
        assert facts.names == {"name-0": A}
        assert facts.inventories[A]["VCPU"].used == 3
        assert facts.inventories[A]["DISK_GB"] == Inventory(100, created_at=NOW, updated_at=NOW)

    asyncio.run(scenario())


def test_extreme_values(engine: Engine) -> None:
    """The largest ratio and the largest integers are stored exactly."""
    inventory = Inventory(
        2**31 - 1,
        2**31 - 1,
        allocation_ratio=3.40282e38,
        offered=2**62,
        withheld=True,
        used=2**62,
        created_at=NOW,
        updated_at=NOW,
    )

    async def scenario() -> None:
        await run(engine, provider_new(0))
        change = Changes(inventories={(A, "VCPU"): inventory})
        await run(engine, Batch(Keys(), [lambda facts, now: change]))
        assert (await facts_of(engine, providers={A})).inventories == {A: {"VCPU": inventory}}

    asyncio.run(scenario())


def test_consumers_are_loaded_with_their_providers(engine: Engine) -> None:
    """A consumer is loaded with its allocations and with their providers and inventories."""

    async def scenario() -> None:
        await run(engine, together(provider_new(0, VCPU=8), provider_new(1, DISK_GB=9)))
        await run(engine, claimed(5, {0: {"VCPU": 2}, 1: {"DISK_GB": 4}}))
        facts = await facts_of(engine, consumers={consumer_id(5), consumer_id(6)})
        (consumer,) = facts.consumers.values()
        assert consumer.allocations == {A: {"VCPU": 2}, B: {"DISK_GB": 4}}
        assert (consumer.generation, consumer.project_id) == (1, "project")
        assert facts.providers.keys() == facts.inventories.keys() == {A, B}
        await run(engine, claimed(5, {1: {"DISK_GB": 5}}))
        facts = await facts_of(engine, consumers={consumer_id(5)})
        assert facts.consumers[consumer_id(5)].allocations == {B: {"DISK_GB": 5}}
        assert facts.consumers[consumer_id(5)].generation == 2
        await run(engine, claimed(5, {}))
        assert (await facts_of(engine, consumers={consumer_id(5)})).consumers == {}
        assert (await facts_of(engine, providers={B})).inventories[B]["DISK_GB"].used == 0

    asyncio.run(scenario())


def test_names_and_children_and_trees(engine: Engine) -> None:
    """A name loads its provider, a parent its children, and any member the whole tree."""

    async def scenario() -> None:
        await run(engine, together(provider_new(0), provider_new(3)))
        await run(engine, together(provider_new(1, parent=0), provider_new(2, parent=0)))
        facts = await facts_of(engine, names={"name-1", "free"})
        assert facts.names == {"name-1": B}
        facts = await facts_of(engine, parents={A, B})
        assert facts.children == {A: {B, C}, B: set()}
        assert facts.providers.keys() == {A, B, C}
        facts = await facts_of(engine, trees={C})
        assert facts.providers.keys() == {A, B, C}
        assert facts.children == {A: {B, C}, B: set(), C: set()}
        assert facts.providers[C].root == A

    asyncio.run(scenario())


def test_tags_and_custom_names(engine: Engine) -> None:
    """Traits, aggregates and custom names are loaded as saved, with their numbers of uses."""

    async def scenario() -> None:
        words = together(
            custom_name_new("CUSTOM_A", "CUSTOM_T"), custom_name_new("CUSTOM_AB", "CUSTOM_T_2")
        )
        await run(engine, words)
        await run(engine, together(provider_new(0, CUSTOM_A=1), provider_new(1, CUSTOM_AB=1)))
        group = {aggregate_id(1), aggregate_id(2)}
        await run(engine, together(tagged(0, {"CUSTOM_T"}, group), tagged(1, {"CUSTOM_T_2"})))
        facts = await facts_of(
            engine,
            tags={A},
            classes={"CUSTOM_A", "CUSTOM_X"},
            traits={"CUSTOM_T", "CUSTOM_X"},
            class_uses={"CUSTOM_A", "CUSTOM_X"},
            trait_uses={"CUSTOM_T", "CUSTOM_X"},
        )
        assert facts.tags == {A: Tags(frozenset({"CUSTOM_T"}), frozenset(group), NOW)}
        assert facts.classes == {"CUSTOM_A": CustomName("CUSTOM_A", NOW, NOW)}
        assert facts.traits == {"CUSTOM_T": CustomName("CUSTOM_T", NOW, NOW)}
        assert Counter(facts.class_uses) == {"CUSTOM_A": 1}
        assert Counter(facts.trait_uses) == {"CUSTOM_T": 1}

    asyncio.run(scenario())


def test_a_deleted_provider_leaves_no_rows(engine: Engine) -> None:
    """Inventories and tags are deleted too, even if the provider is created again at once."""

    async def scenario() -> None:
        await run(engine, provider_new(0, VCPU=8))
        await run(engine, tagged(0, {"STORAGE_DISK_SSD"}))
        again = together(provider_deleted(0), provider_new(0, DISK_GB=1))
        await run(engine, again, Instant(NOW + 1))
        facts = await facts_of(engine, providers={A}, tags={A})
        assert facts.inventories[A].keys() == {"DISK_GB"}
        assert facts.tags_of(A).traits == frozenset()
        assert facts.providers[A].created_at == NOW + 1
        await run(engine, provider_deleted(0))
        _, _, left = await engine.read_aside(index_load())
        assert not left

    asyncio.run(scenario())


def test_names_may_be_exchanged_within_a_batch(engine: Engine) -> None:
    """Providers of a batch may exchange names, and new ones may take names that became free."""

    async def scenario() -> None:
        await run(engine, together(provider_new(0), provider_new(1)))
        swap = [
            provider_renamed(0, "aside"),
            provider_renamed(1, "name-0"),
            provider_renamed(0, "name-1"),
        ]
        await run(engine, together(*swap))
        facts = await facts_of(engine, providers={A, B})
        assert facts.names == {"name-1": A, "name-0": B}
        await run(engine, together(provider_renamed(0, "other"), _named(2, "name-1")))
        facts = await facts_of(engine, providers={A, C})
        assert facts.names == {"other": A, "name-1": C}

    asyncio.run(scenario())


def _named(n: int, name: str) -> Batch:
    uuid = provider_id(n)
    new = Provider(uuid, name, 0, None, uuid, NOW, NOW)
    return Batch(Keys(names={name}), [lambda facts, now: Changes(providers={uuid: new})])


def test_a_class_is_renamed_everywhere(engine: Engine) -> None:
    """Inventories and allocations follow a renamed class, also rows that were not loaded."""

    async def scenario() -> None:
        await run(engine, custom_name_new("CUSTOM_OLD"))
        await run(engine, provider_new(0, CUSTOM_OLD=5))
        await run(engine, claimed(1, {0: {"CUSTOM_OLD": 2}}))
        changes = Changes(
            classes={"CUSTOM_OLD": None, "CUSTOM_NEW": CustomName("CUSTOM_NEW", NOW, NOW)},
            renamed_classes={"CUSTOM_OLD": "CUSTOM_NEW"},
        )
        await run(engine, Batch(Keys(), [lambda facts, now: changes]))
        facts = await facts_of(engine, consumers={consumer_id(1)}, classes={"CUSTOM_OLD"})
        assert facts.consumers[consumer_id(1)].allocations == {A: {"CUSTOM_NEW": 2}}
        assert facts.inventories[A].keys() == {"CUSTOM_NEW"}
        assert facts.classes == {}

    asyncio.run(scenario())


@pytest.mark.parametrize("what", ["provider", "consumer"])
def test_guards(engine: Engine, what: str) -> None:
    """A provider or consumer changed meanwhile is a conflict; nothing is saved."""

    async def scenario() -> None:
        await run(engine, provider_new(0, VCPU=8))
        await run(engine, claimed(1, {0: {"VCPU": 1}}))
        keys = {"providers": {A}} if what == "provider" else {"consumers": {consumer_id(1)}}
        facts = await facts_of(engine, **keys)
        old = ledger_save.before_of(facts)
        await run(engine, claimed(1, {0: {"VCPU": 2}}))
        changes = Changes(providers={A: facts.providers[A]} if what == "provider" else {})
        if what == "consumer":
            changes.consumers[consumer_id(1)] = None
        before = await engine.read_aside(index_load())
        with pytest.raises(Conflict):
            async with engine.transaction() as transaction:
                await transaction.run(batch_save([LedgerPart(old, changes)], [], NOW))
        assert await engine.read_aside(index_load()) == before

    asyncio.run(scenario())


def test_nothing_to_save(engine: Engine) -> None:
    """A batch without changes raises no revision and writes no change row."""

    async def scenario() -> None:
        assert await run(engine, provider_new(0)) == 1
        assert await run(engine, Batch(Keys(), [])) == 0
        tail = await engine.read(changelog.changes_load(0))
        assert (tail.revision, len(tail.batches)) == (1, 1)

    asyncio.run(scenario())


def test_a_transaction_without_commit_is_rolled_back(engine: Engine) -> None:
    """Afterwards the next transaction can run."""

    async def scenario() -> None:
        with pytest.raises(KeyError):
            async with engine.transaction() as transaction:
                new = Changes(providers={A: Provider(A, "a", 0, None, A, NOW, NOW)})
                nothing = ledger_save.before_of(Facts(CLASSES, TRAITS))
                await transaction.run(batch_save([LedgerPart(nothing, new)], [], NOW))
                raise KeyError
        assert (await engine.read_aside(index_load()))[1] == 0
        assert await run(engine, provider_new(0)) == 1

    asyncio.run(scenario())


def test_a_commit_survives_its_caller(engine: Engine) -> None:
    """A caller that waits for a commit may be cancelled; the commit ends by itself."""

    async def scenario() -> None:
        batch = asyncio.create_task(run(engine, provider_new(0)))
        await asyncio.wait([batch], timeout=0)
        batch.cancel()
        await asyncio.wait([batch])
        assert await run(engine, provider_new(1)) in (1, 2)

    asyncio.run(scenario())


def test_followers_reach_the_same_state(engine: Engine) -> None:
    """Applying the change rows to an older snapshot gives the newest one."""

    async def scenario() -> None:
        followed, at = Facts(CLASSES, TRAITS), 0
        for batch in islice(stream(seed=11), 40):
            await run(engine, batch)
        await run(engine, provider_new(100, VCPU=1))
        await run(engine, provider_deleted(100))
        place: tuple[int, int] | None = (0, WHOLE)
        while place is not None:
            tail = await engine.read(changelog.changes_load(*place, rows_max=7))
            for number, (revision, changes, *_) in enumerate(tail.batches):
                # The first may be the rest of a batch that was cut.
                assert revision == at + 1 or (revision == at and not number)
                followed.apply(changes)
                at = revision
            place = tail.place
        assert at == tail.revision
        epoch, revision, now = await engine.read_aside(index_load())
        assert (epoch, revision) == (1, 42)
        assert followed.providers == now.providers
        assert {
            (uuid, n): i for uuid, of in followed.inventories.items() for n, i in of.items()
        } == (now.inventories)
        assert {u: t for u, t in followed.tags.items() if t.traits or t.aggregates} == now.tags
        assert followed.traits == now.traits
        consumers = set(followed.consumers)
        assert (await facts_of(engine, consumers=consumers)).consumers == followed.consumers  # type: ignore[arg-type]  # plain strings stand for ids

    asyncio.run(scenario())


def test_compaction(engine: Engine) -> None:
    """Change rows are deleted if they are old and numerous; a late follower can detect it."""

    async def marked(old: int, rows: int) -> int:
        plan = changelog_compaction.compaction_mark_load(
            Instant(NOW + old), changelog_compaction.ChangelogRetention(rows)
        )
        return await engine.read_aside(plan)

    async def scenario() -> None:
        for n in range(10):
            await run(engine, provider_new(n), Instant(NOW + n))
        mark = await marked(9, 2)
        assert mark == 8, "the newest two rows are kept"
        assert await marked(3, 0) == 3, "the others are too recent"
        assert await marked(9, 99) == 0
        for reached in (4, 8, 8):
            async with engine.transaction() as transaction:
                assert (
                    await transaction.run(changelog_compaction.compact(mark, revisions_max=4))
                    == reached
                )
                await transaction.commit()
        tail = await engine.read(changelog.changes_load(0))
        assert (tail.compacted, tail.revision) == (8, 10)
        assert [revision for revision, *_ in tail.batches] == [9, 10]

    asyncio.run(scenario())


def test_wipe(engine: Engine) -> None:
    """After a wipe the ledger is empty and followers must read a snapshot again."""

    async def scenario() -> None:
        for batch in islice(stream(seed=12), 5):
            await run(engine, batch)
        async with engine.transaction() as transaction:
            revision = await transaction.run(changelog.wipe())
            await transaction.commit()
        assert await engine.read_aside(index_load()) == (1, revision, Changes())
        assert (await engine.read(changelog.changes_load(0))).compacted == revision == 6

    asyncio.run(scenario())


def test_reads(engine: Engine) -> None:
    """A consumer, the allocations of a provider, the usages of a project and of one user."""

    async def scenario() -> None:
        await run(engine, provider_new(0, VCPU=80, DISK_GB=80))
        claims = [
            claimed(1, {0: {"VCPU": 2}}),
            claimed(2, {0: {"VCPU": 3, "DISK_GB": 4}}, user="other"),
        ]
        await run(engine, together(*claims))
        consumer = await engine.read(ledger_reads.consumer_load(consumer_id(2)))
        assert consumer is not None
        assert consumer.allocations == {A: {"VCPU": 3, "DISK_GB": 4}}
        assert await engine.read(ledger_reads.consumer_load(consumer_id(3))) is None
        assert await engine.read(ledger_reads.provider_allocations_load(A)) == [
            (consumer_id(1), 1, {"VCPU": 2}, NOW),
            (consumer_id(2), 1, {"DISK_GB": 4, "VCPU": 3}, NOW),
        ]
        assert await engine.read(ledger_reads.provider_allocations_load(B)) == []
        project = await engine.read(ledger_reads.usages_load("project", None))
        assert project.amounts == [(None, "DISK_GB", 4), (None, "VCPU", 5)]
        assert project.consumers == {None: 2}
        one = await engine.read(ledger_reads.usages_load("project", "user"))
        assert (one.amounts, one.consumers) == ([(None, "VCPU", 2)], {None: 1})
        nobody = await engine.read(ledger_reads.usages_load("nobody", None))
        assert (nobody.amounts, nobody.consumers) == ([], {})

    asyncio.run(scenario())
