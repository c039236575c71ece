"""Programs that hold a lease: busy ones keep it, killed ones lose it, ended ones release it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from time import monotonic
from uuid import uuid4

import pytest

from moorage.client import Client, NotInTimeError
from tests.client.leasing.pools import pool_made, serving, waiting
from tests.e2e.support.relay import Relay
from tests.support.guard import Guard
from tests.support.seeds import SOAK

TTL = 60.0 if SOAK else 2.0
BUSY_SECONDS = 600.0 if SOAK else 4 * TTL
SWEPT = 1.5
"""Seconds after its end within which a lease must be gone."""

BEGIN = """
import ctypes, signal, sys
from moorage.client import Client
client = Client()
lease = client.lease({pool!r}, ttl={ttl})
"""
HELD = "\nlease.acquire(); print(lease.id, flush=True)\n"

BUSY = HELD + "while True: pass"
UNRENEWED = HELD + "lease._keeper.close()\nwhile True: pass"
LOCKED = HELD + "ctypes.PyDLL(None).usleep({microseconds}); print(lease.lost, flush=True)"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Return a client of a server; set the environment for programs."""
    with (
        serving("sqlite", tmp_path_factory.mktemp("busy")) as (url, token),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("MOORAGE_URL", url)
        patch.setenv("MOORAGE_TOKEN", token)
        yield Client()


@pytest.fixture
def pool(client: Client) -> str:
    """Return a new pool with one unit."""
    return pool_made(client, f"busy/{uuid4()}")


class Program:
    """A Python program in its own process, which ends with the test."""

    def __init__(self, stack: ExitStack, pool: str, text: str, ttl: float = TTL) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", BEGIN.format(pool=pool, ttl=ttl) + text],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        stack.enter_context(self.process)
        stack.callback(self.process.kill)
        stack.callback(Guard(self.process.pid).close)

    def line(self) -> str:
        """Return its next line."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


def test_a_busy_program_keeps_its_lease_and_a_killed_one_does_not(
    client: Client, pool: str
) -> None:
    """`while True: pass` keeps the lease for many TTLs; after SIGKILL, the next one in line has
    the unit within a TTL. Without renewals it has it within a TTL as well.
    """
    with ExitStack() as stack:
        program = Program(stack, pool, BUSY)
        assert program.line()
        with pytest.raises(NotInTimeError):
            client.lease(pool, wait=BUSY_SECONDS).acquire()
        began = monotonic()
        program.process.kill()
        with client.lease(pool, wait=TTL + 30):
            assert monotonic() - began < TTL + SWEPT
        unrenewed = Program(stack, pool, UNRENEWED)
        assert unrenewed.line()
        began = monotonic()
        with client.lease(pool, wait=TTL + 30):
            assert monotonic() - began < TTL + SWEPT


@pytest.mark.parametrize(("seconds", "lost"), [(2.5, False), (8.0, True)])
def test_code_that_holds_the_interpreter_lock(
    client: Client, pool: str, seconds: float, lost: bool
) -> None:
    """C code that lets no other thread run for less than half of the TTL does no harm. After a
    longer time, the program sees that its lease is lost.
    """
    with ExitStack() as stack:
        text = LOCKED.format(microseconds=int(seconds * 1_000_000))
        program = Program(stack, pool, text, ttl=6.0)
        assert program.line()
        assert (program.line() != "None") is lost


ENDS = {
    "block": "with lease:\n    print(lease.id, flush=True)\n    sys.exit(3)",
    "forgotten": HELD,
    "failed": "with lease:\n    print(lease.id, flush=True)\n    raise KeyError",
    "terminated": "signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))"
    + HELD
    + "signal.raise_signal(signal.SIGTERM)",
}


@pytest.mark.parametrize("end", ENDS)
def test_a_program_that_ends_releases_its_lease(client: Client, pool: str, end: str) -> None:
    """However Python ends a program, its lease is released, not left to its TTL."""
    with ExitStack() as stack:
        program = Program(stack, pool, ENDS[end])
        lease = program.line()
        program.process.wait()
        assert client.admission.lease(lease).cause == "released"


FORGOTTEN = """
more = [client.lease({pool!r}, ttl={ttl}).acquire() for _ in range(3)]
print(*(lease.id for lease in more), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("answers", [True, False])
def test_a_silent_server_delays_the_end_only_once(client: Client, pool: str, answers: bool) -> None:
    """A program that forgot three leases does not wait for each of them that the server answers;
    one that answers (the control) is asked to release them all.
    """
    pool_made(client, pool, limit=3)
    with Relay(os.environ["MOORAGE_URL"]) as relay, pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOORAGE_URL", relay.url)
        with ExitStack() as stack:
            program = Program(stack, pool, FORGOTTEN.format(pool=pool, ttl=600))
            assert len(program.line().split()) == 3
            relay.stall = 0 if answers else 1000
            program.process.communicate()
        asked = [line for line in relay.heard if line.startswith("DELETE")]
        assert len(asked) == (3 if answers else 1)


def test_an_interrupted_wait_leaves_no_ticket(client: Client, pool: str) -> None:
    """Ctrl-C ends the wait with KeyboardInterrupt, and the ticket is withdrawn."""
    with ExitStack() as stack, client.lease(pool):
        program = Program(stack, pool, HELD)
        ticket = waiting(client, pool)
        program.process.send_signal(signal.SIGINT)
        _, errors = program.process.communicate()
        assert "KeyboardInterrupt" in errors
        assert client.admission.lease(ticket.id).cause == "withdrawn"
