"""A ledger of 15,000 nodes and 10,000 tickets, and somebody who looks at it."""

import asyncio
import itertools
import json
from collections.abc import Iterator

from bench.fleet import Fleet, Provider, flat_host
from bench.wire import drive, request
from tests.faces.v1.native import Native

NODES = 15_000
TICKETS = 10_000
POOLS = 20
HELD = 50
"""Units of each pool; all are held."""

PATIENCE = TTL = 3_600
AT_ONCE = 1_000
CONNECTIONS = 64
BUSIEST = "install/region-00"


class Scene:
    """A filled ledger behind one address.

    Half of the tickets wait in one pool, the others in all pools.
    """

    def __init__(self, native: Native, nodes: int = NODES, tickets: int = TICKETS) -> None:
        self.native = native
        self.fleet = Fleet("flat", nodes)
        self.tickets = tickets
        self.leases: list[str] = []

    def fill(self) -> None:
        """Create nodes, pools, leases and tickets."""
        hosts = map(_report, (host for (host,) in self.fleet.hosts()))
        while some := list(itertools.islice(hosts, AT_ONCE)):
            self.ok("POST", "/v1/providers:bulk", {"providers": some, "create_vocabulary": True})
        for number in range(POOLS):
            wanted = {"limit": HELD, "ttl": TTL, "queue_max": 2 * self.tickets, "pacing": None}
            self.ok("PUT", f"/v1/pools/{pool(number)}", wanted)
        outcome = asyncio.run(drive([self.native.url], self._jobs(), CONNECTIONS))
        assert set(outcome.statuses) <= {200, 201, 202}, (outcome.statuses, outcome.sample)
        page = self.ok("GET", "/v1/leases?state=waiting&limit=200", None)
        self.leases = [one["id"] for one in page["leases"]]

    def _jobs(self) -> Iterator[bytes]:
        held = [pool(number) for number in range(POOLS) for _ in range(HELD)]
        half = self.tickets // 2
        waiting = [BUSIEST] * half + [pool(n % POOLS) for n in range(self.tickets - half)]
        for number, name in enumerate([*held, *waiting]):
            yield self.send("POST", "/v1/leases", job(name, number))

    def send(self, method: str, path: str, body: object = None) -> bytes:
        """Return a request with the administrator's token."""
        raw = b"" if body is None else json.dumps(body).encode()
        return self.signed(request(method, path, raw))

    def signed(self, raw: bytes) -> bytes:
        """Return a prepared request with a real token."""
        return raw.replace(b"X-Auth-Token: admin", b"X-Auth-Token: " + self.native.secret.encode())

    def ok(self, method: str, path: str, body: object) -> dict[str, list[dict[str, str]]]:
        """Ask and expect success."""
        answer = self.native.ask(method, path, body)
        assert answer.status < 300, (method, path, answer)
        found: dict[str, list[dict[str, str]]] = answer.body
        return found

    def pages(self) -> dict[str, str]:
        """Return every kind of page, by name."""
        host = flat_host(7)[0].uuid
        return {
            "overview": "/ui",
            "pools": "/ui/pools",
            "pool": f"/ui/pools/{BUSIEST}",
            "leases": "/ui/leases",
            "ticket": f"/ui/leases/{self.leases[0]}",
            "fleet": "/ui/fleet",
            "machines": "/ui/fleet/machines",
            "machine": f"/ui/fleet/machines/{host}",
            "fit": "/ui/fit?resources=VCPU:4,MEMORY_MB:4096",
            "audit": "/ui/audit",
            "changes": "/ui/changes",
        }

    def alike(self) -> list[str]:
        """Return the 20 addresses that most readers have open."""
        common = [path for name, path in self.pages().items() if name not in {"fit", "machine"}]
        return [*common, *(f"/ui/pools/{pool(number)}" for number in range(1, 21 - len(common)))]

    def different(self) -> list[str]:
        """Return 200 addresses: each waiting job looks at its own ticket."""
        return [f"/ui/leases/{lease}" for lease in self.leases]


def pool(number: int) -> str:
    """Return the name of a pool."""
    return f"install/region-{number:02}"


def job(name: str, number: int) -> dict[str, object]:
    """Return what a job asks for."""
    return {
        "needs": [{"pool": name}],
        "key": f"job-{number}",
        "ttl": TTL,
        "patience": PATIENCE,
        "labels": {"job": str(number), "host": f"runner-{number % 40}", "user": "ci"},
    }


def _report(provider: Provider) -> dict[str, object]:
    return {
        "uuid": provider.uuid,
        "name": provider.name,
        "inventories": provider.inventories,
        "traits": list(provider.traits),
        "aggregates": list(provider.aggregates),
    }
