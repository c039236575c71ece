"""Users end runs by the means of their orchestrator: its page, its command or its API."""

import pytest

from moorage.client import Client
from tests.client.leasing.pools import leases
from tests.orchestrators.gate import Gate
from tests.orchestrators.lines import TTL, ended, in_line, pool_of
from tests.orchestrators.services.airflow import Airflow
from tests.orchestrators.services.orchestrator import Orchestrator

LONG = 60.0
"""A TTL that is longer than a test: what frees the unit before is a release."""


def test_a_cancelled_run_frees_its_unit_at_once(
    orchestrator: Orchestrator, client: Client, gate: Gate
) -> None:
    """The next in line begins. Beside it stands the control, with the same cancel."""
    pool = pool_of(client, ttl=LONG)
    run = orchestrator.start("installation", pool, "leased", gate.address)
    gate.arrived(1)
    (held,) = leases(client, pool, "granted")
    orchestrator.start("installation", pool, "leased", gate.address)
    in_line(client, pool, 1)
    orchestrator.cancel(run)
    assert ended(client, held.id).cause == "released"
    gate.let_go()
    gate.arrived(1)
    assert orchestrator.ended(run) == orchestrator.cancelled


def test_without_a_handler_the_unit_is_freed_by_the_ttl(
    orchestrator: Orchestrator, client: Client, gate: Gate
) -> None:
    """The control: the signal ends the process, but not its block."""
    pool = pool_of(client, ttl=TTL)
    run = orchestrator.start("installation", pool, "unhandled", gate.address)
    gate.arrived(1)
    (held,) = leases(client, pool, "granted")
    orchestrator.cancel(run)
    assert ended(client, held.id).cause == "ttl_over"


@pytest.mark.parametrize("orchestrator", ["airflow"], indirect=True)
def test_a_cleared_task_frees_its_unit_before_its_next_try(
    orchestrator: Airflow, client: Client, gate: Gate
) -> None:
    """The next try asks with the same key, and gets a lease of its own."""
    pool = pool_of(client, ttl=LONG)
    run = orchestrator.start("installation", pool, "leased", gate.address)
    gate.arrived(1)
    (held,) = leases(client, pool, "granted")
    orchestrator.clear(run)
    assert ended(client, held.id).cause == "released"
    gate.let_go()
    gate.arrived(1)
    (again,) = leases(client, pool, "granted")
    assert again.id != held.id
    assert " try 2, " in again.labels["job"]
    gate.let_go()
    assert orchestrator.ended(run) == orchestrator.completed
