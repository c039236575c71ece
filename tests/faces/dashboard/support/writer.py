"""Changes pools, leases, providers and allocations at random. Standard library only."""

import random
import threading
from collections import Counter
from typing import Any
from uuid import UUID

from tests.faces.v1.native import Native, Response

POOLS = ("a", "b/c", "paced")
CLASSES = ("VCPU", "MEMORY_MB")
PROVIDERS = 20
AGGREGATES = 3
TICKETS_KEPT = 60
"""With more leases and tickets than this it rather releases some."""

PLACEMENT = "placement latest"
REFUSED = 400
BROKEN = 500


def pools_made(native: Native) -> None:
    """Create the pools that the writer uses."""
    for name in POOLS:
        assert native.ask("PUT", f"/v1/pools/{name}", {"limit": 3, "pacing": None}).status == 200


class Writer(threading.Thread):
    """Changes everything at random, until it is stopped."""

    def __init__(self, native: Native, seed: int) -> None:
        super().__init__(daemon=True)
        self._native = native
        self._dice = random.Random(seed)
        self._ended = threading.Event()
        self._leases: list[str] = []
        self._consumers: list[str] = []
        self.failure: BaseException | None = None
        self.step = 0
        self.done: Counter[str] = Counter()
        """How often each action has succeeded."""

    def run(self) -> None:
        """Change one thing after another."""
        acts = {
            self._acquire: 30,
            self._release: 18,
            self._renew: 5,
            self._move: 6,
            self._force: 3,
            self._limit: 6,
            self._pause: 4,
            self._provider: 8,
            self._claim: 8,
            self._allocate: 6,
            self._free: 6,
        }
        try:
            while not self._ended.is_set():
                self.step += 1
                full = len(self._leases) > TICKETS_KEPT
                (act,) = self._dice.choices([*acts], [*acts.values()])
                (self._release if full and act == self._acquire else act)()
        except BaseException as error:
            self.failure = error

    def stop(self) -> None:
        """Stop, and raise what has gone wrong."""
        self._ended.set()
        self.join()
        if self.failure is not None:
            raise self.failure

    def _ask(
        self, name: str, method: str, path: str, body: Any = None, **headers: str
    ) -> Response | None:
        """Return the answer, or None if the server has refused what the dice wanted."""
        answer = self._native.ask(method, path, body, **headers)
        assert answer.status < BROKEN, (method, path, answer)
        if answer.status >= REFUSED:
            return None
        self.done[name] += 1
        return answer

    def _acquire(self) -> None:
        names = self._dice.sample(POOLS, self._dice.choice((1, 1, 2)))
        needs = [{"pool": name, "units": self._dice.choice((1, 2))} for name in names]
        body = {"needs": needs, "key": f"job-{self.step}", "ttl": 3600, "patience": 3600}
        answer = self._ask("acquire", "POST", "/v1/leases", body)
        if answer is not None:
            self._leases.append(answer.body["id"])

    def _lease(self) -> str | None:
        return self._dice.choice(self._leases) if self._leases else None

    def _release(self) -> None:
        if (lease := self._lease()) is not None:
            self._leases.remove(lease)
            self._ask("release", "DELETE", f"/v1/leases/{lease}")

    def _renew(self) -> None:
        if (lease := self._lease()) is not None:
            self._ask("renew", "POST", f"/v1/leases/{lease}/renew", {})

    def _move(self) -> None:
        where = {"first": True} if self._dice.random() < 0.5 else {"priority": 1}
        if (lease := self._lease()) is not None:
            self._ask("move", "POST", f"/v1/leases/{lease}/move", where)

    def _force(self) -> None:
        if (lease := self._lease()) is not None:
            self._ask("force", "POST", f"/v1/leases/{lease}/force", {})

    def _limit(self) -> None:
        body = {"limit": self._dice.randrange(9), "pacing": None}
        self._ask("limit", "PUT", f"/v1/pools/{self._dice.choice(POOLS)}", body)

    def _pause(self) -> None:
        path = f"/v1/pools/{self._dice.choice(POOLS)}"
        if self._dice.random() < 0.4:
            self._ask("pause", "POST", f"{path}:pause", {"reason": "a random one"})
        else:
            self._ask("resume", "POST", f"{path}:resume", {})

    def _uuid(self) -> str:
        return str(UUID(int=self._dice.randrange(PROVIDERS), version=4))

    def _provider(self) -> None:
        uuid = self._uuid()
        total, reserved = self._dice.randrange(1, 65), self._dice.randrange(2)
        ratio = self._dice.choice((1.0, 1.5, 16.0))
        inventory = {"total": total, "reserved": min(reserved, total), "allocation_ratio": ratio}
        groups = self._dice.sample(range(AGGREGATES), self._dice.randrange(AGGREGATES))
        one = {
            "uuid": uuid,
            "name": uuid,
            "inventories": dict.fromkeys(CLASSES, inventory),
            "aggregates": [str(UUID(int=group, version=4)) for group in groups],
        }
        self._ask("provider", "POST", "/v1/providers:bulk", {"providers": [one]})

    def _claim(self) -> None:
        resources = {self._dice.choice(CLASSES): self._dice.randrange(1, 5)}
        body = {"groups": [{"resources": resources}], "project_id": "p", "user_id": "u"}
        answer = self._ask("claim", "POST", "/v1/claims", body)
        if answer is not None:
            self._consumers.append(answer.body["consumer"])

    def _allocate(self) -> None:
        consumer = str(UUID(int=self._dice.getrandbits(128), version=4))
        resources = {self._dice.choice(CLASSES): self._dice.randrange(1, 5)}
        body = {
            "allocations": {self._uuid(): {"resources": resources}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        path = f"/allocations/{consumer}"
        answer = self._ask("allocate", "PUT", path, body, OpenStack_API_Version=PLACEMENT)
        if answer is not None:
            self._consumers.append(consumer)

    def _free(self) -> None:
        if self._consumers:
            consumer = self._consumers.pop(self._dice.randrange(len(self._consumers)))
            path = f"/allocations/{consumer}"
            self._ask("free", "DELETE", path, OpenStack_API_Version=PLACEMENT)


ACTIONS = {
    *("acquire", "release", "renew", "move", "force", "limit", "pause", "resume"),
    *("provider", "claim", "allocate", "free"),
}
"""Everything that the writer does; in a minute it does all of it."""
