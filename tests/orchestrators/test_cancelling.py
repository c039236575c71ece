"""Users end runs by the means of their orchestrator: its page, its command or its API."""

from moorage.client import Client
from tests.client.leasing.pools import leases
from tests.orchestrators.gate import Gate
from tests.orchestrators.lines import TTL, ended, in_line, pool_of
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
