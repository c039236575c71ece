"""What the tests of leases share: servers, pools, and leases that are acquired in threads."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moorage.client import Client, Holding, MoorageError
from moorage.wire.admission import Lease, PoolWanted
from tests.e2e.support.carried import eventually
from tests.e2e.support.server import serve
from tests.support import cluster


@contextmanager
def serving(engine: str, folder: Path) -> Iterator[tuple[str, str]]:
    """Start a server on an engine; return its URL and its administrator's token."""
    database = cluster.fresh() if engine == "postgresql" else folder / "moorage.sqlite"
    # Of a database that is no file, the token is in the folder for the state of programs.
    with serve(database, "--no-access-log", XDG_STATE_HOME=str(folder)) as server:
        (token,) = folder.rglob("*.token")
        yield server.url, token.read_text().strip()


def pool_made(client: Client, name: str, **wanted: object) -> str:
    """Create a pool with one unit; return its name."""
    client.admission.pool_put(name, PoolWanted(**{"limit": 1, **wanted}))  # type: ignore[arg-type] # as the test says
    return name


def leases(client: Client, pool: str, state: str | None = None) -> list[Lease]:
    """Return leases and tickets of a pool, oldest first."""
    return [*client.admission.leases(pool=pool, state=state)]


def in_thread(holding: Holding) -> tuple[threading.Thread, list[object]]:
    """Acquire a lease in a thread; return the thread, and what comes of it."""
    results: list[object] = []

    def work() -> None:
        try:
            results.append(holding.acquire())
        except MoorageError as error:
            results.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread, results


def waiting(client: Client, pool: str) -> Lease:
    """Wait until a pool has a ticket; return it."""
    return eventually(lambda: next(iter(leases(client, pool, "waiting")), None))


def waited_for(client: Client, pool: str, ticket: str, by_a_program: bool) -> None:
    """Return when a program waits for a ticket that keeps its place, or none does any more.

    To ask for the ticket would count as waiting, to ask for a list does not.
    """

    def seen() -> bool | None:
        for found in client.admission.leases(pool=pool, state="waiting"):
            assert found.waiting is not None
            if found.id == ticket and (found.waiting.code != "absent") is by_a_program:
                return True
        return None

    eventually(seen)
