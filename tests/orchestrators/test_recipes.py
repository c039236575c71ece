"""The recipes for orchestrators, run by the orchestrators themselves.

The cases are faults of the orchestrators' own limits.
"""

import os
import signal

import pytest

from moorage.client import Client
from tests.client.leasing.pools import leases
from tests.orchestrators.gate import Gate
from tests.orchestrators.lines import TTL, in_line, pool_of
from tests.orchestrators.services.orchestrator import Orchestrator

RUNS, UNITS = 3, 2


def test_more_runs_than_units_wait_and_all_succeed(
    orchestrator: Orchestrator, client: Client, gate: Gate
) -> None:
    """Beside it, `test_without_leases_the_same_runs_exceed_the_limit` is the control."""
    pool = pool_of(client, UNITS)
    runs = [orchestrator.start("installation", pool, "leased", gate.address) for _ in range(RUNS)]
    gate.arrived(UNITS)
    in_line(client, pool, RUNS - UNITS)
    for _ in range(RUNS):
        gate.arrived(1)
        gate.let_go()
    assert [orchestrator.ended(run) for run in runs] == [orchestrator.completed] * RUNS
    assert gate.most == UNITS
    assert [lease.cause for lease in leases(client, pool)] == ["released"] * RUNS


def test_without_leases_the_same_runs_exceed_the_limit(
    orchestrator: Orchestrator, client: Client, gate: Gate
) -> None:
    """The control: without leases, nothing limits the runs."""
    pool = pool_of(client, UNITS)
    runs = [orchestrator.start("installation", pool, "bare", gate.address) for _ in range(RUNS)]
    gate.arrived(RUNS)
    for _ in range(RUNS):
        gate.let_go()
    assert [orchestrator.ended(run) for run in runs] == [orchestrator.completed] * RUNS
    assert gate.most == RUNS > UNITS


def test_a_killed_run_frees_its_unit_within_its_ttl(
    orchestrator: Orchestrator, client: Client, gate: Gate
) -> None:
    """The run that waits begins, although nobody released the lease."""
    pool = pool_of(client)
    orchestrator.start("installation", pool, "leased", gate.address)
    gate.arrived(1)
    (held,) = leases(client, pool, "granted")
    orchestrator.start("installation", pool, "leased", gate.address)
    in_line(client, pool, 1)
    os.kill(gate.pids[0], signal.SIGKILL)
    gate.let_go()
    gate.arrived(1, TTL + 1)
    assert client.admission.lease(held.id).cause == "ttl_over"


def test_a_blocked_event_loop_keeps_its_lease(
    orchestrator: Orchestrator, client: Client, gate: Gate
) -> None:
    """The run that waits does not begin before the other one has ended."""
    pool = pool_of(client)
    busy = orchestrator.start("installation", pool, "busy", gate.address)
    gate.arrived(1)
    (held,) = leases(client, pool, "granted")
    orchestrator.start("installation", pool, "leased", gate.address)
    in_line(client, pool, 1)
    with pytest.raises(TimeoutError):
        gate.arrived(2, 2 * TTL)
    assert client.admission.lease(held.id).state == "granted"
    gate.let_go()
    assert orchestrator.ended(busy) == orchestrator.completed
    gate.arrived(1)
