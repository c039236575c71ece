"""Random requests to every route: never a 5xx, and the ledger stays consistent."""

import json
import os
import random
from typing import Any
from urllib.parse import quote

import pytest

from moorage.core.ids import ProviderId
from moorage.faces.placement.routes import routes
from tests.faces.placement.client import Client, Reply

ROUNDS = 4
REQUESTS_PER_ROUND = 5_000
SOAK_ROUNDS = 40

UUIDS = [f"4e6e6d4c-1111-4000-8000-{number:012x}" for number in range(6)]
NAMES = ["VCPU", "DISK_GB", "CUSTOM_A", "HW_CPU_X86_AVX", "MISC_SHARES_VIA_AGGREGATE", "vcpu", ""]
ODD: list[Any] = [
    None, True, 0, -1, 1, 2**31, 2**63, 2**64, 10**60, 1.5, -0.0, 3.4e38, 1e308, "",
    "\0", "☃", "a" * 300, "\n", "in:", "!", ",", ":", [], {}, [[]], {"": {}}, [None] * 50,
]  # fmt: skip
KEYS = [
    "allocations", "resources", "resource_provider", "uuid", "name", "parent_provider_uuid",
    "total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio", "inventories",
    "resource_provider_generation", "resource_class", "traits", "aggregates", "project_id",
    "user_id", "consumer_generation", "consumer_type", "mappings", "generation",
]  # fmt: skip
PARAMETERS = [
    "resources", "required", "member_of", "in_tree", "name", "uuid", "limit", "group_policy",
    "root_required", "same_subtree", "project_id", "user_id", "consumer_type", "associated",
]  # fmt: skip

ROUTES = routes()
WEIGHTS = [{"GET": 1.0, "DELETE": 0.2}.get(route.method, 3.0) for route in ROUTES]


class Fuzzer:
    """Draws requests: mostly almost right, sometimes nothing of the kind."""

    def __init__(self, seed: int, api: Client) -> None:
        self.api = api
        self.draw = random.Random(seed)
        api.ask("PUT", "/resource_classes/CUSTOM_A")
        api.ask("PUT", "/traits/CUSTOM_A")
        for uuid in UUIDS[:4]:
            api.provider(uuid, VCPU=20, DISK_GB=100, CUSTOM_A=5)

    def one(self, *choices: Any) -> Any:
        return self.draw.choice(choices)

    def rarely(self, chance: float) -> bool:
        return self.draw.random() < chance

    def value(self, depth: int = 0) -> Any:
        """Return any JSON value, with the API's own words in it."""
        kind = self.draw.randrange(8 if depth < 4 else 5)
        if kind < 2:
            return self.one(*ODD)
        if kind < 4:
            return self.one(*UUIDS, *NAMES, 0, 1, 2)
        if kind == 4:
            return self.draw.randrange(6)
        if kind == 5:
            return [self.value(depth + 1) for _ in range(self.draw.randrange(3))]
        keys = [self.one(*KEYS, *UUIDS, *NAMES) for _ in range(self.draw.randrange(4))]
        return {key: self.value(depth + 1) for key in keys}

    def number(self) -> Any:
        return self.one(*ODD) if self.rarely(0.05) else self.draw.randrange(5)

    def resources(self) -> Any:
        return {self.one(*NAMES[:3]): self.number() for _ in range(self.one(1, 1, 2))}

    def inventory(self) -> Any:
        fields = ("reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")
        more = {name: self.number() for name in fields if self.rarely(0.2)}
        return {"total": self.one(1, 4, 100), **more}

    def consumer(self) -> Any:
        amounts = {
            self.one(*UUIDS): {"resources": self.resources()} for _ in range(self.one(0, 1, 2))
        }
        return {
            "allocations": amounts,
            "project_id": self.one("p", "q"),
            "user_id": "u",
            "consumer_generation": self.one(None, None, 1, 2),
            "consumer_type": self.one("A", "B"),
        }

    def generation(self, uuid: str) -> Any:
        """Return what a caller who has just looked would send; not always."""
        record = self.api.service.index.fleet.record(ProviderId(uuid))
        known = record.provider.generation if record else 0
        return {"resource_provider_generation": self.one(known, known, known, known, 0)}

    def offer(self, uuid: str) -> Any:
        offered = {self.one(*NAMES[:3]): self.inventory() for _ in range(self.one(0, 1, 2))}
        return {**self.generation(uuid), "inventories": offered}

    def body(self, path: str, uuid: str) -> Any:
        """Return a body that the route might take."""
        generation = self.generation(uuid)
        if path.endswith("/inventories"):
            post = {**self.inventory(), "resource_class": self.one(*NAMES[:3])}
            return self.one(self.offer(uuid), post)
        if path.endswith("/{resource_class}"):
            return {**self.inventory(), **generation}
        if path.endswith("/traits"):
            return {**generation, "traits": self.draw.sample(NAMES[3:], self.one(0, 1, 2))}
        if path.endswith("/aggregates"):
            named = self.draw.sample(UUIDS, self.one(0, 1, 2))
            return self.one(named, {**generation, "aggregates": named})
        if path == "/reshaper":
            offers = {uuid: self.offer(uuid) for uuid in self.draw.sample(UUIDS, self.one(1, 2))}
            return {"inventories": offers, "allocations": {self.one(*UUIDS): self.consumer()}}
        if path == "/allocations":
            return {self.one(*UUIDS): self.consumer() for _ in range(self.one(1, 2))}
        if path.startswith("/allocations"):
            return self.consumer()
        named = {"name": self.one("a", "b", "c", "CUSTOM_A", "CUSTOM_B")}
        return self.one(named, {**named, "uuid": self.one(*UUIDS)},
                        {**named, "parent_provider_uuid": self.one(None, *UUIDS)})  # fmt: skip

    def spoil(self, value: Any) -> Any:
        """Put something else somewhere into a body."""
        if isinstance(value, dict) and value and not self.rarely(0.2):
            key = self.one(*value)
            return {**value, key: self.spoil(value[key])}
        return self.value()

    def spoil_bytes(self, body: bytes) -> bytes:
        """Change one byte, or cut."""
        at = self.draw.randrange(len(body) + 1)
        return body[:at] + self.one(b"", b"\0", b"\xff", b"\\", b'"', b"{") + body[at + 1 :]

    def query(self, path: str) -> str:
        """Return a query string."""
        begins = {"/allocation_candidates": "resources=VCPU:1", "/usages": "project_id=p"}
        pairs = [begins[path]] if path in begins and not self.rarely(0.2) else []
        for _ in range(self.one(0, 0, 1, 1, 2, 3)):
            name = self.one(*PARAMETERS) + self.one("", "", "1", "_A", "2")
            text = self.one(
                "VCPU:1", "VCPU:2,DISK_GB:1", "HW_CPU_X86_AVX", "!HW_CPU_X86_AVX", "in:CUSTOM_A",
                "isolate", "none", "5", "_A", "1,_A", "true", "p", self.one(*UUIDS),
                "in:" + ",".join(UUIDS[:2]), "!" + UUIDS[0], self.one(*map(str, ODD)),
            )  # fmt: skip
            pairs.append(f"{name}={quote(text, safe=',:!')}")
        if self.rarely(0.05):
            pairs.append(self.one("%ff", "a=%00", "=", "&&", "resources", "%", "a" * 300))
        return "&".join(pairs)

    def request(self) -> Reply:
        """Send one request."""
        route = self.draw.choices(ROUTES, WEIGHTS)[0]
        path, method = route.path, route.method
        uuid = self.one(*UUIDS)
        body = None
        if method in ("PUT", "POST"):
            drawn = self.body(path, uuid)
            body = json.dumps(self.spoil(drawn) if self.rarely(0.3) else drawn).encode()
            body = self.spoil_bytes(body) if self.rarely(0.1) else body
        target = path
        for name in ("{uuid}", "{consumer}"):
            target = target.replace(
                name, uuid if not self.rarely(0.1) else self.one("x", uuid.upper())
            )
        for name in ("{resource_class}", "{name}"):
            target = target.replace(name, self.one(*NAMES[:5], "CUSTOM_B", "\0", "a" * 300))
        if method == "GET":
            target += f"?{self.query(path)}"
        if self.rarely(0.02):
            method = self.one("GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS")
        headers = {"accept": self.one("*/*", "text/html", "x", "")} if self.rarely(0.05) else {}
        if self.rarely(0.02):
            headers["content_type"] = self.one("", "text/plain", "application/json;x")
        return self.api.ask(
            method, target, body, self.one(39, 39, self.draw.randrange(40)), **headers
        )


@pytest.mark.parametrize("seed", range(SOAK_ROUNDS if "MOORAGE_SOAK" in os.environ else ROUNDS))
def test_no_request_is_a_fault(api: Client, seed: int) -> None:
    """Whatever is asked is answered or refused, and afterwards the rows agree with the index."""
    fuzzer = Fuzzer(seed, api)
    seen: dict[int, int] = {}
    for _ in range(REQUESTS_PER_ROUND):
        reply = fuzzer.request()
        assert reply.status < 500, reply
        seen[reply.status] = seen.get(reply.status, 0) + 1
    assert {200, 201, 204, 400, 404, 405, 406, 409, 415} <= set(seen), seen
    report = api.run(api.service.upkeep.check())
    assert report == []
