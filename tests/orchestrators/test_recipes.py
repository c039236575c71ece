"""The recipes for orchestrators, run by the orchestrators themselves.

The cases are faults of the orchestrators' own limits.
"""

import signal
from uuid import uuid4

import pytest

from moorage.client import Client
from moorage.wire.admission import Lease
from tests.client.leasing.pools import leases, pool_made
from tests.orchestrators.gate import Gate
from tests.orchestrators.orchestrator import Orchestrator

RUNS, UNITS = 3, 2
TTL = 4.0


def in_line(client: Client, pool: str, number: int) -> list[Lease]:
    """Wait until this many tickets wait for a pool; return them."""
    for _ in client.ledger.watch("1.0", ["lease"]):
        found = leases(client, pool, "waiting")
        if len(found) == number:
            return found
    raise AssertionError("the watch ended")


def pool_of(client: Client, limit: int = 1) -> str:
    """Create a pool for one test."""
    return pool_made(client, f"pool-{uuid4().hex}", limit=limit, ttl=TTL)


def test_more_runs_than_units_wait_and_all_succeed(
    orchestrator: Orchestrator, client: Client, gate: Gate
) -> None:
    """Beside it, `test_without_leases_the_same_runs_exceed_the_limit` is the control."""
    pool = pool_of(client, UNITS)
    runs = [orchestrator.start(pool, "leased") for _ in range(RUNS)]
    gate.arrived(UNITS)
    in_line(client, pool, RUNS - UNITS)
    for _ in range(RUNS):
        gate.arrived(1)
        gate.let_go()
    for run in runs:
        code, output = run.ended()
        assert code == 0, output
    assert gate.most == UNITS
    assert [lease.state for lease in leases(client, pool)] == ["ended"] * RUNS


def test_without_leases_the_same_runs_exceed_the_limit(
    orchestrator: Orchestrator, client: Client, gate: Gate
) -> None:
    """The control: without leases, nothing limits the runs."""
    runs = [orchestrator.start(pool_of(client, UNITS), "bare") for _ in range(RUNS)]
    gate.arrived(RUNS)
    for _ in range(RUNS):
        gate.let_go()
    for run in runs:
        code, output = run.ended()
        assert code == 0, output
    assert gate.most == RUNS > UNITS


def test_a_killed_run_frees_its_unit_within_its_ttl(
    orchestrator: Orchestrator, client: Client, gate: Gate
) -> None:
    """The run that waits begins, although nobody released the lease."""
    pool = pool_of(client)
    killed = orchestrator.start(pool, "leased")
    gate.arrived(1)
    (held,) = leases(client, pool, "granted")
    assert held.labels
    orchestrator.start(pool, "leased")
    in_line(client, pool, 1)
    killed.kill()
    gate.let_go()
    gate.arrived(1, TTL + 1)
    assert client.admission.lease(held.id).cause == "ttl_over"


def test_a_blocked_event_loop_keeps_its_lease(
    orchestrator: Orchestrator, client: Client, gate: Gate
) -> None:
    """The run that waits does not begin before the other one has ended."""
    pool = pool_of(client)
    busy = orchestrator.start(pool, "busy")
    gate.arrived(1)
    (held,) = leases(client, pool, "granted")
    orchestrator.start(pool, "leased")
    in_line(client, pool, 1)
    with pytest.raises(TimeoutError):
        gate.arrived(2, 2 * TTL)
    assert client.admission.lease(held.id).state == "granted"
    gate.let_go()
    code, output = busy.ended()
    assert code == 0, output
    gate.arrived(1)


@pytest.mark.parametrize("installed", ["dagster", "airflow"], indirect=True)
def test_a_terminated_run_releases_its_lease_at_once(
    orchestrator: Orchestrator, client: Client, gate: Gate
) -> None:
    """SIGTERM to the process of the run. Prefect handles it only under its runner."""
    pool = pool_of(client)
    terminated = orchestrator.start(pool, "leased")
    gate.arrived(1)
    (held,) = leases(client, pool, "granted")
    terminated.process.send_signal(signal.SIGTERM)
    for _ in client.ledger.watch("1.0", ["lease"]):
        if (ended := client.admission.lease(held.id)).state == "ended":
            break
    assert ended.cause == "released"
