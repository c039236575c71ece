"""A small ledger in which something is on every page, always the same."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from tests.faces.v1.native import Native

HOSTS = 60
AGENT = str(UUID(int=77, version=4))
POOL = "install/azure"
BOOT = str(UUID(int=5, version=4))
SPLIT, BACK, TAGGED = (str(UUID(int=number, version=4)) for number in (81, 82, 83))
"""Reshapes: one that was undone, the one that has undone it, and one that cannot be undone."""

SPLIT_HOST, GUEST = str(UUID(int=1000 + HOSTS - 1, version=4)), str(UUID(int=92, version=4))
"""The host whose shape has changed, and the consumer that has part of it."""

PLACEMENT = {"OpenStack_API_Version": "placement 1.39"}


class ExampleLedger:
    """A server with pools, leases, a line, hosts, an agent and reshapes."""

    def __init__(self, native: Native) -> None:
        self.native = native
        self.url = native.url
        self._ok("PUT", f"/v1/pools/{POOL}", {"limit": 6, "hold": 1200, "pacing": None})
        self._ok("PUT", "/v1/pools/gpu", {"limit": 3, "pacing": None})
        self._ok("PUT", "/v1/pools/install/aws", {"limit": 10, "pacing": None})
        self._ok("POST", "/v1/pools/install/aws:pause", {"reason": "the account is over its quota"})
        self.leases = [self._job(number) for number in range(14)]
        self._hosts()
        self._agent()
        self._reshapes()
        self.ticket = self.leases[-1]
        self.choosing = self._choosing()
        self.tomorrow = datetime.now(UTC).date() + timedelta(days=1)  # noqa: TID251  # the time of the real server
        self.booking = self._bookings()
        self.pages = {
            "overview": "/ui",
            "pools": "/ui/pools",
            "pool": f"/ui/pools/{POOL}",
            "what-if": f"/ui/pools/{POOL}:what-if?limit=9",
            "leases": "/ui/leases",
            "ticket": f"/ui/leases/{self.ticket}",
            "ticket-any-of": f"/ui/leases/{self.choosing}",
            "lease": f"/ui/leases/{self.leases[0]}",
            "bookings": "/ui/bookings",
            "booking": f"/ui/bookings/{self.booking}",
            "booking-new": f"/ui/bookings/new?pool=gpu&units=2&start={self.tomorrow}T11:00"
            f"&end={self.tomorrow}T15:00&note=a+demonstration",
            "booking-change": f"/ui/bookings/{self.booking}/change?start={self.tomorrow}T10:00"
            f"&end={self.tomorrow}T12:00&note=longer",
            "booking-cancel": f"/ui/bookings/{self.booking}/cancel",
            "fleet": "/ui/fleet",
            "machines": "/ui/fleet/machines",
            "machine": f"/ui/fleet/machines/{AGENT}",
            "agent": f"/ui/agents/{AGENT}",
            "fit": "/ui/fit?resources=VCPU:4,CUSTOM_BAREMETAL:2&required=CUSTOM_NVME",
            "fit-found": "/ui/fit?resources=VCPU:4",
            "claim": "/ui/fit/claim?resources=VCPU:4",
            "consumers": "/ui/consumers",
            "consumer": f"/ui/consumers/{GUEST}",
            "projects": "/ui/projects",
            "project": "/ui/projects?project=p",
            "host": f"/ui/fleet/machines/{SPLIT_HOST}",
            "reshapes": "/ui/reshapes",
            "reshape": f"/ui/reshapes/{BACK}",
            "reshape-undone": f"/ui/reshapes/{SPLIT}",
            "undo": f"/ui/reshapes/{BACK}/undo",
            "undo-refused": f"/ui/reshapes/{TAGGED}/undo",
            "find": "/ui/find?text=rack0",
            "audit": "/ui/audit",
            "changes": "/ui/changes",
            "api": "/ui/api",
            "api-search": "/ui/api?q=lease+renew",
            "api-operation": "/ui/api/create_lease",
            "api-parameters": "/ui/api/list_leases",
        }

    def _ok(self, method: str, path: str, body: object) -> dict[str, object]:
        answer = self.native.ask(method, path, body)
        assert answer.status < 300, (method, path, answer)
        return answer.body or {}

    def _job(self, number: int) -> str:
        pool = "gpu" if number % 3 == 2 else POOL
        labels = {"job": str(4700 + number), "host": f"runner-{number % 4}", "user": "ci"}
        needs = [{"pool": pool, "units": 1 + number % 2}]
        body = {"needs": needs, "key": f"job-{number}", "ttl": 3600, "patience": 3600}
        return str(self._ok("POST", "/v1/leases", {**body, "labels": labels})["id"])

    def _choosing(self) -> str:
        """Ask for any of several pools: one is full, one is paused, of one more is needed."""
        any_of = [
            [{"pool": "install/aws"}],
            [{"pool": "gpu"}],
            [{"pool": "gpu", "units": 2}, {"pool": POOL, "units": 6}],
        ]
        body = {"any_of": any_of, "key": "any", "ttl": 3600, "patience": 3600}
        return str(self._ok("POST", "/v1/leases", {**body, "labels": {"job": "any"}})["id"])

    def _bookings(self) -> str:
        """Book units of the paused pool in a series, and close some; return the first booking."""
        times = {"start": f"{self.tomorrow}T09:00:00Z", "end": f"{self.tomorrow}T13:30:00Z"}
        wanted = {"needs": [{"pool": "install/aws", "units": 2}], "note": "release tests", **times}
        series = {"key": "series", "repeat": {"every": "day", "count": 5}}
        made = self._ok("POST", "/v1/bookings", {**wanted, **series})
        closed = {"key": "closed", "closure": True, "note": "the network is replaced"}
        self._ok("POST", "/v1/bookings", {**wanted, **closed})
        return str(made["id"])

    def _hosts(self) -> None:
        hosts = [
            {
                "uuid": str(UUID(int=1000 + number, version=4)),
                "name": f"rack{number // 20:02d}-node{number % 20:02d}",
                "inventories": {
                    "CUSTOM_BAREMETAL": {"total": 1, "reserved": int(number % 9 == 0)},
                    "VCPU": {"total": 64},
                },
                "traits": ["CUSTOM_NVME"] if number % 3 else [],
                "aggregates": [str(UUID(int=number // 20 + 1, version=4))],
            }
            for number in range(HOSTS)
        ]
        self._ok("POST", "/v1/providers:bulk", {"providers": hosts, "create_vocabulary": True})
        for number in range(25):
            groups = [{"resources": {"VCPU": 8 * (1 + number % 5)}}]
            self._ok(
                "POST",
                "/v1/claims",
                {"groups": groups, "project_id": "p", "user_id": "u", "choose": "pack"},
            )

    def _agent(self) -> None:
        self._ok("PUT", f"/v1/agents/{AGENT}", {"group": "rack-1", "labels": {"row": "7"}})
        part = {
            "provider": AGENT,
            "name": "memory",
            "classes": {"MEMORY_MB": {"eligible": 65536}},
        }
        facts = {"hostname": "sled-7", "kernel": "6.1", "version": "1"}
        self._ok(
            "POST",
            f"/v1/agents/{AGENT}/register",
            {"boot_id": BOOT, "facts": facts, "parts": [part]},
        )

    def _reshapes(self) -> None:
        host, guest = SPLIT_HOST, GUEST
        other = str(UUID(int=1000 + HOSTS - 2, version=4))
        child = str(UUID(int=91, version=4))
        body = {
            "allocations": {host: {"resources": {"VCPU": 8}}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        placed = self.native.ask("PUT", f"/allocations/{guest}", body, **PLACEMENT)
        assert placed.status == 204, placed
        source, target = ({"provider": one, "class": "VCPU"} for one in (host, child))
        move = {"from": source, "to": target, "amount": 32, "assign": {guest: {child: 8}}}
        plan: dict[str, object] = {
            "create": [{"uuid": child, "name": "rack02-node19 numa0", "parent": host}],
            "moves": [move],
            "inventories": {host: {"VCPU": {"reserved": 2}}},
        }
        reason = "the scheduler places by NUMA node"
        self._ok("POST", "/v1/reshapes", {"plan": plan, "id": SPLIT, "reason": reason})
        undone = {"id": BACK, "reason": "the wrong host"}
        self._ok("POST", f"/v1/reshapes/{SPLIT}:undo", undone)
        for number, traits in ((TAGGED, []), (None, ["CUSTOM_NVME"])):
            plan = {"traits": {other: traits}}
            self._ok("POST", "/v1/reshapes", {"plan": plan, "id": number})
