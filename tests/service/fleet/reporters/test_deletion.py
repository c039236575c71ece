"""Groups of reporters that are deleted: what goes, what stays, and who may use the name again."""

import asyncio
from collections.abc import Awaitable, Iterable
from pathlib import Path

import pytest

from moorage.core.admission.model import PoolSpec
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from moorage.core.fleet.reporters import DeletedGroup
from moorage.core.ledger.model import ProviderRecord
from moorage.core.ledger.reported import Mode, Node
from moorage.core.limits import MEMBERS_KEPT_HOURS
from moorage.serve.metrics import ReporterMetrics
from moorage.service.admission.pool_cases import PoolDelete, PoolPut
from moorage.service.app import Service
from moorage.service.fair_turns import Pieces
from moorage.service.fleet.group_clearing import PINS_AT_ONCE
from moorage.service.fleet.report_bounds import ReportedNodes
from moorage.service.fleet.reporter_cases import ClearUnit, Join, Leave, Observe, PinNodes, Sender
from moorage.service.ledger.bulk import UNIT_PROVIDERS
from moorage.store.changelog import changes_load
from moorage.store.fleet import check, reads
from tests.service.fleet.alone import play as alone
from tests.service.fleet.pair import ROUNDS, Pair, play, refused
from tests.service.fleet.reporters.reporting import (
    GROUP,
    SSD,
    instance,
    join,
    nodes,
    outcomes,
    report,
    silence,
)
from tests.service.running import TESTER, Running, claim, provider_id

PATIENCE_SECONDS = 60.0
STATEMENTS_MAX = 20
"""Of one unit, however much it clears."""


async def quiet(pair: Pair) -> None:
    """Let deleted groups be cleared only when a test wants it."""
    for service in pair.services:
        await service.reporters.clearing.stop()


async def fill(service: Service, count: int = 70) -> str:
    """Let a member report nodes and fall silent, some of them pinned; return its token."""
    token = (await join(service, "a")).member.token
    await report(service, "a", token, nodes(count))
    await service.transactor.submit(
        PinNodes(GROUP, [provider_id(n) for n in range(count)], "a", TESTER)
    )
    await silence(service, "a")
    return token


async def records(service: Service, numbers: Iterable[int]) -> list[ProviderRecord]:
    """Return providers as the index has them."""
    catalog = await service.index.current()
    found = [catalog.record(provider_id(n)) for n in numbers]
    return [record for record in found if record is not None]


async def left(service: Service) -> list[DeletedGroup]:
    """Return what is left of deleted groups."""
    _, found = await service.engine.read(reads.deleted_load())
    return [one for one, _ in found]


def test_providers_stay_and_nothing_else(url: str) -> None:
    """Members, pins, observed members and marks go; traits, generations and other groups stay."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.services
        await quiet(pair)
        token = await fill(one)
        await one.transactor.submit(Observe(GROUP, ["c"], Instant(1), ""))
        await one.transactor.submit(Join("others", "x", instance(9), 30 * SECOND))
        shared = await one.transactor.submit(Join("others", "x", instance(9), 30 * SECOND))
        sender = Sender("others", "x", shared.member.token, Mode.OWNER)
        both = [Node(node.uuid, traits=frozenset()) for node in nodes(5)]
        assert (await _send(one, sender, both)) == ["updated"] * 5
        before = await records(one, range(70))
        begin = (await one.engine.read(changes_load(0))).revision

        await other.reporters.delete(GROUP, TESTER)
        for service in pair.services:
            for lost in (service.reporters.nodes, service.reporters.ghosts, service.reporters.pins):
                with refused(Code.GROUP_NOT_FOUND):
                    await lost(GROUP, None, 10)
            with refused(Code.GROUP_NOT_FOUND):
                await service.reporters.group(GROUP)
        assert (await one.reporters.groups(None, 10))[0] == ["others"]
        with refused(Code.FENCED):
            await report(one, "a", token, nodes(1))
        assert await one.engine.read_aside(check.differences_load()) == []

        await asyncio.gather(*(each.reporters.clearing.look() for each in pair.services))
        assert [one.cleared for one in await left(one)] == [True]
        assert await one.engine.read_aside(check.differences_load()) == []
        for service in pair.services:
            after = await records(service, range(70))
            assert [each.provider for each in after] == [each.provider for each in before]
            assert all(each.tags.traits == SSD for each in after)
            marks = [[mark.group for mark in each.tags.reported] for each in after]
            assert marks == [["others"]] * 5 + [[]] * 65
        said = await one.engine.read(
            changes_load(begin, kinds=("reporter_group", "reporter", "pin"))
        )
        changes = [change for batch in said.batches for change in batch.others]
        assert changes[:2] == [("reporter_group", GROUP, None), ("reporter", f"{GROUP}/a", None)]
        assert changes[2:] == [("pin", f"{GROUP}/{provider_id(n)}", None) for n in range(70)]
        audited, _ = await one.audit.page(None, 10)
        assert [row.action for row in audited].count("reporters.delete") == 1

    play(url, scenario)


async def _send(service: Service, sender: Sender, sent: list[Node]) -> list[str]:
    return outcomes(
        await service.reporters.report(sender, ReportedNodes(sent), Pieces(service.turns), TESTER)
    )


def test_ghosts_stay_closed(url: str) -> None:
    """A ghost is one no more, and stays reserved until somebody deletes the provider."""

    async def scenario(pair: Pair) -> None:
        one, _ = pair.services
        token = (await join(one, "a")).member.token
        await report(one, "a", token, nodes(2))
        await pair.submit(claim(1, provider_id(0), VCPU=1))
        gone = [Node(provider_id(0), absent=True)]
        assert outcomes(await report(one, "a", token, gone)) == ["updated"]
        await silence(one, "a")
        await one.reporters.delete(GROUP, TESTER)
        await cleared(one)
        (ghost,) = await records(one, [0])
        assert (ghost.tags.reported, ghost.inventories["VCPU"].reserved) == ((), 4)

    play(url, scenario)


async def cleared(service: Service) -> None:
    """Return when the loops have cleared all deleted groups."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not all(one.cleared for one in await left(service)):
            await service.engine.woken(0.01)


def test_refusals(url: str) -> None:
    """A group with live members, or that a pool follows, stays; so does one that is not there."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.services
        with refused(Code.GROUP_NOT_FOUND):
            await one.reporters.delete(GROUP, TESTER)
        await join(one, "a")
        await join(one, "b")
        await silence(one, "a")
        spec = PoolSpec(
            limit=0, ttl=60 * SECOND, ttl_max=60 * SECOND, member_group=GROUP, per_member=1
        )
        await pair.submit(PoolPut("deploy", TESTER, spec, None))
        with pytest.raises(Error, match=r"1 live member \(b\): stop these reporters") as refusal:
            await other.reporters.delete(GROUP, TESTER)
        assert refusal.value.code is Code.GROUP_IN_USE
        await silence(one, "b")
        with pytest.raises(Error, match=r"1 pool \(deploy\) still has units") as refusal:
            await other.reporters.delete(GROUP, TESTER)
        assert refusal.value.code is Code.GROUP_IN_USE
        assert len((await one.reporters.group(GROUP)).members) == 2
        await pair.submit(PoolDelete("deploy", TESTER))
        await other.reporters.delete(GROUP, TESTER)
        with refused(Code.GROUP_NOT_FOUND):
            await one.reporters.delete(GROUP, TESTER)

    play(url, scenario)


def test_the_name_is_used_again(url: str) -> None:
    """By new instances, once all is cleared; the deleted ones, and their tokens, stay fenced."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.services
        await quiet(pair)
        await join(one, "a", 1)
        old = await join(one, "a", 2)
        await report(one, "a", old.member.token, nodes(3))
        await silence(one, "a")
        await one.reporters.delete(GROUP, TESTER)
        for service in pair.services:
            for n in (1, 2):
                with refused(Code.FENCED):
                    await join(service, "a", n)
            with refused(Code.GROUP_BEING_DELETED):
                await join(service, "a", 3)
            with refused(Code.GROUP_BEING_DELETED):
                await service.transactor.submit(Observe(GROUP, ["c"], Instant(1), ""))
            with refused(Code.GROUP_NOT_FOUND):
                await service.transactor.submit(PinNodes(GROUP, [provider_id(0)], "a", TESTER))
            await service.transactor.submit(Leave(GROUP, "a", instance(2)))
        await other.reporters.clearing.look()
        with refused(Code.FENCED):
            await join(one, "b", 2)
        new = await join(one, "a", 3)
        numbers = [int(each.member.token.rpartition(".")[2]) for each in (old, new)]
        assert numbers[1] == numbers[0] + 1
        with refused(Code.FENCED):
            await report(one, "a", old.member.token, nodes(3))
        assert outcomes(await report(other, "a", new.member.token, nodes(3))) == ["updated"] * 3
        await silence(one, "a")
        await one.reporters.delete(GROUP, TESTER)
        await one.reporters.clearing.look()
        for n in (1, 2, 3):
            with refused(Code.FENCED):
                await join(other, "a", n)

    play(url, scenario)


def test_a_late_unit_of_an_earlier_deletion(url: str) -> None:
    """It neither declares the later one cleared, nor touches a group that exists again."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.services
        await quiet(pair)
        await fill(one, 3)
        await one.reporters.delete(GROUP, TESTER)
        (first,) = await left(one)
        await one.reporters.clearing.look()
        pair.clock.at += SECOND
        token = (await join(one, "a", 2)).member.token
        await report(one, "a", token, nodes(3))
        late = ClearUnit(first, [provider_id(0)], [provider_id(0)], last=True)
        await other.transactor.submit(late)
        assert len((await one.reporters.nodes(GROUP, None, 10))[0]) == 3
        await silence(one, "a")
        await one.reporters.delete(GROUP, TESTER)
        await other.transactor.submit(late)
        assert [each.cleared for each in await left(one)] == [False]

    play(url, scenario)


def test_another_start_goes_on(url: str) -> None:
    """What a process has not cleared before its end is cleared after the next start."""

    async def scenario(pair: Pair) -> None:
        await quiet(pair)
        await fill(pair.services[0])
        await pair.services[0].reporters.delete(GROUP, TESTER)
        (deleted,) = await left(pair.services[0])
        await pair.submit(ClearUnit(deleted, [provider_id(n) for n in range(UNIT_PROVIDERS)]))
        await pair.end()
        await pair.start()
        await cleared(pair.services[0])
        after = await records(pair.services[1], range(70))
        assert [each.tags.reported for each in after] == [()] * 70

    play(url, scenario)


def test_it_is_forgotten_after_a_day(url: str) -> None:
    """Not before, and not while there is something left of it."""

    async def scenario(pair: Pair) -> None:
        one, _ = pair.services
        await quiet(pair)
        await fill(one, 3)
        await one.reporters.delete(GROUP, TESTER)
        day = MEMBERS_KEPT_HOURS * 3_600 * SECOND
        pair.clock.at += day - SECOND
        await one.reporters.clearing.look()
        await one.reporters.clearing.look()
        assert len(await left(one)) == 1
        pair.clock.at += 2 * SECOND
        await join(one, "a", 9)
        await one.reporters.clearing.look()
        assert await left(one) == []

    play(url, scenario)


def test_it_races_with_joins_and_pools(url: str) -> None:
    """A group is either deleted, or somebody joins it or a pool follows it; never both."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.services
        spec = PoolSpec(
            limit=0, ttl=60 * SECOND, ttl_max=60 * SECOND, member_group=GROUP, per_member=1
        )
        seen = set()
        for n in range(ROUNDS):
            await one.transactor.submit(Observe(GROUP, ["c"], Instant(n), ""))
            racing = [
                other.reporters.delete(GROUP, TESTER),
                join(one, "a", n + 1),
                pair.submit(PoolPut("deploy", TESTER, spec, None)),
            ]
            order = [0, 1, 2][n % 3 :] + [0, 1, 2][: n % 3]
            made = dict(zip(order, await outcomes_of([racing[k] for k in order]), strict=True))
            seen.add((made[0], made[1]))
            assert made[2] is None
            if made[0] is None:
                assert made[1] is Code.GROUP_BEING_DELETED
                await cleared(one)
            else:
                assert (made[0], made[1]) == (Code.GROUP_IN_USE, None)
                await one.transactor.submit(Leave(GROUP, "a", None))
            await pair.submit(PoolDelete("deploy", TESTER))
        assert len(seen) > 1

    play(url, scenario)


async def outcomes_of(racing: Iterable[Awaitable[object]]) -> list[Code | None]:
    """Return what each is refused with; None: it is done."""
    done = await asyncio.gather(*racing, return_exceptions=True)
    assert all(isinstance(each, Error) for each in done if isinstance(each, BaseException)), done
    return [each.code if isinstance(each, Error) else None for each in done]


def test_metrics_of_a_deleted_group(url: str) -> None:
    """All processes say that it was deleted, so that nobody misses its reports, until it begins."""

    def said(service: Service) -> list[tuple[str, str]]:
        _, *families = ReporterMetrics(service.reporters).collect()
        samples = [sample for family in families for sample in family.samples]
        return [(sample.name, sample.labels["group"]) for sample in samples]

    async def scenario(pair: Pair) -> None:
        await quiet(pair)
        await fill(pair.services[0])
        await pair.services[0].reporters.delete(GROUP, TESTER)
        for service in pair.services:
            await service.reporters.clearing.look()
            assert said(service) == [("moorage_reporter_group_deleted", GROUP)]
        await join(pair.services[0], "a", n=2)
        for service in pair.services:
            await service.reporters.clearing.look()
            assert said(service) == []

    play(url, scenario)


def test_units_are_small(tmp_path: Path) -> None:
    """However many nodes a group has, a transaction clears a few of them."""

    async def scenario(one: Running) -> None:
        await one.service.reporters.clearing.stop()
        await fill(one.service, 1_500)
        one.service.reporters.reported_at[GROUP] = one.clock.now()
        before = one.engine.transactions
        await one.service.reporters.delete(GROUP, TESTER)
        await one.service.reporters.clearing.look()
        units = -(-1_500 // UNIT_PROVIDERS) + -(-1_500 // PINS_AT_ONCE)
        assert one.engine.transactions - before == 1 + units + 1
        assert max(one.engine.statements[before:]) <= STATEMENTS_MAX
        assert one.service.reporters.reported_at == {}

    alone(tmp_path, scenario)
