"""What agents send gives way to other requests, but never stands still."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from moorage.core.errors import Code, Error
from moorage.core.ids import ProviderId
from moorage.core.ledger.facts import Keys as LedgerKeys
from moorage.service.batch.batch import BATCH_MAX, Item
from moorage.service.batch.request_queue import (
    BATCH_KEYS_MAX,
    PATIENT_LEAST,
    PATIENT_MAX,
    PATIENT_PERCENT,
    RequestQueue,
)
from moorage.service.batch.use_case import UseCase
from moorage.service.batch.world import Keys
from moorage.service.fleet.agent_cases import AgentEnroll, AgentPut, AgentRegister, AgentReport
from moorage.service.fleet.liveness_cases import AgentReturned, LivenessSweep


@dataclass
class Prompt(UseCase[None]):
    """A request of a client."""

    name: str


class Patient(Prompt):
    """A request of an agent."""

    patient: ClassVar[bool] = True


class Alone(Prompt):
    """A request that must have a batch of its own."""

    alone: ClassVar[bool] = True


@pytest.fixture(name="loop")
def new_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Provide an event loop for the callers' futures."""
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def item(loop: asyncio.AbstractEventLoop, work: UseCase[Any], rows: int = 0) -> Item:
    """Return a request that loads some rows."""
    providers = {ProviderId(f"{number}") for number in range(rows)}
    return Item(loop.create_future(), work, Keys(LedgerKeys(providers=providers)))


def names(batch: list[Item]) -> list[str]:
    """Return the names of the requests of a batch."""
    return [work.name for work in (one.work for one in batch) if isinstance(work, Prompt)]


def test_a_claim_overtakes_agents(loop: asyncio.AbstractEventLoop) -> None:
    """It is first in the next batch, in which agents have a few places."""
    queue = RequestQueue(1_000)
    for number in range(200):
        queue.add(item(loop, Patient(f"agent {number}")))
    queue.add(item(loop, Prompt("claim")))
    agents = [f"agent {number}" for number in range(200)]
    assert names(queue.take()) == ["claim", *agents[:PATIENT_MAX]]
    assert names(queue.take()) == agents[PATIENT_MAX : 2 * PATIENT_MAX]
    assert len(queue) == 200 - 2 * PATIENT_MAX


def test_agents_advance_under_any_load(loop: asyncio.AbstractEventLoop) -> None:
    """Each batch keeps a few places for them, even if claims could fill it."""
    queue = RequestQueue(1_000)
    for number in range(300):
        queue.add(item(loop, Prompt(f"claim {number}")))
    queue.add(item(loop, Patient("agent")))
    batch = names(queue.take())
    assert len(batch) == BATCH_MAX
    assert batch[-1] == "agent"
    for number in range(10):
        queue.add(item(loop, Patient(f"agent {number}")))
    batch = names(queue.take())
    assert len(batch) == BATCH_MAX
    assert [name for name in batch if "agent" in name] == [
        f"agent {number}" for number in range(PATIENT_LEAST)
    ]


def test_agents_fill_only_a_part_of_the_queue(loop: asyncio.AbstractEventLoop) -> None:
    """Beyond it they are refused, and others are not; a full queue refuses all."""
    queue = RequestQueue(100)
    for number in range(PATIENT_PERCENT):
        queue.add(item(loop, Patient(f"agent {number}")))
    with pytest.raises(Error) as refused:
        queue.add(item(loop, Patient("one more")))
    assert refused.value.code is Code.OVERLOADED
    assert "requests of agents" in refused.value.message
    for number in range(100 - PATIENT_PERCENT):
        queue.add(item(loop, Prompt(f"claim {number}")))
    for work in (Prompt("one more"), Patient("one more")):
        with pytest.raises(Error) as refused:
            queue.add(item(loop, work))
        assert refused.value.message.startswith("100 requests are waiting")
    assert len(queue.clear()) == 100
    assert len(queue) == 0


def test_some_requests_have_a_batch_of_their_own(loop: asyncio.AbstractEventLoop) -> None:
    """Those that must, and those that load too many rows with others."""
    queue = RequestQueue(100)
    for work in (Prompt("a"), Alone("b"), Prompt("c")):
        queue.add(item(loop, work))
    queue.add(item(loop, Patient("d"), BATCH_KEYS_MAX + 1))
    assert [names(queue.take()) for _ in range(4)] == [["a"], ["b"], ["c"], ["d"]]
    assert queue.take() == []


def test_callers_who_left_are_dropped(loop: asyncio.AbstractEventLoop) -> None:
    """Their requests take no place; what is put back is first again, in its order."""
    queue = RequestQueue(100)
    left, again, agent = (item(loop, Prompt("left")), item(loop, Prompt("again")), Patient("agent"))
    queue.add(left)
    queue.add(item(loop, Prompt("later")))
    queue.add(item(loop, agent))
    left.future.cancel()
    queue.put_back([again, item(loop, Prompt("too"))])
    assert names(queue.take()) == ["again", "too", "later", "agent"]


def test_which_requests_give_way() -> None:
    """Those that thousands of agents send at once, not those of operators or of the service."""
    assert all(kind.patient for kind in (AgentEnroll, AgentRegister, AgentReport, AgentReturned))
    assert not any(kind.patient for kind in (AgentPut, LivenessSweep, UseCase))
