"""A commit is final: an exception of a follower never reaches the caller."""

import asyncio
from pathlib import Path

import pytest

from moorage.core.admission.facts import Changes
from moorage.core.errors import Code
from moorage.core.ids import LeaseId
from moorage.core.ledger.facts import Changes as LedgerChanges
from moorage.core.ledger.search import Catalog
from moorage.core.service_time import When
from moorage.service.admission.ending import LeaseRevoke
from moorage.service.admission.lease_cases import OnBehalf
from tests.service.pools import ask, pool_put, spec, wish, with_manual_clock
from tests.service.running import CLASSES, TESTER, TRAITS, Running, claim


class Broken(Catalog):
    """A catalog that cannot apply changes."""

    def apply(self, changes: LedgerChanges) -> None:
        raise ZeroDivisionError


def test_an_exception_of_a_follower_reaches_no_caller(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Callers get their leases, later followers are notified, and the exception is logged."""

    async def scenario(one: Running) -> None:
        admission, heard = one.service.admission, set[LeaseId]()

        def faulty(changes: Changes, when: When) -> None:
            raise ZeroDivisionError

        def sound(changes: Changes, when: When) -> None:
            heard.update(changes.leases)

        one.service.transactor.follow(faulty)
        one.service.transactor.follow(sound)
        await pool_put(admission, "p", spec())
        holder = (await ask(admission, "1", "p")).lease
        waiting = asyncio.create_task(admission.acquire(wish("2", "p"), TESTER, 5.0))
        while not one.service.admission.waiting.count:
            await asyncio.wait([waiting], timeout=0)
        assert (
            await admission.change(LeaseRevoke(holder.id, "a test", by=OnBehalf(TESTER)))
        ).lease.cause == "revoked"
        second = (await waiting).lease
        assert second.state == "granted"
        assert heard == {holder.id, second.id}
        assert one.service.transactor.counters.failed == 0

    with_manual_clock(tmp_path, scenario)
    assert "ZeroDivisionError" in caplog.text


def test_an_index_that_cannot_follow_is_loaded_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The claim succeeds, and searches see its effect."""

    async def scenario(one: Running) -> None:
        uuid = await one.provider(1, VCPU=8)
        one.service.index.catalog = Broken(CLASSES, TRAITS)
        assert await one.outcomes(claim(1, uuid, VCPU=3)) == [None]
        assert one.used(uuid) == 3
        assert await one.outcomes(claim(2, uuid, VCPU=3)) == [None]
        assert one.used(uuid) == 6
        assert one.fatal == []

    with_manual_clock(tmp_path, scenario)
    assert "cannot apply revision" in caplog.text


def test_an_index_that_cannot_be_loaded_either_ends_the_process(tmp_path: Path) -> None:
    """A process whose index is wrong accepts nothing more."""

    async def scenario(one: Running) -> None:
        uuid = await one.provider(1, VCPU=8)
        broken = one.service.index.catalog = Broken(CLASSES, TRAITS)
        del broken.standard_classes  # without them no new catalog can be made
        assert await one.outcomes(claim(1, uuid, VCPU=3)) == [None]
        assert [type(error) for error in one.fatal] == [AttributeError]
        assert await one.outcomes(claim(2, uuid, VCPU=3)) == [Code.UNAVAILABLE]

    with_manual_clock(tmp_path, scenario)
