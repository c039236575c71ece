"""What the tests of `moorage run` share: a server with pools, and the single file that uses it."""

import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from moorage.client.admission import Admission
from moorage.client.transport import Transport
from moorage.wire.admission import Lease, PoolWanted
from tests.client import single
from tests.e2e.support.server import Server, serve

T = TypeVar("T")
SECONDS = 30.0


class Harbour:
    """A server, the administrator's client, and the single file that uses this server."""

    def __init__(self, server: Server, token: str) -> None:
        self.server = server
        self.token = token
        self.admission = Admission(Transport(server.url, token))
        self._pools = 0

    def pool(self, limit: int = 1, ttl: float | None = None, **more: Any) -> str:
        """Create a pool for a test, with at most this TTL; return its name."""
        self._pools += 1
        name = f"test/pool-{self._pools}"
        wanted = PoolWanted(limit=limit, pacing=None, **more)
        if ttl is not None:
            wanted = replace(wanted, ttl=ttl, ttl_max=ttl)
        self.admission.pool_put(name, wanted)
        return name

    def where(self, url: str | None = None) -> dict[str, str]:
        """Return the variables that lead to the server."""
        return {"MOORAGE_URL": url or self.server.url, "MOORAGE_TOKEN": self.token}

    def finished(self, *words: str, url: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run the single file to its end."""
        return single.finished(*words, **self.where(url))

    @contextmanager
    def started(self, *words: str, url: str | None = None) -> Iterator[subprocess.Popen[str]]:
        """Start the single file; kill what is left of it afterwards."""
        with single.started(*words, **self.where(url)) as process:
            try:
                yield process
            finally:
                process.kill()

    def leases(self, pool: str) -> list[Lease]:
        """Return all leases and tickets of a pool that have not ended, in order."""
        return [lease for lease in self.admission.leases(pool=pool) if lease.state != "ended"]

    def ended(self, pool: str) -> list[Lease]:
        """Return all leases and tickets of a pool that have ended, in order."""
        return [*self.admission.leases(pool=pool, state="ended")]

    def expires(self, pool: str) -> datetime:
        """Return when the only lease of a pool ends."""
        (lease,) = self.leases(pool)
        assert lease.expires_at is not None
        return lease.expires_at

    def outlasts_its_ttl(self, pool: str) -> None:
        """Wait until the only lease of a pool was renewed for longer than its TTL."""
        (lease,) = self.leases(pool)
        assert lease.ttl is not None
        over = self.expires(pool) + timedelta(seconds=lease.ttl)
        eventually(lambda: True if self.expires(pool) > over else None)

    def waiting(self, pool: str, count: int = 1) -> list[Lease]:
        """Wait until this many tickets wait in a pool; return them."""

        def found() -> list[Lease] | None:
            tickets = [lease for lease in self.leases(pool) if lease.state == "waiting"]
            return tickets if len(tickets) == count else None

        return eventually(found)


@contextmanager
def harbour(folder: Path, *options: str) -> Iterator[Harbour]:
    """Start a server with its database in a folder."""
    database = folder / "moorage.sqlite"
    with serve(database, "--no-access-log", *options) as server:
        yield Harbour(server, Path(f"{database}.token").read_text().strip())


def eventually(look: Callable[[], T | None], seconds: float = SECONDS) -> T:
    """Poll until there is a result; fail if it takes too long."""
    pause = threading.Event()
    for _ in range(int(seconds / 0.05)):
        if (found := look()) is not None:
            return found
        pause.wait(0.05)
    raise AssertionError("what is waited for does not come")


def line(process: subprocess.Popen[str]) -> str:
    """Return the next line of a command's standard output."""
    assert process.stdout is not None
    return process.stdout.readline()


def tell(process: subprocess.Popen[str], text: str = "\n") -> None:
    """Type something for a command."""
    assert process.stdin is not None
    process.stdin.write(text)
    process.stdin.flush()


def gone(process: int) -> bool:
    """Return whether a process has ended; another parent's child may be left as a zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
