"""Kills or stops holders and waiters, and kills a server meanwhile; all are processes.

With one server on SQLite and with two on PostgreSQL: no unit has two holders, a holder that was
away too long is refused, and no unit is lost for longer than its TTL and a sweep.
"""

import asyncio
import signal
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from moorage.client.admission import Admission
from moorage.client.transport import RefusedError, Transport
from moorage.core.admission.model import RENEWALS
from moorage.core.clock import SECOND
from moorage.service.clock import SystemClock
from moorage.wire.admission import Lease, PoolWanted
from tests.client import single
from tests.e2e.run.test_run import WAITING
from tests.e2e.support.carried import SECONDS, eventually, tell
from tests.e2e.support.leasing import NOAUTH, POOL, Book, audit, everything_comes_back, history
from tests.e2e.support.peer import Peer, differences
from tests.e2e.support.relay import Relay
from tests.e2e.support.server import serve
from tests.support import cluster

pytestmark = pytest.mark.thorough

TOKEN = "admin"
LIMIT = 4
TTL = 10.0
PROCESSES = 12
SWEPT = 1.5
"""Seconds after its end within which a lease must be gone."""


class Fleet:
    """Servers, each behind a relay, and numbered processes of `moorage run` that use them."""

    def __init__(self, stack: ExitStack, database: str, count: int) -> None:
        self.stack = stack
        self.database = database
        self.servers = [stack.enter_context(serve(database, *NOAUTH)) for _ in range(count)]
        self.relays = [stack.enter_context(Relay(server.url)) for server in self.servers]
        self.runs: dict[str, single.Started] = {}

    @property
    def admission(self) -> Admission:
        """The typed client of the server that is alive."""
        return Admission(Transport(self.servers[-1].url, TOKEN))

    def start(self, number: int) -> None:
        """Start one process, at the next server in turn."""
        url = self.relays[number % len(self.relays)].url
        where = {"MOORAGE_URL": url, "MOORAGE_TOKEN": TOKEN}
        words = ("run", "--pool", POOL, "--label", f"n={number}", "--", *WAITING)
        run = self.stack.enter_context(single.started(*words, **where))
        self.stack.callback(run.kill)
        self.runs[str(number)] = run

    def restart(self) -> None:
        """Kill the first server, and start it again."""
        self.servers[0].stop(signal.SIGKILL)
        self.servers[0] = self.stack.enter_context(serve(self.database, *NOAUTH))
        self.relays[0].aim(self.servers[0].url)

    def of(self, state: str) -> dict[str, Lease]:
        """Return leases by the number of their process."""
        return {lease.labels["n"]: lease for lease in self.admission.leases(pool=POOL, state=state)}

    def finish(self, numbers: set[str]) -> None:
        """Let each of these processes end as soon as it has its lease."""
        left = set(numbers)

        def turn() -> set[str] | None:
            return self.of("granted").keys() & left or None

        while left:
            for number in eventually(turn):
                tell(self.runs[number])
                assert self.runs[number].wait(SECONDS) == 0, self.runs[number].communicate()
                left.remove(number)


def now() -> datetime:
    """Return the time by the wall clock, which is the servers' too."""
    return datetime.fromtimestamp(SystemClock().now() / SECOND, UTC)


def play(fleet: Fleet) -> None:
    """Kill a holder, a waiter and a server, stop another holder; the others get their turns."""
    fleet.admission.pool_put(POOL, PoolWanted(limit=LIMIT, ttl=TTL, ttl_max=TTL, pacing=None))
    for number in range(PROCESSES):
        fleet.start(number)
    held = eventually(lambda: found if len(found := fleet.of("granted")) == LIMIT else None)
    line = eventually(
        lambda: found if len(found := fleet.of("waiting")) == PROCESSES - LIMIT else None
    )
    killed, stopped, *_ = held
    ghost, *_ = line
    fleet.runs[stopped].send_signal(signal.SIGSTOP)
    fleet.runs[killed].kill()
    fleet.runs[ghost].kill()
    gone = now()
    fleet.restart()
    back = now()
    fleet.finish(fleet.runs.keys() - {killed, stopped, ghost})

    ended = eventually(
        lambda: found if (found := fleet.of("ended")).keys() >= {killed, stopped} else None
    )
    # While no server runs, no TTL elapses.
    silent = back if len(fleet.servers) == 1 else gone
    latest = max(silent + timedelta(seconds=TTL), back + timedelta(seconds=TTL / RENEWALS))
    for lease in (ended[killed], ended[stopped]):
        assert lease.cause == "ttl_over"
        assert lease.ended_at is not None
        assert lease.ended_at < latest + timedelta(seconds=SWEPT)
    lease = held[stopped]
    assert lease.token is not None
    assert not fleet.admission.verify(POOL, lease.token).current
    with pytest.raises(RefusedError) as refused:
        fleet.admission.renew(lease.id, lease.token)
    assert refused.value.status == 409
    fleet.runs[stopped].send_signal(signal.SIGCONT)
    assert fleet.runs[stopped].wait(SECONDS) == 120


@pytest.mark.parametrize("servers", [1, 2])
def test_whoever_dies_gives_back(servers: int, tmp_path: Path) -> None:
    """The change rows never exceed the limit, and every unit is free again in time."""
    database = cluster.fresh() if servers > 1 else f"sqlite:///{tmp_path}/m.sqlite"
    with ExitStack() as stack:
        fleet = Fleet(stack, database, servers)
        play(fleet)
        book = Book()
        for lease in fleet.of("ended").values():
            if lease.token is not None:
                book.granted[lease.key] = (lease.id, lease.token)
        assert len(book.granted) >= PROCESSES - 1
        asyncio.run(looked_at(fleet.servers[0].url, book))


async def looked_at(url: str, book: Book) -> None:
    """Read all change rows."""
    await everything_comes_back(url, book, LIMIT)
    assert audit(await history(url), book, LIMIT) == LIMIT
    async with Peer(url) as peer:
        assert await differences(peer) == []
