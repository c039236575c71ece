"""Programs with a key that are killed, interrupted or stopped, and started again."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from uuid import uuid4

import pytest

from moorage.client import Client
from tests.client.leasing.pools import pool_made, serving, waited_for
from tests.e2e.client.test_busy_holders import Program
from tests.e2e.support.carried import eventually

KEYED = """
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
lease = client.lease({pool!r}, key={key!r})
lease.acquire(); print(lease.id, lease.token, flush=True)
signal.pause()
"""
ENDS = {"killed": signal.SIGKILL, "interrupted": signal.SIGINT, "stopped": signal.SIGTERM}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Start a server, and set the environment for programs."""
    folder = tmp_path_factory.mktemp("restarted")
    with serving(request.param, folder) as (url, token), pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOORAGE_URL", url)
        patch.setenv("MOORAGE_TOKEN", token)
        yield


@pytest.fixture
def client(served: None) -> Client:
    """Return a client of the server."""
    return Client()


@pytest.fixture
def pool(client: Client) -> str:
    """Return a new pool with one unit."""
    return pool_made(client, f"restarted/{uuid4()}")


def tickets(client: Client, pool: str, count: int) -> list[str]:
    """Return the waiting tickets when there are this many, oldest first."""

    def found() -> list[str] | None:
        ids = [ticket.id for ticket in client.admission.leases(pool=pool, state="waiting")]
        return ids if len(ids) == count else None

    return eventually(found)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("named", ["with a key", None])
def test_a_program_that_ends_while_it_waits(
    client: Client, pool: str, end: str, named: str | None
) -> None:
    """However a program ended that waited with a key, it is first in line when it starts again.
    Without a key (the control) another is granted the lease: the ticket of a program that was
    killed is passed over.
    """
    key = pool if named else None
    with ExitStack() as stack:
        with client.lease(pool):
            first = Program(stack, pool, KEYED.format(pool=pool, key=key))
            (ticket,) = tickets(client, pool, 1)
            second = Program(stack, pool, KEYED.format(pool=pool, key=None))
            tickets(client, pool, 2)
            first.process.send_signal(ENDS[end])
            first.process.wait()
            if key is not None:
                waited_for(client, pool, ticket, False)
            started = Program(stack, pool, KEYED.format(pool=pool, key=key))
            if key is None and end == "killed":
                tickets(client, pool, 3)  # that of the dead one stays for its patience
            elif key is None:
                tickets(client, pool, 2)
            else:
                waited_for(client, pool, ticket, True)
        granted = (second if key is None else started).line()
        assert (granted.split()[0] == ticket) is (key is not None)
        if key is None and end == "killed":
            assert client.admission.lease(ticket).state == "waiting", "it is passed over"


def test_a_program_that_is_killed_while_it_holds_the_lease(client: Client, pool: str) -> None:
    """When it starts again it has the same lease with the same fencing token, before the TTL ends;
    with another key it waits (the control).
    """
    with ExitStack() as stack:
        first = Program(stack, pool, KEYED.format(pool=pool, key=pool))
        held = first.line()
        first.process.kill()
        other = Program(stack, pool, KEYED.format(pool=pool, key=f"{pool}/other"))
        (ticket,) = tickets(client, pool, 1)
        again = Program(stack, pool, KEYED.format(pool=pool, key=pool))
        assert again.line() == held
        assert client.admission.lease(held.split()[0]).state == "granted"
        again.process.terminate()
        again.process.wait()
        assert other.line().split()[0] == ticket


def test_wrong_arguments_are_found_by_type_checkers(client: Client, pool: str) -> None:
    """A type checker knows the arguments: otherwise it would find the comment unnecessary."""
    with pytest.raises(TypeError, match="wiat"):
        client.lease(pool, wiat=3)  # type: ignore[call-arg] # is what the test is about
