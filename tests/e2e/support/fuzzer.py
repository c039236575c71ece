"""Requests to every Placement route: valid ones, ones with one thing wrong, and nonsense.

Fuzzers learn generations from the answers, so that many of their requests succeed.
"""

import string
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from tests.e2e.support.chance import Chance
from tests.e2e.support.hostile import TEXTS, hostile
from tests.e2e.support.known import Known, Sent
from tests.e2e.support.peer import head

NEWEST = 39
PROVIDERS = [f"{n:08d}-aaaa-4aaa-8aaa-aaaaaaaaaaaa" for n in range(10)]
CONSUMERS = [f"{n:08d}-cccc-4ccc-8ccc-cccccccccccc" for n in range(6)]
AGGREGATES = [f"{n:08d}-dddd-4ddd-8ddd-dddddddddddd" for n in range(3)]
CLASSES = ["VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_A", "CUSTOM_B", "CUSTOM_C"]
TRAITS = ["HW_CPU_X86_AVX2", "MISC_SHARES_VIA_AGGREGATE", "CUSTOM_S", "CUSTOM_T"]
ROLES = ["admin", "admin", "service", "service,admin", "reader", "", "ADMIN", "\xff"]
BAD_VERSIONS = [
    *("placement 1.40", "placement 0.5", "placement 1.2.3", "placement pony.horse", "placement"),
    *("placement 1.", "placement .5", "placement -1.5", "placement 1.99999999999999999999"),
    *("placement 2.0", "placement 1.05", "placement 1.\xb2", "1.5", "", "compute 2.1"),
    *("compute 2.1, placement 1.30", "PLACEMENT 1.20", "placement LATEST", ",,,placement 1.9,"),
    *("placement 1.5,placement 1.36", "placement  1.7", "placement 1.7 1.8", "x" * 5_000),
]
ACCEPTS = [
    *("application/json", "*/*", "text/html", "text/plain", "application/json;q=0", "a/b;q=x"),
    *("text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", ";;;", "application/*", "\xff", "," * 999),
]
CONTENT_TYPES = [
    *("application/json; charset=utf-8", "text/plain", "application/json; charset=utf-16"),
    *("a/b/c", "application/jsonx", "APPLICATION/JSON", "", "multipart/form-data", "\xe9"),
]
PIECES = [
    *("%00", "%ff", "%c3%28", "%", "%zz", "%2F", "..", "%2e%2e", "", "x" * 3_000, "\xff", "a;b=c"),
    *("%ed%a0%80", "%F0%9F%92%A9", "VCPU%0A", "*", "CUSTOM_%C3%89", "0" * 36, "NULL", "@", "a+b"),
]


Body = Callable[[], Any] | None


def escaped(text: str) -> str:
    """Return a text as written in a query string."""
    return quote(text, safe=":,!", errors="replace")


class Fuzzer(Chance):
    """Makes requests, one after the other, from one random source."""

    WRONG = 0.3

    def __init__(self, seed: object, known: Known) -> None:
        super().__init__(seed)
        self._known = known
        self._version = NEWEST
        self._provider = PROVIDERS[0]
        self._consumer = CONSUMERS[0]
        self.routes = self._all_routes()

    def _all_routes(self) -> list[tuple[str, str, Body]]:
        one = "/resource_providers/{provider}"
        return [
            ("GET", "/", None),
            ("GET", "/resource_providers", None),
            *[("POST", "/resource_providers", self._provider_new)] * 3,
            ("GET", one, None),
            ("PUT", one, self._provider_changed),
            ("DELETE", one, None),
            ("GET", one + "/usages", None),
            ("GET", one + "/allocations", None),
            ("GET", one + "/aggregates", None),
            ("PUT", one + "/aggregates", self._aggregates),
            ("GET", one + "/traits", None),
            ("PUT", one + "/traits", self._traits),
            ("DELETE", one + "/traits", None),
            *[("GET", one + "/inventories", None)] * 2,
            *[("POST", one + "/inventories", self._inventory_new)] * 2,
            *[("PUT", one + "/inventories", self._inventories)] * 2,
            ("DELETE", one + "/inventories", None),
            ("GET", one + "/inventories/{class}", None),
            ("PUT", one + "/inventories/{class}", self._inventory_changed),
            ("DELETE", one + "/inventories/{class}", None),
            ("GET", "/resource_classes", None),
            ("POST", "/resource_classes", lambda: {"name": self._class()}),
            ("GET", "/resource_classes/{class}", None),
            ("PUT", "/resource_classes/{class}", lambda: {"name": self._class()}),
            ("DELETE", "/resource_classes/{class}", None),
            ("GET", "/traits", None),
            ("GET", "/traits/{trait}", None),
            ("PUT", "/traits/{trait}", None),
            ("DELETE", "/traits/{trait}", None),
            *[("POST", "/allocations", self._allocations_many)] * 3,
            *[("GET", "/allocations/{consumer}", None)] * 2,
            *[("PUT", "/allocations/{consumer}", self._allocations)] * 4,
            ("DELETE", "/allocations/{consumer}", None),
            ("GET", "/usages", None),
            *[("POST", "/reshaper", self._reshape)] * 2,
            *[("GET", "/allocation_candidates", None)] * 4,
        ]

    def next(self) -> Sent:
        """Return the next request."""
        choice = self.choice
        method, template, body = choice.choice(self.routes)
        self._version = NEWEST if choice.random() < 0.5 else choice.randint(0, NEWEST)
        self._provider = self._one_provider()
        self._consumer = choice.choice(CONSUMERS)
        content = self._content(body)
        target = self._target(template)
        if choice.random() < 0.01:
            method = choice.choice(["PATCH", "OPTIONS", "HEAD", "TRACE", "PUT", "POST", "DELETE"])
        headers = self._headers(content is not None)
        request = head(method, target, headers, content)
        return Sent(method, template, self._provider, self._consumer, request)

    def _one_provider(self) -> str:
        """Return an existing one, usually."""
        there = sorted(self._known.providers)
        return self.choice.choice(PROVIDERS if self._rarely(0.3) or not there else there)

    def _headers(self, with_body: bool) -> list[tuple[str, str]]:
        choice = self.choice
        version = "latest" if self._version == NEWEST else f"1.{self._version}"
        found = [
            ("OpenStack-API-Version", f"placement {version}"),
            ("X-Auth-Token", "admin"),
            ("X-Roles", choice.choice(ROLES) if self._rarely(0.05) else "admin,service"),
        ]
        if self._rarely():
            found[0] = (found[0][0], choice.choice(BAD_VERSIONS))
        if self._rarely(0.01):
            found.remove(found[1])
        if self._rarely(0.1):
            found.append(("Accept", choice.choice(ACCEPTS)))
        if with_body and not self._rarely(0.01):
            kind = choice.choice(CONTENT_TYPES) if self._rarely() else "application/json"
            found.append(("Content-Type", kind))
        if self._rarely(0.02):
            found.append(("X-Project-Id", "\xc3\xa9" * 50))
            found.append(("Origin", "http://elsewhere.example.com"))
        return found

    def _target(self, template: str) -> str:
        path = template.format_map(
            {
                "provider": self._provider,
                "consumer": self._consumer,
                "class": self._class(),
                "trait": self.choice.choice(TRAITS),
            }
        )
        if self._rarely(0.05):
            parts = path.split("/")
            at = self.choice.randrange(1, len(parts))
            parts[at : at + self.choice.randint(0, 1)] = [self.choice.choice(PIECES)]
            path = "/".join(parts)
        query = self._query(template)
        return f"{path}?{query}" if query else path

    # Query strings.

    def _pairs(self, template: str) -> list[tuple[str, str]]:
        makers = {
            "/resource_providers": self._provider_query,
            "/allocation_candidates": self._candidate_query,
            "/usages": self._usage_query,
            "/traits": self._trait_query,
        }
        make = makers.get(template)
        return make() if make else []

    def _query(self, template: str) -> str:
        pairs = self._pairs(template)
        while pairs and self._rarely(0.25):
            at = self.choice.randrange(len(pairs))
            pairs[at] = self._wrong_pair(*pairs[at])
        if self._rarely(0.02):
            pairs += [(self.choice.choice(["x", "", "limit", "\0"]), str(hostile(self.choice)))]
        text = "&".join(f"{escaped(key)}={escaped(value)}" for key, value in pairs)
        return text + self.choice.choice(["&%ff=%fe", "&&=", "&a", "%"]) if self._rarely() else text

    def _wrong_pair(self, key: str, value: str) -> tuple[str, str]:
        texts = [text for text in TEXTS if type(text) is str and text.isprintable()]
        letter = self.choice.choice(string.printable)
        at = self.choice.randrange(len(value) + 1)
        return self.choice.choice(
            [
                (key, self.choice.choice(texts)),
                (key, value[:at] + letter + value[at:]),
                (key, value[:at]),
                (key + letter, value),
                (key, ",".join([value[:1_000]] * 300)),
                (key, "!" + value),
                (key, "in:" + value),
                (key, value + ":" + "9" * 30),
            ]
        )

    def _provider_query(self) -> list[tuple[str, str]]:
        pairs = [
            ("name", f"name-{self.choice.randint(0, 9)}"),
            ("uuid", self._provider),
            ("member_of", self._member_of()),
            ("resources", self._resources()),
            ("in_tree", self._provider),
            ("required", self._required()),
        ]
        return self.choice.sample(pairs, self.choice.choice([0, 1, 1, 2, 3]))

    def _candidate_query(self) -> list[tuple[str, str]]:
        suffixes = self.choice.sample(["", "1", "2", "_A", "_B"], self.choice.randint(1, 3))
        pairs = []
        for suffix in suffixes:
            if suffix == "" or not self._rarely(0.1):
                pairs.append(("resources" + suffix, self._resources()))
            if self._rarely(0.3):
                pairs.append(("required" + suffix, self._required()))
            if self._rarely(0.2):
                pairs.append(("member_of" + suffix, self._member_of()))
            if self._rarely(0.1):
                pairs.append(("in_tree" + suffix, self._provider))
        if len(suffixes) > 1:
            pairs.append(("group_policy", self.choice.choice(["none", "isolate"])))
        if self._rarely(0.2):
            pairs.append(("same_subtree", ",".join(suffixes)))
        if self._rarely(0.2):
            pairs.append(("root_required", self._required()))
        if self._rarely(0.5):
            pairs.append(("limit", str(self.choice.choice([1, 2, 10, 1_000, 10**30]))))
        return pairs

    def _usage_query(self) -> list[tuple[str, str]]:
        pairs = [("project_id", "project")]
        if self._rarely(0.3):
            pairs.append(("user_id", "user"))
        if self._rarely(0.3):
            kinds = ["INSTANCE", "all", "unknown", "instance"]
            pairs.append(("consumer_type", self.choice.choice(kinds)))
        return pairs

    def _trait_query(self) -> list[tuple[str, str]]:
        names = ["in:" + ",".join(TRAITS), "startswith:CUSTOM_", "x", "other:y"]
        pairs = [
            ("name", self.choice.choice(names)),
            ("associated", self.choice.choice(["true", "False", "maybe"])),
        ]
        return self.choice.sample(pairs, self.choice.randint(0, 2))

    def _resources(self) -> str:
        names = self.choice.sample(CLASSES, self.choice.randint(1, 2))
        return ",".join(f"{name}:{self.choice.choice([1, 1, 2, 8])}" for name in names)

    def _required(self) -> str:
        forms = ["{}", "!{}", "{},!{}", "in:{},{}", "{},{}"]
        return self.choice.choice(forms).format(*self.choice.sample(TRAITS, 2))

    def _member_of(self) -> str:
        forms = ["{}", "!{}", "in:{},{}", "!in:{},{}"]
        return self.choice.choice(forms).format(*self.choice.sample(AGGREGATES, 2))

    # Bodies.

    def _class(self) -> str:
        return self.choice.choice(CLASSES)

    def _generation(self) -> Any:
        return self._known.providers.get(self._provider, 0)

    def _consumer_generation(self) -> Any:
        return self._known.consumers.get(self._consumer)

    def _provider_new(self) -> Any:
        body: dict[str, Any] = {
            "name": f"name-{self.choice.randint(0, 19)}",
            "uuid": self.choice.choice([self._provider, self._provider.upper()]),
        }
        if self._version >= 14 and self._rarely(0.4):
            body["parent_provider_uuid"] = self.choice.choice([*PROVIDERS, None])
        return body

    def _provider_changed(self) -> Any:
        return {k: v for k, v in self._provider_new().items() if k != "uuid"}

    def _aggregates(self) -> Any:
        chosen = self.choice.sample(AGGREGATES, self.choice.randint(0, 3))
        if self._version < 19:
            return chosen
        return {"aggregates": chosen, "resource_provider_generation": self._generation()}

    def _traits(self) -> Any:
        chosen = self.choice.sample(TRAITS, self.choice.randint(0, 3))
        return {"traits": chosen, "resource_provider_generation": self._generation()}

    def _spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"total": self.choice.choice([1, 8, 64, 2_147_483_647])}
        if self._rarely(0.3):
            spec["allocation_ratio"] = self.choice.choice([1, 0.5, 16.0, 3.40282e38])
        if self._rarely(0.2):
            spec |= {"reserved": 0, "min_unit": 1, "max_unit": 8, "step_size": 1}
        return spec

    def _inventory_new(self) -> Any:
        return {"resource_class": self._class(), **self._spec()}

    def _inventory_changed(self) -> Any:
        return {"resource_provider_generation": self._generation(), **self._spec()}

    def _inventories(self) -> Any:
        names = self.choice.sample(CLASSES, self.choice.randint(0, 3))
        return {
            "resource_provider_generation": self._generation(),
            "inventories": {name: self._spec() for name in sorted({*names, "VCPU"})},
        }

    def _allocations(self) -> Any:
        version = self._version
        chosen = sorted({self._one_provider() for _ in range(self.choice.choice([1, 1, 2]))})
        amounts = {uuid: {self._class(): self.choice.choice([1, 1, 2, 4])} for uuid in chosen}
        body: dict[str, Any] = {}
        if version < 12:
            body["allocations"] = [
                {"resource_provider": {"uuid": uuid}, "resources": of}
                for uuid, of in amounts.items()
            ]
        else:
            body["allocations"] = {uuid: {"resources": of} for uuid, of in amounts.items()}
            if self._rarely(0.05):
                upper = chosen[0].upper()
                body["allocations"][upper] = {"resources": {self._class(): 1}}
        if version >= 8:
            body |= {"project_id": "project", "user_id": "user"}
        if version >= 28:
            body["consumer_generation"] = self._consumer_generation()
            if self._rarely(0.2):
                body["allocations"] = {}
        if version >= 34 and self._rarely(0.2):
            body["mappings"] = {"": [chosen[0]]}
        if version >= 38:
            body["consumer_type"] = "INSTANCE"
        return body

    def _allocations_many(self) -> Any:
        self._version = max(self._version, 13)
        chosen = self.choice.sample(CONSUMERS, self.choice.randint(1, 3))
        if self._rarely(0.05):
            chosen.append(chosen[0].upper())
        return {consumer: self._allocations_of(consumer) for consumer in chosen}

    def _allocations_of(self, consumer: str) -> Any:
        self._consumer = consumer
        return self._allocations()

    def _reshape(self) -> Any:
        self._version = max(self._version, 30)
        offers = {
            self._provider: {
                "resource_provider_generation": self._generation(),
                "inventories": self._inventories()["inventories"],
            }
        }
        if self._rarely(0.05):
            offers[self._provider.upper()] = offers[self._provider]
        requests = self._allocations_many() if self._rarely(0.6) else {}
        return {"inventories": offers, "allocations": requests}
