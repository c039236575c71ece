"""Two processes reshape one ledger: one is first, the other one is refused; nobody is missed."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from moorage.core.errors import Code, Error
from moorage.core.ledger.facts import Facts, HoldersCame, Keys
from moorage.core.ledger.reshaping.plan import Move, NewProvider, Place, Policy, ReshapePlan
from moorage.core.restart import Restart
from moorage.service.ledger.reshapes import ReshapeRefusal
from moorage.store.api import Plan, Row, Statement, Transaction
from moorage.store.ledger import load
from tests.service.batch.test_shared import Pair, play
from tests.service.ledger.reshapes.trees import (
    HOST,
    LEFT,
    RIGHT,
    commit,
    host,
    preview,
    records,
    split,
    undo,
    wish,
)
from tests.service.running import CLASSES, TESTER, TRAITS, claim, consumer_id

GUESTS = {1: 3, 2: 5, 3: 4}
PLAN = split({1: LEFT, 2: LEFT, 3: RIGHT}, GUESTS)
OTHER = split({1: RIGHT, 2: LEFT, 3: RIGHT}, GUESTS)
ROUNDS = 10
UNITS = 5_000


async def outcome(awaitable: Any) -> Any:
    """Return what was done, or the code of its refusal."""
    try:
        return await awaitable
    except Error as error:
        return error.code


def test_of_two_commits_one_is_refused() -> None:
    """The second one is refused as a whole, with the present plan; nothing is lost of
    the first.
    """

    async def scenario(pair: Pair) -> None:
        one, two = pair.services
        await host(one, GUESTS)
        for n in range(0, 4 * ROUNDS, 4):
            shown = [(await preview(one, plan)).planned.digest for plan in (PLAN, OTHER)]
            done = await asyncio.gather(
                commit(one, PLAN, n + 1, shown[0]),
                commit(two, OTHER, n + 2, shown[1]),
                return_exceptions=True,
            )
            (refusal,) = [one for one in done if isinstance(one, BaseException)]
            assert isinstance(refusal, ReshapeRefusal), refusal
            assert refusal.code is Code.RESHAPE_REFUSED
            assert refusal.planned.violations
            (winner,) = [one for one in done if not isinstance(one, BaseException)]
            back = await asyncio.gather(
                outcome(two.reshapes.undo(winner.record.id, wish(n + 3), TESTER)),
                outcome(one.reshapes.undo(winner.record.id, wish(n + 4), TESTER)),
            )
            assert sorted(isinstance(one, Code) for one in back) == [False, True]
            assert Code.RESHAPE_UNDONE in back
            assert LEFT not in await records(one)

    play(scenario)


def test_the_same_request_at_two_processes_is_done_once() -> None:
    """A client that asks another process again gets the answer of the first."""

    async def scenario(pair: Pair) -> None:
        one, two = pair.services
        await host(one, GUESTS)
        for n in range(1, 2 * ROUNDS, 2):
            first, again = await asyncio.gather(commit(one, PLAN, n), commit(two, PLAN, n))
            assert first.effects == again.effects
            assert first.record == again.record
            await undo(two, n, n + 1)

    play(scenario)


KEYS = Keys(providers={HOST}, trees={HOST}, holders={HOST})


def once(statements: Sequence[Statement]) -> Plan[list[list[Row]]]:
    """Return a plan of these statements."""
    return (yield statements)


async def loaded(
    transaction: Transaction, keys: Keys, between: Callable[[], Awaitable[None]]
) -> Facts:
    """Load facts in a transaction; `between` happens once the holders were looked up first."""
    plan = load.facts_load(keys, CLASSES, TRAITS)
    statements, looked = next(plan), False
    while True:
        rows = await transaction.run(once(statements))
        if not looked and any(one.block == "holders_of" for one in statements):
            looked = True
            await between()
        try:
            statements = plan.send(rows)
        except StopIteration as stop:
            facts: Facts = stop.value
            return facts


def test_who_comes_while_holders_are_locked_is_not_missed() -> None:
    """The load begins again; the second time, nobody can come in between."""

    async def scenario(pair: Pair) -> None:
        one, two = pair.services
        await host(one, GUESTS)
        waiting: list[asyncio.Future[None]] = []

        async def come(n: int) -> None:
            await two.transactor.submit(claim(n, HOST, VCPU=1))

        async def try_to_come() -> None:
            waiting.append(asyncio.ensure_future(come(8)))
            done, _ = await asyncio.wait(waiting, timeout=0.5)
            assert not done, "it has come in between again"

        async with one.engine.transaction() as transaction:
            with pytest.raises(Restart) as again:
                await loaded(transaction, KEYS, lambda: come(9))
        needs = again.value.needs
        assert isinstance(needs, HoldersCame)
        assert needs.keys.consumers == {consumer_id(9)}
        keys = Keys(providers={HOST}, trees={HOST}, holders={HOST})
        keys.update(needs.keys)
        async with one.engine.transaction() as transaction:
            facts = await loaded(transaction, keys, try_to_come)
            found = {consumer_id(n) for n in (*GUESTS, 9)}
            assert facts.holders == {HOST: found}
            assert facts.consumers.keys() == found
        await asyncio.gather(*waiting)

    play(scenario)


def test_without_the_second_look_somebody_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the test above."""
    monkeypatch.setattr(load, "_check_holders", lambda *_: None)

    async def scenario(pair: Pair) -> None:
        one, two = pair.services
        await host(one, GUESTS)

        async def come() -> None:
            await two.transactor.submit(claim(9, HOST, VCPU=1))

        async with one.engine.transaction() as transaction:
            facts = await loaded(transaction, KEYS, come)
        assert consumer_id(9) not in facts.consumers

    play(scenario)


def test_guests_that_come_all_the_time_are_all_moved() -> None:
    """A plan that moves everybody is carried out beside claims of another process."""

    async def scenario(pair: Pair) -> None:
        one, two = pair.services
        await host(one, {}, total=2 * UNITS)
        everybody = ReshapePlan(
            create=(NewProvider(LEFT, "left", HOST), NewProvider(RIGHT, "right", HOST)),
            moves=tuple(
                Move(Place(HOST, "VCPU"), Place(uuid, "VCPU"), UNITS, policy=Policy.FIT)
                for uuid in (LEFT, RIGHT)
            ),
            fungible=frozenset({"VCPU"}),
        )
        numbers, stopped = itertools.count(1), asyncio.Event()
        came = 0

        async def come() -> None:
            nonlocal came
            while not stopped.is_set():
                done = await outcome(two.transactor.submit(claim(next(numbers), HOST, VCPU=1)))
                came += done is None

        guests = [asyncio.ensure_future(come()) for _ in range(4)]
        try:
            for n in range(1, 2 * ROUNDS, 2):
                before = came
                while came < before + 5:
                    await asyncio.sleep(0)
                done = await commit(one, everybody, n)
                assert len(done.effects) > before
                await undo(one, n, n + 1)
        finally:
            stopped.set()
            await asyncio.gather(*guests)

    play(scenario)
