"""A task that its orchestrator retries is the same one for its pool: it asks with the same key."""

import os
import signal

import pytest

from moorage.client import Client
from tests.client.leasing.pools import in_thread, leases, waited_for, waiting
from tests.orchestrators.gate import Gate
from tests.orchestrators.lines import in_line, pool_of
from tests.orchestrators.services.orchestrator import Orchestrator

LONG = 300.0
"""A TTL that is longer than a retry takes."""


@pytest.mark.parametrize("how", ["keyed", "unkeyed"])
def test_a_retry_keeps_its_place_in_line(
    orchestrator: Orchestrator, client: Client, gate: Gate, how: str
) -> None:
    """`unkeyed` is the control: the retry takes a second ticket, behind who came meanwhile."""
    pool = pool_of(client, ttl=LONG)
    occupying = client.lease(pool).acquire()
    run = orchestrator.start("retried", pool, how, gate.address)
    first = waiting(client, pool)
    gate.arrived(1)  # the first try is over, the second one has not asked yet
    later = client.lease(pool)
    thread, _ = in_thread(later)
    before = [first.id] if how == "keyed" else []
    (rival,) = [one for one in in_line(client, pool, len(before) + 1) if one.id not in before]
    gate.let_go()
    if how == "keyed":
        waited_for(client, pool, first.id, by_a_program=True)
        second = first
    else:
        (second,) = [one for one in in_line(client, pool, 2) if one.id != rival.id]
        assert second.id != first.id
        assert client.admission.lease(first.id).cause == "gave_up"
    occupying.release()
    if how == "unkeyed":
        thread.join()
        assert [one.id for one in leases(client, pool, "waiting")] == [second.id]
        assert " try 2, " in second.labels["job"]
        later.release()
    gate.arrived(1)
    assert [one.id for one in leases(client, pool, "granted")] == [second.id]
    assert thread.is_alive() == (how == "keyed")
    gate.let_go()
    assert orchestrator.ended(run) == orchestrator.completed
    thread.join()
    later.release()
    assert len(leases(client, pool)) == (3 if how == "keyed" else 4)


@pytest.mark.parametrize("how", ["leased", "anew"])
@pytest.mark.parametrize("orchestrator", ["airflow"], indirect=True)
def test_a_retry_gets_the_lease_of_the_try_that_was_killed(
    orchestrator: Orchestrator, client: Client, gate: Gate, how: str
) -> None:
    """Nothing waits for the TTL. `anew` is the control: without a key, the retry does.

    Dagster and Prefect do not retry a step or a task whose process was killed.
    """
    pool = pool_of(client, ttl=LONG)
    run = orchestrator.start("killed", pool, how, gate.address)
    gate.arrived(1)
    (held,) = leases(client, pool)
    os.kill(gate.pids[0], signal.SIGKILL)
    gate.let_go()
    if how == "anew":
        (second,) = in_line(client, pool, 1)
        assert second.id != held.id
        assert client.admission.lease(held.id).state == "granted"
        client.admission.revoke(held.id)
    gate.arrived(1)
    (again,) = leases(client, pool, "granted")
    assert (again.id == held.id) == (how == "leased")
    assert (again.token == held.token) == (how == "leased")
    gate.let_go()
    assert orchestrator.ended(run) == orchestrator.completed
