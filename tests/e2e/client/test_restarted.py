"""Programs with a key that are killed, interrupted or stopped, and started again."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from moorage.client import Client
from moorage.wire.admission import PoolWanted
from tests.client.leasing.pools import serving
from tests.e2e.client.test_busy_holders import Program

POOL = "busy"
KEYED = """
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
lease = client.lease("busy", key={key!r})
lease.acquire(); print(lease.id, lease.token, flush=True)
signal.pause()
"""
ENDS = {"killed": signal.SIGKILL, "interrupted": signal.SIGINT, "stopped": signal.SIGTERM}


@pytest.fixture(params=["sqlite", "postgresql"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Client]:
    """Return a client of a new server with a pool; set the environment for programs."""
    with serving(request.param, tmp_path) as (url, token), pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOORAGE_URL", url)
        patch.setenv("MOORAGE_TOKEN", token)
        client = Client()
        client.admission.pool_put(POOL, PoolWanted(limit=1))
        yield client


def tickets(client: Client, count: int) -> list[str]:
    """Return the waiting tickets when there are this many, oldest first."""
    while len(found := [*client.admission.leases(pool=POOL, state="waiting")]) != count:
        pass
    return [ticket.id for ticket in found]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("key", ["install-4711", None])
def test_a_program_that_ends_while_it_waits(client: Client, end: str, key: str | None) -> None:
    """However a program ended that waited with a key, it is first in line when it starts again.
    Without a key (the control) another is granted the lease, or nobody: a ticket of a program that
    was killed.
    """
    with ExitStack() as stack:
        with client.lease(POOL):
            first = Program(stack, KEYED.format(key=key))
            (ticket,) = tickets(client, 1)
            second = Program(stack, KEYED.format(key=None))
            tickets(client, 2)
            first.process.send_signal(ENDS[end])
            first.process.wait()
            if key is not None:
                waited_for(client, ticket, False)
            started = Program(stack, KEYED.format(key=key))
            if key is None and end == "killed":
                tickets(client, 3)  # that of the dead one stays for its patience
            elif key is None:
                tickets(client, 2)
            else:
                waited_for(client, ticket, True)
        if key is None and end == "killed":
            assert client.admission.lease(ticket).state == "granted", "to nobody"
        else:
            granted = (second if key is None else started).line()
            assert (granted.split()[0] == ticket) is (key is not None)


def waited_for(client: Client, ticket: str, by_a_program: bool) -> None:
    """Return when a program waits for a ticket that keeps its place, or none does any more.

    To ask for the ticket would count as waiting, to ask for a list does not.
    """
    while True:
        for found in client.admission.leases(pool=POOL, state="waiting"):
            assert found.waiting is not None
            if found.id == ticket and (found.waiting.code != "absent") is by_a_program:
                return


def test_a_program_that_is_killed_while_it_holds_the_lease(client: Client) -> None:
    """When it starts again it has the same lease with the same fencing token, before the TTL ends;
    with another key it waits (the control).
    """
    with ExitStack() as stack:
        first = Program(stack, KEYED.format(key="install-4711"))
        held = first.line()
        first.process.kill()
        other = Program(stack, KEYED.format(key="install-4712"))
        (ticket,) = tickets(client, 1)
        again = Program(stack, KEYED.format(key="install-4711"))
        assert again.line() == held
        assert client.admission.lease(held.split()[0]).state == "granted"
        again.process.terminate()
        again.process.wait()
        assert other.line().split()[0] == ticket


def test_wrong_arguments_are_found_by_type_checkers(client: Client) -> None:
    """A type checker knows the arguments: otherwise it would find the comment unnecessary."""
    with pytest.raises(TypeError, match="wiat"):
        client.lease(POOL, wiat=3)  # type: ignore[call-arg] # is what the test is about
