"""Reporters through the service: cost, fencing, takeovers, restarts, on both engines."""

import asyncio
from pathlib import Path

from msgspec.structs import replace

from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code
from moorage.core.ledger.reported import Node
from moorage.serve.metrics import ReporterMetrics
from moorage.service.fleet import reporter_cases
from moorage.service.fleet.reporter_cases import Join, Leave, Observe, PinNodes
from moorage.service.ledger import provider_cases, vocabulary_cases
from moorage.service.ledger.bulk import UNIT_PROVIDERS
from moorage.store.api import Unavailable
from moorage.wire import rendezvous
from tests.service.fleet.alone import play as alone
from tests.service.fleet.pair import Pair, play, refused
from tests.service.fleet.reporters.reporting import (
    GROUP,
    SSD,
    accepted,
    instance,
    join,
    node,
    nodes,
    outcomes,
    report,
    silence,
)
from tests.service.running import TESTER, Running, claim, provider_id

STATEMENTS_MAX = 20
"""Of one unit, however many nodes it has."""
READS_MAX = 5
"""One by the report; the loops of the service read, too."""


def test_the_same_again_writes_nothing(tmp_path: Path) -> None:
    """3,100 unchanged nodes need no transaction, and one read; changed ones small units."""

    async def scenario(one: Running) -> None:
        member = await join(one.service, "a")
        before = one.engine.transactions
        sent = nodes(3_100)
        first = await report(one.service, "a", member.member.token, sent)
        assert outcomes(first) == ["created"] * 3_100
        assert one.engine.transactions - before == -(-3_100 // UNIT_PROVIDERS)
        assert max(one.engine.statements[before:]) <= STATEMENTS_MAX
        before, revision = one.engine.transactions, one.service.index.revision
        reads = one.engine.reads
        again = await report(one.service, "a", member.member.token, sent)
        assert outcomes(again) == ["unchanged"] * 3_100
        assert [each.generation for each in again] == [each.generation for each in first]
        assert one.engine.transactions == before
        assert one.engine.reads <= reads + READS_MAX
        assert one.service.index.revision == revision

    alone(tmp_path, scenario)


def test_metrics(tmp_path: Path) -> None:
    """Outcomes and codes are counted, and the time of the last report of each group is known."""

    async def scenario(one: Running) -> None:
        token = (await join(one.service, "a")).member.token
        await one.service.transactor.submit(PinNodes(GROUP, [provider_id(0)], "b", TESTER))
        for _ in range(2):
            await report(one.service, "a", token, nodes(3))
        counted, last, deleted = ReporterMetrics(one.service.reporters).collect()
        found = {sample.labels["outcome"]: sample.value for sample in counted.samples}
        assert found == {"created": 2, "unchanged": 2, "not_owner": 2}
        (sample,) = last.samples
        assert (sample.labels["group"], sample.value) == (GROUP, one.clock.at / SECOND)
        assert deleted.samples == []

    alone(tmp_path, scenario)


def test_a_sign_of_life_raises_no_revision(url: str) -> None:
    """A renewal is known to all processes, but is not in the change rows."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.services
        first = await join(one, "a")
        revision = await pair.revision()
        again = await join(other, "a")
        assert (again.member.token, again.live) == (first.member.token, ["a"])
        assert await pair.revision() == revision
        await join(one, "a", 2)
        assert await pair.revision() == revision + 1

    play(url, scenario)


def test_a_new_instance_fences_the_old_one(url: str) -> None:
    """All that the old one sends is refused, also if nothing would change."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.services
        old = (await join(one, "a", 1)).member.token
        await report(one, "a", old, nodes(3))
        new = (await join(other, "a", 2)).member.token
        with refused(Code.FENCED):
            await report(one, "a", old, nodes(3))
        with refused(Code.FENCED):
            await join(one, "a", 1)
        with refused(Code.FENCED):
            await one.transactor.submit(Leave(GROUP, "a", instance(1)))
        assert outcomes(await report(one, "a", new, nodes(3))) == ["unchanged"] * 3

    play(url, scenario)


def test_members_share_the_nodes(url: str) -> None:
    """Each is refused the nodes of the other, also unchanged ones; both agree with clients."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.services
        tokens = {}
        for at, name in ((one, "a"), (other, "b")):
            tokens[name] = (await join(at, name)).member.token
        for _ in range(2):
            for at, name in ((one, "a"), (other, "b")):
                answers = await report(at, name, tokens[name], nodes(40))
                for n, outcome in enumerate(outcomes(answers)):
                    owns = rendezvous.owner(provider_id(n), ["a", "b"]) == name
                    assert (outcome != "not_owner") == owns
        await other.transactor.submit(Leave(GROUP, "b", instance(1)))
        left = outcomes(await report(one, "a", tokens["a"], nodes(40)))
        assert left == ["unchanged"] * 40

    play(url, scenario)


def test_a_silent_member_is_replaced(url: str) -> None:
    """Its nodes belong to the others, until it is heard of again."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.services
        a = (await join(one, "a")).member.token
        b = (await join(other, "b")).member.token
        await silence(one, "b")
        assert outcomes(await report(one, "a", a, nodes(20))) == ["created"] * 20
        assert outcomes(await report(other, "b", b, nodes(20))) == ["not_owner"] * 20
        again = await join(one, "b")
        assert (again.member.token, again.live) == ("1.3", ["a", "b"])
        with refused(Code.FENCED):  # what it sent before it fell silent
            await report(other, "b", b, nodes(20))
        assert "unchanged" in outcomes(await report(other, "b", again.member.token, nodes(20)))

    play(url, scenario)


def test_a_renewed_token(url: str) -> None:
    """A report that arrives after its sender has asked for a new token is refused."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.services
        old = (await join(one, "a")).member
        wanted = (old.name, old.instance, old.ttl)
        renewed = await other.transactor.submit(Join(old.group, *wanted, renew=True))
        assert (renewed.member.token, renewed.member.instance) == ("1.2", old.instance)
        with refused(Code.FENCED):
            await report(one, "a", old.token, nodes(1))
        stays = await one.transactor.submit(Join(old.group, *wanted))
        assert stays.member.token == "1.2"
        assert outcomes(await report(one, "a", "1.2", nodes(1))) == ["created"]

    play(url, scenario)


def test_a_takeover_between_two_units(tmp_path: Path) -> None:
    """The rest of the report is refused; each unit asks again who owns its nodes."""

    async def scenario(one: Running) -> None:
        token = (await join(one.service, "a")).member.token
        await report(one.service, "a", token, nodes(1))
        one.engine.hold_commits()
        sending = asyncio.ensure_future(report(one.service, "a", token, nodes(100)))
        await one.engine.held.wait()
        joining = asyncio.ensure_future(join(one.service, "a", 2))
        await asyncio.sleep(0)
        one.engine.continue_commits()
        answers = outcomes(await sending)
        assert answers == [
            "unchanged",
            *["created"] * UNIT_PROVIDERS,
            *["fenced"] * (99 - UNIT_PROVIDERS),
        ]
        await joining

    alone(tmp_path, scenario)


def test_a_lost_owner_between_two_units(tmp_path: Path) -> None:
    """A member that falls silent while its report is written loses the rest, and no more."""

    async def scenario(one: Running) -> None:
        token = (await join(one.service, "a")).member.token
        await report(one.service, "a", token, nodes(64, total=3))
        one.engine.hold_commits()
        sending = asyncio.ensure_future(report(one.service, "a", token, nodes(64)))
        await one.engine.held.wait()
        one.clock.at += 10 * SECOND
        joining = asyncio.ensure_future(join(one.service, "b"))
        await asyncio.sleep(0)
        one.engine.continue_commits()
        await joining
        found = await sending
        answers = outcomes(found)
        assert answers[:UNIT_PROVIDERS] == ["updated"] * UNIT_PROVIDERS
        for n, outcome in enumerate(answers[UNIT_PROVIDERS:], UNIT_PROVIDERS):
            owns = rendezvous.owner(provider_id(n), ["a", "b"]) == "a"
            assert outcome == ("updated" if owns else "not_owner")
            record = one.service.index.catalog.record(provider_id(n))
            assert record is not None
            assert found[n].generation == record.provider.generation

    alone(tmp_path, scenario)


def test_time_decides(tmp_path: Path) -> None:
    """A member is live for its TTL while the service runs; a restart gives it another one."""

    async def scenario(one: Running) -> None:
        await join(one.service, "a")
        await join(one.service, "b", ttl=100 * SECOND)
        for passed, live in ((14, ["a", "b"]), (14, ["a", "b"]), (3, ["b"])):
            one.clock.at += passed * SECOND
            assert (await join(one.service, "b", ttl=100 * SECOND)).live == live
        view = await one.service.reporters.group(GROUP)
        assert [member.name for member in view.members] == ["a", "b"]

    alone(tmp_path, scenario)


def test_silence_counts_while_nothing_happens(tmp_path: Path) -> None:
    """The service notes that it is alive, so a quiet hour is no outage."""

    async def scenario(one: Running) -> None:
        token = (await join(one.service, "a")).member.token
        for _ in range(8):
            one.clock.at += 5 * SECOND
            await one.service.admission.sweeper.sweep()
        assert outcomes(await report(one.service, "a", token, nodes(1))) == ["not_owner"]

    alone(tmp_path, scenario)


def test_a_restart_makes_no_member_late(url: str) -> None:
    """Members and pins are as before; a member has its whole TTL to be heard of again."""

    async def scenario(pair: Pair) -> None:
        one, _ = pair.services
        token = (await join(one, "a")).member.token
        await one.transactor.submit(PinNodes(GROUP, [provider_id(0)], "b", TESTER))
        await pair.end()
        pair.clock.at += 3_600 * SECOND
        await pair.start()
        one, _ = pair.services
        answers = await report(one, "a", token, nodes(2))
        assert outcomes(answers) == ["not_owner", "created"]

    play(url, scenario)


def test_pins(url: str) -> None:
    """Pinned nodes move at once, by thousands; pages list them; repeats change nothing."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.services
        a = (await join(one, "a")).member.token
        b = (await join(one, "b")).member.token
        pinned = [provider_id(n) for n in range(2_500)]
        group = await one.transactor.submit(PinNodes(GROUP, pinned, "b", TESTER))
        assert group.pins_generation == 1
        again = await other.transactor.submit(PinNodes(GROUP, pinned[:9], "b", TESTER))
        assert again.pins_generation == 1
        assert outcomes(await report(one, "a", a, nodes(9))) == ["not_owner"] * 9
        assert outcomes(await report(other, "b", b, nodes(9))) == ["created"] * 9
        listed, cursor = [], None
        while True:
            page, cursor = await other.reporters.pins(GROUP, cursor, 1_000)
            listed += page
            if cursor is None:
                break
        assert listed == [(uuid, "b") for uuid in pinned]
        assert (await other.reporters.group(GROUP)).pinned == {"b": 2_500}
        await other.transactor.submit(PinNodes(GROUP, pinned, None, TESTER))
        assert await one.reporters.pins(GROUP, None, 9) == ([], None)
        assert await pair.actions(GROUP) == ["reporters.pin"] * 2

    play(url, scenario)


def test_custom_traits_of_others_stay(url: str) -> None:
    """A report that changes a node keeps the custom traits of others, which it does not name."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.services
        token = (await join(one, "a")).member.token
        await report(one, "a", token, [replace(node(0), traits=frozenset({"CUSTOM_A"}))])
        await pair.submit(vocabulary_cases.TraitEnsure("CUSTOM_B"))
        record = (await one.index.current()).record(provider_id(0))
        assert record is not None
        both = frozenset({"CUSTOM_A", "CUSTOM_B"})
        await pair.submit(
            provider_cases.TraitsReplace(provider_id(0), record.provider.generation, both)
        )
        answers = await report(other, "a", token, [node(0)])
        assert outcomes(answers) == ["updated"]
        record = (await one.index.current()).record(provider_id(0))
        assert record is not None
        assert record.tags.traits == SSD | {"CUSTOM_B"}

    play(url, scenario)


def test_ghosts_are_listed(url: str) -> None:
    """Providers that are gone but allocated, until they are removed."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.services
        token = (await join(one, "a")).member.token
        await report(one, "a", token, nodes(3))
        await pair.submit(claim(1, provider_id(1), VCPU=1))
        gone = [Node(provider_id(n), absent=True) for n in range(3)]
        answers = await report(other, "a", token, gone)
        assert outcomes(answers) == ["removed", "updated", "removed"]
        assert [each.ghost for each in answers] == [False, True, False]
        assert outcomes(await report(one, "a", token, gone)) == ["unchanged"] * 3
        assert await one.reporters.ghosts(GROUP, None, 9) == ([provider_id(1)], None)
        with refused(Code.GROUP_NOT_FOUND):
            await one.reporters.ghosts("other", None, 9)
        await report(one, "a", token, [node(1)])
        assert await other.reporters.ghosts(GROUP, None, 9) == ([], None)

    play(url, scenario)


def test_observed_members_stay(url: str) -> None:
    """The last list is known to all, and is not changed by a repeat."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.services
        at = Instant(1_000)
        await one.transactor.submit(Observe(GROUP, ["c1", "c2"], at, ""))
        revision = await pair.revision()
        await other.transactor.submit(Observe(GROUP, ["c2", "c1"], Instant(at + 1), ""))
        assert await pair.revision() == revision
        with refused(Code.OBSERVER_FAILED):
            await other.transactor.submit(Observe(GROUP, [], Instant(at + 2), "timeout"))
        group = (await other.reporters.group(GROUP)).group
        assert (group.observed, group.seen_at) == (("c1", "c2"), at + 1)

    play(url, scenario)


def test_a_failing_database_refuses_the_rest(tmp_path: Path) -> None:
    """What was written is answered; nothing at all is written if it fails at once."""

    async def scenario(one: Running) -> None:
        token = (await join(one.service, "a")).member.token
        one.engine.failures.append(Unavailable("full"))
        with refused(Code.UNAVAILABLE):
            await report(one.service, "a", token, nodes(2))
        await report(one.service, "a", token, nodes(1))
        one.engine.failures.append(Unavailable("full"))
        answers = await report(one.service, "a", token, nodes(2))
        assert outcomes(answers) == ["unchanged", "unavailable"]
        assert accepted(answers) == set()
        one.engine.failures.clear()

    alone(tmp_path, scenario)


def test_reports_are_audited_once_per_unit(tmp_path: Path) -> None:
    """Only those that change something."""

    async def scenario(one: Running) -> None:
        token = (await join(one.service, "a")).member.token
        for _ in range(2):
            await report(one.service, "a", token, nodes(40))
        rows, _ = await one.service.audit.page(None, 9)
        assert [(row.action, row.target) for row in rows] == [("reporters.report", "ironic/a")] * 2

    alone(tmp_path, scenario)


def test_two_instances_in_one_batch(tmp_path: Path) -> None:
    """The first one learns that it is fenced."""

    async def scenario(one: Running) -> None:
        cases = [reporter_cases.Join(GROUP, "a", instance(n), 30 * SECOND) for n in (1, 2)]
        first, second = await one.outcomes(*cases)
        assert first is Code.FENCED
        assert second.member.instance == instance(2)

    alone(tmp_path, scenario)
