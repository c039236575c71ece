"""The fleet of the example: hosts, what is allocated on them, and agents that are alive."""

import random
import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid5

from demo.asking import BUSY, Call, HttpAsker, Refusal, granted
from demo.setting import AGENTS_MAX, Host, identity

BULK = 2_000
CLAIMS_AT_ONCE = 200
PAGES = "CUSTOM_HUGEPAGES_1GB"
USED = 0.7
"""The share of hosts that somebody uses at first."""

CLAIMS_EVERY = 1.5
"""Seconds between two consumers that come or go."""

RETRY_SECONDS = 30.0
AGAIN_SECONDS = 1.0

SILENT, FAILING = 3, 1
"""Agents that fall silent, and that report a failure."""


class Fleet:
    """Builds the fleet, then changes it a little now and then."""

    def __init__(self, asker: HttpAsker, hosts: int, seed: int) -> None:
        self._asker = asker
        self._dice = random.Random(f"{seed}/fleet")
        self._hosts = [Host(number) for number in range(hosts)]
        self._consumers: list[str] = []
        self._count = 0
        self._agents = [host for host in self._hosts if host.kind == 1][:AGENTS_MAX]
        self._signs: dict[str, float] = {}
        """When each agent speaks next."""
        self._retries: dict[str, float] = {}
        """When each agent tries again, if it fails."""
        self._attempts = 1
        self._failing_since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._claims_at = 0.0

    def building(self) -> Iterator[None]:
        """Create everything, a part at a time: others have their turn in between."""
        providers = [one for host in self._hosts for one in host.providers(self._dice)]
        for first in range(0, len(providers), BULK):
            body = {"providers": providers[first : first + BULK], "create_vocabulary": True}
            self._ask("POST", "/v1/providers:bulk", body)
            yield
        for calls in zip(*map(self._registration, self._agents), strict=True):
            for answer in self._asker.ask_any_order(calls):
                granted(answer)
            yield
        for host in self._agents:
            self._signs[host.uuid] = time.monotonic()
            self._retries[host.uuid] = time.monotonic() + RETRY_SECONDS

    def filling(self) -> Iterator[None]:
        """Let somebody use most hosts, some at a time."""
        chosen = self._dice.sample(self._hosts, round(len(self._hosts) * USED))
        for first in range(0, len(chosen), CLAIMS_AT_ONCE):
            claims = [self._claim(host) for host in chosen[first : first + CLAIMS_AT_ONCE]]
            answers = self._asker.ask_any_order([call for _, call in claims])
            for (consumer, _), answer in zip(claims, answers, strict=True):
                self._claimed(consumer, answer)
            self._speak(time.monotonic())
            yield

    def tick(self) -> None:
        """Do what is due."""
        now = time.monotonic()
        self._speak(now)
        if now >= self._claims_at:
            self._claims_at = now + CLAIMS_EVERY
            if self._consumers and self._dice.random() < 0.5:
                gone = self._consumers.pop(self._dice.randrange(len(self._consumers)))
                self._ask("DELETE", f"/allocations/{gone}")
            else:
                consumer, call = self._claim(self._dice.choice(self._hosts))
                self._claimed(consumer, self._asker.ask([call])[0])

    def _speak(self, now: float) -> None:
        """Let agents say that they are alive, and failing ones report another attempt."""
        for host in self._agents[SILENT:]:
            if self._signs[host.uuid] <= now:
                body = {
                    "boot_id": identity("boot", host.number),
                    "report_generation": self._generation(host),
                }
                call = Call("POST", f"/v1/agents/{host.uuid}/alive", body)
                (answer,) = self._asker.ask([call])
                # If it is refused, the other agents are no less alive.
                refused = isinstance(answer, Refusal)
                self._signs[host.uuid] = now + (AGAIN_SECONDS if refused else answer["next_in"])
        for host in self._agents[SILENT : SILENT + FAILING]:
            if self._retries[host.uuid] <= now:
                self._attempts += 1
                address = f"/v1/agents/{host.uuid}/report"
                self._ask("PUT", address, self._report(host))
                self._retries[host.uuid] = now + RETRY_SECONDS

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        return granted(self._asker.ask([Call(method, path, body)])[0])

    def _claim(self, host: Host) -> tuple[str, Call]:
        """Return the UUID of another consumer, and its request."""
        self._count += 1
        consumer = identity("consumer", self._count)
        body = {
            "groups": [{"resources": host.claim, "in_tree": host.uuid}],
            "project_id": f"project-{self._dice.randrange(9)}",
            "user_id": "demo",
            "consumer": consumer,
        }
        return consumer, Call("POST", "/v1/claims", body)

    def _claimed(self, consumer: str, answer: Any) -> None:
        if granted(answer, "no_capacity", *BUSY) is not None:
            self._consumers.append(consumer)

    def _registration(self, host: Host) -> list[Call]:
        """Return the requests by which an agent comes into being, in their order."""
        address = f"/v1/agents/{host.uuid}"
        group = f"racks-{host.rack // 2:02d}"
        named = {"group": group, "labels": {"rack": f"r{host.rack:02d}"}}
        classes = {PAGES: {"eligible": 256}}
        registered = {
            "boot_id": identity("boot", host.number),
            "facts": {"hostname": host.name, "kernel": "6.12", "version": "0.1.0"},
            "root": host.uuid,
            "parts": [{"provider": _child(host), "name": "hugepages", "classes": classes}],
        }
        desired = {"resource_class": PAGES, "amount": 192, "reason": "demo"}
        return [
            Call("PUT", address, named),
            Call("POST", f"{address}/register", registered),
            Call("POST", f"{address}/desired", desired),
            Call("PUT", f"{address}/report", self._report(host)),
        ]

    def _fails(self, host: Host) -> bool:
        return self._agents.index(host) in range(SILENT, SILENT + FAILING)

    def _generation(self, host: Host) -> int:
        """Return the generation of an agent's last report: a failing one reports each attempt."""
        return self._attempts if self._fails(host) else 1

    def _report(self, host: Host) -> dict[str, Any]:
        failing = self._fails(host)
        body: dict[str, Any] = {
            "boot_id": identity("boot", host.number),
            "report_generation": self._generation(host),
            "desired_generation_seen": 1,
            "phase": "done",
            "actual": {_child(host): {PAGES: 40 if failing else 192}},
        }
        if failing:
            body["failure"] = {
                "code": "no_memory",
                "message": "the kernel found no 152 free pages of 1 GiB",
                "attempts": self._attempts,
                "next_retry_in": RETRY_SECONDS,
                "since": self._failing_since,
            }
        return body


def _child(host: Host) -> str:
    """Return the UUID of the provider below a host that its agent manages."""
    return str(uuid5(UUID(host.uuid), "hugepages"))
