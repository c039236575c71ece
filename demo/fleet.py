"""The fleet of the example: hosts, what is allocated on them, and agents that are alive."""

import random
import time
from typing import Any
from uuid import UUID, uuid5

from demo.setting import AGENTS_MAX, Host, identity
from moorage.client.transport import RefusedError, Transport

BULK = 2_000
PAGES = "CUSTOM_HUGEPAGES_1GB"
USED = 0.7
"""The share of hosts that somebody uses at first."""

CLAIMS_EVERY = 1.5
"""Seconds between two consumers that come or go."""

SILENT, FAILING = 3, 1
"""Agents that fall silent, and that report a failure."""


class Fleet:
    """Builds the fleet, then changes it a little now and then."""

    def __init__(self, transport: Transport, hosts: int, dice: random.Random) -> None:
        self._ask = transport.request
        self._dice = dice
        self._hosts = [Host(number) for number in range(hosts)]
        self._consumers: list[str] = []
        self._count = 0
        self._agents = [host for host in self._hosts if host.kind == 1][:AGENTS_MAX]
        self._signs: dict[str, float] = {}
        """When each agent speaks next."""
        self._claims_at = 0.0

    def build(self) -> None:
        """Create everything."""
        providers = [one for host in self._hosts for one in host.providers(self._dice)]
        for first in range(0, len(providers), BULK):
            body = {"providers": providers[first : first + BULK], "create_vocabulary": True}
            self._ask("POST", "/v1/providers:bulk", body)
        for host in self._agents:
            self._register(host)
        for host in self._dice.sample(self._hosts, round(len(self._hosts) * USED)):
            self._claim(host)

    def tick(self) -> None:
        """Do what is due."""
        now = time.monotonic()
        for number, host in enumerate(self._agents):
            if self._signs.get(host.uuid, now + 1) <= now and number >= SILENT:
                self._alive(host, now)
        if now >= self._claims_at:
            self._claims_at = now + CLAIMS_EVERY
            if self._consumers and self._dice.random() < 0.5:
                gone = self._consumers.pop(self._dice.randrange(len(self._consumers)))
                self._ask("DELETE", f"/allocations/{gone}")
            else:
                self._claim(self._dice.choice(self._hosts))

    def _claim(self, host: Host) -> None:
        self._count += 1
        consumer = identity("consumer", self._count)
        body = {
            "groups": [{"resources": host.claim, "in_tree": host.uuid}],
            "project_id": f"project-{self._dice.randrange(9)}",
            "user_id": "demo",
            "consumer": consumer,
        }
        try:
            self._ask("POST", "/v1/claims", body)
        except RefusedError as refused:
            if refused.code != "no_capacity":
                raise
        else:
            self._consumers.append(consumer)

    def _register(self, host: Host) -> None:
        address = f"/v1/agents/{host.uuid}"
        group = f"racks-{host.rack // 2:02d}"
        self._ask("PUT", address, {"group": group, "labels": {"rack": f"r{host.rack:02d}"}})
        child = _child(host)
        classes = {PAGES: {"eligible": 256}}
        parts = [{"provider": child, "name": "hugepages", "classes": classes}]
        body = {
            "boot_id": identity("boot", host.number),
            "facts": {"hostname": host.name, "kernel": "6.12", "version": "0.1.0"},
            "root": host.uuid,
            "parts": parts,
        }
        self._ask("POST", f"{address}/register", body)
        desired = {"resource_class": PAGES, "amount": 192, "reason": "demo"}
        self._ask("POST", f"{address}/desired", desired)
        self._report(host)

    def _report(self, host: Host) -> None:
        failing = self._agents.index(host) in range(SILENT, SILENT + FAILING)
        body: dict[str, Any] = {
            "boot_id": identity("boot", host.number),
            "report_generation": 1,
            "desired_generation_seen": 1,
            "phase": "done",
            "actual": {_child(host): {PAGES: 40 if failing else 192}},
        }
        if failing:
            body["failure"] = {
                "code": "no_memory",
                "message": "the kernel found no 152 free pages of 1 GiB",
                "attempts": 4,
                "next_retry_in": 30.0,
                "since": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            }
        orders = self._ask("PUT", f"/v1/agents/{host.uuid}/report", body)
        self._signs[host.uuid] = time.monotonic() + orders["next_in"]

    def _alive(self, host: Host, now: float) -> None:
        body = {"boot_id": identity("boot", host.number), "report_generation": 1}
        answer = self._ask("POST", f"/v1/agents/{host.uuid}/alive", body)
        self._signs[host.uuid] = now + answer["next_in"]


def _child(host: Host) -> str:
    """Return the UUID of the provider below a host that its agent manages."""
    return str(uuid5(UUID(host.uuid), "hugepages"))
