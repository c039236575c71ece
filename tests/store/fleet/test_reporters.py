"""Reporters in rows: saved values are loaded, signs of life move one column, the check finds."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.fleet.facts import Changes, Facts, Keys
from moorage.core.fleet.reporters import DeletedGroup, Member, Pass, ReporterGroup
from moorage.core.ledger.facts import Changes as LedgerChanges
from moorage.core.ledger.facts import Keys as LedgerKeys
from moorage.core.ledger.model import Described, Reported, Tags
from moorage.store import changelog
from moorage.store.api import Engine, Plan
from moorage.store.changelog import changes_load
from moorage.store.check import content_plans
from moorage.store.fleet import check, load, reads
from moorage.store.open import open_engine
from tests.store import build
from tests.store.build import NOW, Batch, provider_id, provider_new
from tests.store.fleet.agents import run
from tests.store.test_check import plant
from tests.support import cluster

GROUP = ReporterGroup("g", NOW, NOW, 7, 3, ("c1", "c:2"), Instant(5), "page 2 \\ failed", 9)
MEMBER = Member("g", "a.b:1", "i", "1.7", 30, Instant(40), NOW, NOW, ("h",), Pass(NOW, 3, {"x": 1}))
NODE = provider_id(1)


def _facts(keys: Keys) -> Plan[Facts]:
    facts = Facts()
    yield from load.timeline_lock()
    yield from load.reporters_load(facts, keys)
    return facts


async def facts_of(engine: Engine, keys: Keys) -> Facts:
    """Load what keys name."""
    async with engine.transaction() as transaction:
        return await transaction.run(_facts(keys))


def some() -> Changes:
    """Return a group with a member and two pins."""
    return Changes(
        reporter_groups={"g": GROUP},
        members={("g", MEMBER.name): MEMBER},
        pins={("g", NODE): "a.b:1", ("g", provider_id(2)): "z"},
    )


def test_every_value_comes_back(engine: Engine) -> None:
    """Groups, members and pins are loaded as they were saved, by every read."""

    async def scenario() -> None:
        await run(engine, Keys(), lambda _: some())
        facts = await facts_of(engine, Keys(reporters={"g"}, pins={("g", NODE), ("h", NODE)}))
        assert facts.epoch == 1
        assert facts.reporter_groups == {"g": GROUP}
        assert facts.members == {("g", MEMBER.name): MEMBER}
        assert facts.pins == {("g", NODE): "a.b:1"}
        shared = await engine.read(reads.shared_load("g", [NODE]))
        assert (shared.group, shared.members, shared.pins) == (GROUP, [MEMBER], {NODE: "a.b:1"})
        assert await engine.read(reads.pins_count("g")) == {"a.b:1": 1, "z": 1}
        assert await engine.read(reads.pins_window("g", NODE, 9)) == [(provider_id(2), "z")]
        assert await engine.read(reads.reporter_groups_window("", 9)) == [GROUP]
        assert await facts_of(engine, Keys(reporters={"h"})) == Facts(epoch=1)

    asyncio.run(scenario())


def test_changes_and_signs_of_life(engine: Engine) -> None:
    """Deleted rows are gone; a sign of life raises no revision and is no damage."""

    async def scenario() -> None:
        await run(engine, Keys(), lambda _: some())
        begin = (await engine.read(changes_load(0))).revision
        key = ("g", MEMBER.name)
        last = Pass(Instant(9), 8, {"not_owner": 7})
        signs = Changes(heard={key: Instant(77)}, seen={"g": Instant(88)}, passes={key: last})
        await run(engine, Keys(), lambda _: signs)
        assert (await engine.read(changes_load(0))).revision == begin
        facts = await facts_of(engine, Keys(reporters={"g"}))
        assert facts.members == {key: replace(MEMBER, heard_until=Instant(77), last_pass=last)}
        assert facts.reporter_groups == {"g": replace(GROUP, seen_at=Instant(88))}
        assert await engine.read_aside(check.differences_load()) == []
        gone = Changes(members={key: None}, pins={("g", NODE): None}, reporter_groups={"g": None})
        await run(engine, Keys(), lambda _: gone)
        facts = await facts_of(engine, Keys(reporters={"g"}, pins={("g", NODE)}))
        assert (facts.members, facts.pins, facts.reporter_groups) == ({}, {}, {})
        tail = await engine.read(changes_load(begin, kinds=("reporter_group", "reporter", "pin")))
        assert tail.batches[-1].others == [
            ("reporter_group", "g", None),
            ("reporter", f"g/{MEMBER.name}", None),
            ("pin", f"g/{NODE}", None),
        ]

    asyncio.run(scenario())


def test_what_is_left_of_a_deleted_group(engine: Engine) -> None:
    """It comes back as it was saved, raises no revision, and explains pins without a group."""
    deleted = DeletedGroup("g", Instant(7), 5, 3, ("i", "j"))

    async def scenario() -> None:
        await run(engine, Keys(), lambda _: some())
        await run(engine, Keys(), lambda _: without_group())
        assert any(
            "pin of node" in line for line in await engine.read_aside(check.differences_load())
        )
        begin = (await engine.read(changes_load(0))).revision
        await run(engine, Keys(), lambda _: Changes(deleted_groups={"g": deleted}))
        assert (await engine.read(changes_load(0))).revision == begin
        facts = await facts_of(engine, Keys(reporters={"g"}))
        assert facts.deleted_groups == {"g": deleted}
        assert await engine.read_aside(check.differences_load()) == []
        assert (await engine.read(reads.deleted_load()))[1] == [(deleted, False)]
        cleared = replace(deleted, cleared=True)
        await run(engine, Keys(), lambda _: Changes(deleted_groups={"g": cleared}))
        assert await engine.read_aside(check.differences_load()) != []
        await run(engine, Keys(), lambda _: some())
        assert (await engine.read(reads.deleted_load()))[1] == [(cleared, True)]
        assert await engine.read(reads.pinned_window("g", NODE, 9)) == [provider_id(2)]
        await run(engine, Keys(), lambda _: Changes(deleted_groups={"g": None}))
        assert (await facts_of(engine, Keys(reporters={"g"}))).deleted_groups == {}

    asyncio.run(scenario())


def without_group() -> Changes:
    """Return the deletion of a group and its member, without its pins."""
    return Changes(reporter_groups={"g": None}, members={("g", MEMBER.name): None})


PLANTED = {
    "INSERT INTO deleted_reporter_group VALUES ('d', 1, 1, 1, '{', 0)": (
        "deleted group of reporters d: its instances cannot be read"
    ),
    "UPDATE reporter SET name = 'x'": "reporter g/x: name is 'x', it should be 'a.b:1'",
    "UPDATE reporter SET body = '{}'": "reporter g/a.b:1: its body cannot be read",
    "UPDATE reporter_group SET body = '1'": "group of reporters g: its body cannot be read",
    "DELETE FROM reporter_group": "reporter a.b:1: its group does not exist",
}


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_the_check_finds_planted_differences(tmp_path: Path, database: str) -> None:
    """Columns that differ from bodies, and rows of groups that do not exist."""
    url = cluster.fresh() if database == "postgresql" else f"sqlite:///{tmp_path}/a.db"
    engine = open_engine(url)

    async def scenario() -> None:
        for statement, expected in PLANTED.items():
            await run(engine, Keys(), lambda _: some())
            assert await engine.read_aside(check.differences_load()) == []
            await asyncio.to_thread(plant, engine, url, statement)
            found = await engine.read_aside(check.differences_load())
            assert any(line.startswith(expected) for line in found), found
            await wiped(engine)
        await engine.close()

    asyncio.run(scenario())


async def wiped(engine: Engine) -> None:
    """Empty the database."""
    async with engine.transaction() as transaction:
        await transaction.run(changelog.wipe())
        await transaction.commit()


def test_wipe_leaves_no_reporters(engine: Engine) -> None:
    """All tables are emptied."""

    async def scenario() -> None:
        await run(engine, Keys(), lambda _: some())
        left = DeletedGroup("d", Instant(7), 5, 3)
        await run(engine, Keys(), lambda _: Changes(deleted_groups={"d": left}))
        await wiped(engine)
        assert (await engine.read(reads.deleted_load()))[1] == []
        shared = await engine.read(reads.shared_load("g", [NODE]))
        assert (shared.group, shared.members, shared.pins) == (None, [], {})

    asyncio.run(scenario())


def test_what_reports_have_set_comes_back(engine: Engine) -> None:
    """It is stored with the traits; the check finds what is not there; ghosts are listed."""
    own = (Reported("g", frozenset({"HW_A"}), owned=True), Reported("h", frozenset(), ghost=True))
    tags = Tags(frozenset({"HW_A"}), frozenset(), NOW, own)
    adrift = Tags(frozenset(), frozenset(), NOW, own)

    async def scenario() -> None:
        await build.run(engine, provider_new(1))
        for one in (tags, adrift):
            given = LedgerChanges(tags={NODE: one})
            await build.run(engine, Batch(LedgerKeys(tags={NODE}), [lambda *_, g=given: g]))
            rows: list[Described] = []
            await engine.read_aside(changelog.snapshot_read(rows.extend))
            assert [row[2] for row in rows] == [one]
        lines: list[str] = []
        for plan in content_plans(frozenset(), frozenset({"HW_A"})):
            lines += await engine.read_aside(plan)
        assert lines == [f"traits of provider {NODE}: group 'g' has set HW_A, it is not there"]
        assert await engine.read(reads.ghosts_window("h", "", 9)) == [NODE]
        assert await engine.read(reads.ghosts_window("g", "", 9)) == []
        assert await engine.read(reads.ghosts_window("h", NODE, 9)) == []
        assert await engine.read(reads.reported_window("g", "", 9)) == [(NODE, False)]
        assert await engine.read(reads.reported_window("h", "", 9)) == [(NODE, True)]
        assert await engine.read(reads.reported_window("i", "", 9)) == []
        assert await engine.read(reads.marked_window("h", "", 9)) == [NODE]
        assert await engine.read(reads.marked_window("h", NODE, 9)) == []
        assert await engine.read(reads.marked_window("i", "", 9)) == []
        assert await engine.read(reads.reported_window("g", NODE, 9)) == []

    asyncio.run(scenario())
