"""A server is killed while a lease is handed over: afterwards exactly one owner has it."""

import signal
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random

import pytest

from moorage.client.admission import Admission
from moorage.client.transport import MoorageError, Transport
from moorage.wire.admission import LeaseWanted, NeedWanted, PoolWanted
from tests.e2e.support.chance import seeded
from tests.e2e.support.server import Server, serve
from tests.support import cluster

KILLS = 5


class Owners:
    """The administrator and `bank/bob`, at a server that may be another one each time."""

    def __init__(self, server: Server, folder: Path) -> None:
        (file,) = folder.rglob("*.token")
        self._admin = file.read_text().strip()
        wanted = {"name": "bob", "role": "user", "project_id": "bank"}
        made = Transport(server.url, self._admin).request("POST", "/v1/tokens", wanted)
        self._bob = made["token"]

    def at(self, server: Server) -> tuple[Admission, Admission]:
        """Return the clients of both at a server."""
        one, other = (Transport(server.url, token) for token in (self._admin, self._bob))
        return Admission(one), Admission(other)


@pytest.mark.parametrize("servers", [1, 2])
def test_a_server_is_killed_while_a_lease_is_accepted(servers: int, tmp_path: Path) -> None:
    """One on SQLite, or two on PostgreSQL. The same key gives the same lease, once it is back."""
    database = cluster.fresh() if servers > 1 else f"sqlite:///{tmp_path}/m.sqlite"

    def start() -> Server:
        # The folder of the administrator's token for PostgreSQL.
        return serve(database, "--no-access-log", XDG_STATE_HOME=str(tmp_path))

    with seeded() as seed, ExitStack() as stack:
        choice = Random(seed)
        running = [stack.enter_context(start()) for _ in range(servers)]
        owners = Owners(running[0], tmp_path)
        giver, receiver = owners.at(running[0])
        giver.pool_put("p", PoolWanted(limit=1, pacing=None, ttl=3600.0))
        for n in range(KILLS):
            victim = n % servers
            giver, receiver = owners.at(running[victim])
            wanted = LeaseWanted(needs=[NeedWanted(pool="p")], key=f"{n}")
            lease = giver.ask(wanted)
            giver.renew(lease.id)
            giver.offer(lease.id, "bank/bob")
            killer = threading.Timer(choice.random() * 0.02, running[victim].stop, [signal.SIGKILL])
            killer.start()
            answered = None
            with suppress(MoorageError):
                answered = receiver.accept(lease.id, f"taken {n}")
            killer.join()
            running[victim] = stack.enter_context(start())
            giver, receiver = owners.at(running[victim])
            (held,) = giver.leases(pool="p", state="granted")
            assert held.id == lease.id or (held.owner, held.taken_from) == ("bank/bob", lease.id)
            assert answered is None or held.id == answered.id, "what was answered is there"
            taken = receiver.accept(lease.id, f"taken {n}")
            assert (held.id in (lease.id, taken.id), taken.owner) == (True, "bank/bob")
            assert [one.id for one in giver.leases(pool="p", state="granted")] == [taken.id]
            assert giver.pool("p").occupied == 1
            receiver.release(taken.id)
