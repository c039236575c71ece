"""Tasks of Airflow that wait in line without a process: the triggerer waits for all of them."""

import signal
from collections.abc import Iterator

import pytest

from moorage.client import Client
from moorage.wire.admission import Lease
from tests.client.leasing.pools import leases, waited_for
from tests.e2e.support.carried import eventually
from tests.e2e.support.server import Server
from tests.orchestrators.gate import Gate
from tests.orchestrators.lines import ended, in_line, pool_of
from tests.orchestrators.services.airflow import Airflow

SECONDS = 120.0
pytestmark = pytest.mark.parametrize("orchestrator", ["airflow"], indirect=True)


@pytest.fixture(scope="module")
def triggerers(orchestrator: Airflow) -> Iterator[None]:
    """Leave no triggerer running beside the tests of other files."""
    yield
    orchestrator.triggerer().stop(signal.SIGKILL)


@pytest.fixture
def triggerer(orchestrator: Airflow, triggerers: None) -> Server:
    """Return a running triggerer."""
    return orchestrator.triggerer()


def deferred(orchestrator: Airflow, client: Client, run: str, pool: str) -> Lease:
    """Wait until a task is deferred and its ticket is waited for; return the ticket."""
    assert eventually(lambda: orchestrator.task_state(run) == "deferred" or None, SECONDS)
    (ticket,) = in_line(client, pool, 1)
    waited_for(client, pool, ticket.id, by_a_program=True)
    return ticket


def test_a_task_waits_without_a_process(
    orchestrator: Airflow, client: Client, gate: Gate, triggerer: Server
) -> None:
    """While it is deferred it has no slot; at its turn it has the lease that its trigger got.

    The control is the first run: with room it is never deferred, and no trigger is needed.
    """
    pool = pool_of(client)
    first = orchestrator.start("deferred", pool, "leased", gate.address)
    gate.arrived(1)
    occupied, waiting = orchestrator.slots()
    second = orchestrator.start("deferred", pool, "leased", gate.address)
    ticket = deferred(orchestrator, client, second, pool)
    assert orchestrator.slots() == (occupied, waiting + 1)
    gate.let_go()
    gate.arrived(1)
    (held,) = leases(client, pool, "granted")
    assert held.id == ticket.id
    gate.let_go()
    assert [orchestrator.ended(run) for run in (first, second)] == [orchestrator.completed] * 2
    assert [lease.cause for lease in leases(client, pool)] == ["released"] * 2


def test_a_killed_triggerer_loses_nothing(
    orchestrator: Airflow, client: Client, gate: Gate, triggerer: Server
) -> None:
    """Its ticket is passed over until the next triggerer asks with the key, and has its place."""
    pool = pool_of(client)
    with client.lease(pool):
        run = orchestrator.start("deferred", pool, "leased", gate.address)
        ticket = deferred(orchestrator, client, run, pool)
        triggerer.stop(signal.SIGKILL)
        waited_for(client, pool, ticket.id, by_a_program=False)
        orchestrator.triggerer()
        waited_for(client, pool, ticket.id, by_a_program=True)
    gate.arrived(1)
    (held,) = leases(client, pool, "granted")
    assert held.id == ticket.id
    gate.let_go()
    assert orchestrator.ended(run) == orchestrator.completed


def test_a_cancelled_task_is_passed_over(
    orchestrator: Airflow, client: Client, gate: Gate, triggerer: Server
) -> None:
    """The unit goes to who comes later, although the ticket of the cancelled task was first."""
    pool = pool_of(client)
    with client.lease(pool):
        run = orchestrator.start("deferred", pool, "leased", gate.address)
        ticket = deferred(orchestrator, client, run, pool)
        orchestrator.cancel(run)
        assert orchestrator.ended(run) == orchestrator.cancelled
        waited_for(client, pool, ticket.id, by_a_program=False)
    with client.lease(pool, wait="20s") as later:
        assert client.admission.lease(ticket.id).state == "waiting"
        assert later.id != ticket.id


def test_a_lease_that_ends_before_its_task_is_resumed(
    orchestrator: Airflow, client: Client, gate: Gate, triggerer: Server
) -> None:
    """The unit does not leak, and the task is deferred again instead of being failed."""
    pool = pool_of(client)
    with client.lease(pool):
        run = orchestrator.start("deferred_shortly", pool, "leased", gate.address)
        ticket = deferred(orchestrator, client, run, pool)
        orchestrator.pause("deferred_shortly")
    assert ended(client, ticket.id).cause == "ttl_over"
    orchestrator.pause("deferred_shortly", False)
    gate.arrived(1)
    gate.let_go()
    assert orchestrator.ended(run) == orchestrator.completed
