"""What is durable is answered so, whatever those who follow the commits make of it."""

import asyncio
from pathlib import Path

import pytest

from moorage.core.admission.facts import Changes
from moorage.core.errors import Code
from moorage.core.ids import LeaseId
from moorage.core.ledger.facts import Changes as LedgerChanges
from moorage.core.ledger.search import Catalog
from moorage.core.service_time import When
from tests.service.pools import ask, by_hand, spec, wish
from tests.service.running import CLASSES, TESTER, TRAITS, Running, claim


class Broken(Catalog):
    """A catalog that cannot follow what is committed."""

    def apply(self, changes: LedgerChanges) -> None:
        raise ZeroDivisionError


def test_a_fault_of_a_follower_is_nobodys_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Who has asked gets its lease, those who follow after it are told, and the fault is logged."""

    async def scene(one: Running) -> None:
        admission, heard = one.service.admission, set[LeaseId]()

        def faulty(changes: Changes, when: When) -> None:
            raise ZeroDivisionError

        def sound(changes: Changes, when: When) -> None:
            heard.update(changes.leases)

        one.service.transactor.follow(faulty)
        one.service.transactor.follow(sound)
        await admission.pool_put("p", spec(), None, TESTER)
        holder = (await ask(admission, "1", "p")).lease
        waiting = asyncio.create_task(admission.ask(wish("2", "p"), TESTER, 5.0))
        while not one.service.admission.waiting.count:
            await asyncio.wait([waiting], timeout=0)
        assert (await admission.revoke(holder.id, "a test", TESTER)).lease.cause == "revoked"
        second = (await waiting).lease
        assert second.state == "granted"
        assert heard == {holder.id, second.id}
        assert one.service.transactor.counters.failed == 0

    by_hand(tmp_path, scene)
    assert "ZeroDivisionError" in caplog.text


def test_an_index_that_cannot_follow_is_read_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The claim stands and is answered so; searches find what is free after it."""

    async def scene(one: Running) -> None:
        uuid = await one.provider(1, VCPU=8)
        one.service.index.catalog = Broken(CLASSES, TRAITS)
        assert await one.outcomes(claim(1, uuid, VCPU=3)) == [None]
        assert one.used(uuid) == 3
        assert await one.outcomes(claim(2, uuid, VCPU=3)) == [None]
        assert one.used(uuid) == 6
        assert one.fatal == []

    by_hand(tmp_path, scene)
    assert "the index cannot follow" in caplog.text


def test_an_index_that_cannot_be_read_either_ends_the_process(tmp_path: Path) -> None:
    """Nothing more is accepted by a process that would search in what is wrong."""

    async def scene(one: Running) -> None:
        uuid = await one.provider(1, VCPU=8)
        broken = one.service.index.catalog = Broken(CLASSES, TRAITS)
        del broken.standard_classes  # without them no other catalog can be made
        assert await one.outcomes(claim(1, uuid, VCPU=3)) == [None]
        assert [type(error) for error in one.fatal] == [AttributeError]
        assert await one.outcomes(claim(2, uuid, VCPU=3)) == [Code.UNAVAILABLE]

    by_hand(tmp_path, scene)
