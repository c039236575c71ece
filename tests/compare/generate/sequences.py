"""Seeded sequences of requests for both sides: first a small fleet, then random requests.

There are few names, so that requests affect the same trees, sharing providers and capacity. About a
sixth of the requests has a deliberate fault.
"""

from collections.abc import Iterator
from random import Random
from typing import Any

from moorage.faces.placement.routes import routes
from tests.compare.generate.requests import (
    ADMIN,
    NOTHING,
    VERSION,
    Ask,
    Generation,
    Generations,
    plain,
)
from tests.e2e.support.fuzzer import (
    ACCEPTS,
    AGGREGATES,
    BAD_VERSIONS,
    CLASSES,
    CONSUMERS,
    CONTENT_TYPES,
    NEWEST,
    PROVIDERS,
    TRAITS,
    Body,
    Fuzzer,
    escaped,
)
from tests.e2e.support.hostile import mutated
from tests.e2e.support.known import Known

HOSTS = PROVIDERS[:4]
"""Roots of the fleet that a sequence begins with; the other providers become their children."""

SHARER = PROVIDERS[9]
NAMES = [*CLASSES, "CUSTOM_NOSUCH"]
CUSTOM = ["CUSTOM_A", "CUSTOM_B", "CUSTOM_C", "CUSTOM_D", "CUSTOM_E"]
TRAIT_NAMES = [*TRAITS, "CUSTOM_NOSUCH", "CUSTOM_U", "CUSTOM_U", "CUSTOM_U"]
WRONG: list[Any] = [
    *(None, True, False, 0, -1, 1, 2, 1.0, 1.5, 4.0, 2_147_483_647, 2_147_483_648, 1e30),
    *("", " ", "x", "VCPU", "CUSTOM_NOSUCH", "custom_a", "CUSTOM_", "é", "x" * 201, "x" * 256),
    *("99999999-9999-4999-8999-999999999999", "not-a-uuid", PROVIDERS[0], CONSUMERS[0]),
    *([], {}, [None], {"a": 1}, [1, 1]),
]
STRANGERS = [
    "",
    " ",
    "-",
    "é",
    "a b",
    "\n",
    "mappings",
    "vcpu",
    "VCPU ",
    "x" * 65,
    PROVIDERS[0][:-1],
]
"""Names that match no pattern of a schema, or several."""

WRONG_PIECES = ["x", "VCPU", "CUSTOM_NOSUCH", "not-a-uuid", "99999999-9999-4999-8999-999999999999"]
WRONG_PAIRS = ["x=1", "limit=0", "limit=x", "name=", "uuid=x", "resources=", "member_of=", "a", "="]


def first_microversions() -> dict[str, int]:
    """Return the first microversion of each call, by the route names of the fuzzers."""
    words = {
        "{uuid}": "{provider}",
        "{resource_class}": "{class}",
        "resource_classes/{name}": "resource_classes/{class}",
        "traits/{name}": "traits/{trait}",
    }
    found: dict[str, int] = {}
    for route in routes():
        path = route.path
        for theirs, word in words.items():
            path = path.replace(theirs, word)
        found.setdefault(f"{route.method} {path}", route.since)
    return found


SINCE = first_microversions()


def tame(choice: Random) -> Any:
    """Return a value that is valid JSON, but probably wrong in its place."""
    return choice.choice(WRONG)


class Sequence(Fuzzer):
    """Makes requests as data; `known` is the state before each request."""

    WRONG = 0.1

    def __init__(self, seed: object) -> None:
        super().__init__(seed, Known())
        self.known = Generations()
        self._deck: list[tuple[str, str, Body]] = []

    def fleet(self) -> Iterator[Ask]:
        """Yield requests that create hosts, children and a sharing provider with their data."""
        self._version = NEWEST
        for name in ("CUSTOM_A", "CUSTOM_B"):
            yield plain("PUT", f"/resource_classes/{name}", template="/resource_classes/{class}")
        for name in ("CUSTOM_S", "CUSTOM_T"):
            yield plain("PUT", f"/traits/{name}", template="/traits/{trait}")
        for n, uuid in enumerate(PROVIDERS):
            if uuid not in (*HOSTS, SHARER) and self._rarely(0.3):
                continue
            self._provider = uuid
            body = {"name": f"name-{n}", "uuid": uuid}
            if uuid not in (*HOSTS, SHARER):
                body["parent_provider_uuid"] = self.choice.choice(PROVIDERS[: max(1, n - 2)])
            yield plain("POST", "/resource_providers", body=body)
            yield from self._equipped(uuid)

    def _equipped(self, uuid: str) -> Iterator[Ask]:
        one = "/resource_providers/{provider}"
        for part, make in (
            ("/inventories", self._inventories),
            ("/traits", self._traits),
            ("/aggregates", self._aggregates),
        ):
            if self._rarely(0.75):
                body = make()
                if uuid == SHARER and part == "/traits":
                    body["traits"] = ["MISC_SHARES_VIA_AGGREGATE"]
                path = f"/resource_providers/{uuid}{part}"
                yield plain("PUT", path, body=body, template=one + part)

    def ask(self, known: Generations) -> Ask:
        """Return the next request."""
        self.known = known
        choice = self.choice
        method, template, body = self._dealt()
        since = 0 if self._rarely(0.05) else SINCE[f"{method} {template}"]
        self._version = NEWEST if choice.random() < 0.4 else choice.randint(since, NEWEST)
        self._provider = self._one_provider()
        self._consumer = self._one_consumer()
        wrong = self._rarely(0.17)
        content = NOTHING if body is None else body()
        while wrong and content is not NOTHING and self._rarely(0.7):
            content = mutated(choice, content, tame)
        if content is not NOTHING and self._rarely(0.06):
            content = self._with_stranger(content)
        path, query = self._path(method, template, wrong), self._pieces(template, wrong)
        headers = self._said(content is not NOTHING, wrong)
        if wrong and self._rarely(0.03):
            method = choice.choice(["PATCH", "OPTIONS", "HEAD", "PUT", "POST", "DELETE", "GET"])
        return Ask(method, template, path, query, headers, content)

    def _with_stranger(self, value: Any) -> Any:
        """Return a body with a member of any name and value in one of its objects."""
        if isinstance(value, dict):
            inner = [key for key, part in value.items() if isinstance(part, dict)]
            if inner and self._rarely(0.75):
                key = self.choice.choice(inner)
                return {**value, key: self._with_stranger(value[key])}
            return {**value, self.choice.choice(STRANGERS): self.choice.choice(WRONG)}
        return value

    def _dealt(self) -> tuple[str, str, Body]:
        """Return the next route from a shuffled deck, so that each route is used.

        Deletions are half as frequent, so that the fleet grows.
        """
        if not self._deck:
            self._deck = [one for one in self.routes for _ in range(1 + (one[0] != "DELETE"))]
            self.choice.shuffle(self._deck)
        return self._deck.pop()

    def _one_provider(self) -> str:
        there = sorted(set(self.known.providers) & set(PROVIDERS))
        return self.choice.choice(PROVIDERS if self._rarely(0.1) or not there else there)

    def _one_consumer(self) -> str:
        return self.choice.choice(CONSUMERS)

    def _generation(self) -> Any:
        return Generation(self._provider, off_by=self._off())

    def _consumer_generation(self) -> Any:
        return Generation(self._consumer, consumer=True, off_by=self._off())

    def _allocations(self) -> Any:
        body = super()._allocations()
        if not self._rarely(0.1):
            self._take_what_is_offered(body["allocations"])
        if "consumer_type" in body:
            body["consumer_type"] = self.choice.choice(["INSTANCE", "INSTANCE", "MIGRATION", "A_1"])
        if "project_id" in body and self._rarely(0.2):
            body |= {"project_id": "other", "user_id": self.choice.choice(["user", "else"])}
        return body

    def _take_what_is_offered(self, allocations: Any) -> None:
        pairs = (
            allocations.items()
            if isinstance(allocations, dict)
            else ((one["resource_provider"]["uuid"], one) for one in allocations)
        )
        for uuid, one in pairs:
            if offered := self.known.offers.get(uuid):
                names = self.choice.sample(offered, self.choice.randint(1, min(2, len(offered))))
                one["resources"] = {name: self.choice.choice([1, 1, 2, 4]) for name in names}

    def _usage_query(self) -> list[tuple[str, str]]:
        pairs = [("project_id", self.choice.choice(["project", "other"]))]
        if self._rarely(0.3):
            pairs.append(("user_id", self.choice.choice(["user", "else"])))
        if self._knows(38) and self._rarely(0.5):
            kinds = ["INSTANCE", "A_1", "all", "unknown", "instance"]
            pairs.append(("consumer_type", self.choice.choice(kinds)))
        return pairs

    def _off(self) -> int:
        return self.choice.choice([-1, 1, 5]) if self._rarely(0.03) else 0

    def _said(self, with_body: bool, wrong: bool) -> tuple[tuple[str, str], ...]:
        version = "latest" if self._version == NEWEST and self._rarely() else f"1.{self._version}"
        found = [(VERSION, f"placement {version}"), *ADMIN]
        if with_body:
            found.append(("Content-Type", "application/json"))
        if self._version == 0 and self._rarely(0.5):
            del found[0]
        if wrong and self._rarely(0.2):
            way = self.choice.randrange(5)
            if way == 0:
                found[0] = (VERSION, self.choice.choice(BAD_VERSIONS))
            elif way == 1:
                found = found[:-1] if with_body else found[:-2]
            elif way == 2:
                found.append(("Accept", self.choice.choice(ACCEPTS)))
            elif way == 3 and with_body:
                found[-1] = ("Content-Type", self.choice.choice(CONTENT_TYPES))
            elif way == 4:
                found = [pair for pair in found if pair[0] != "X-Roles"] + [("X-Roles", "reader")]
        return tuple(found)

    def _path(self, method: str, template: str, wrong: bool) -> str:
        names = {
            "provider": self._provider,
            "consumer": self._consumer,
            "class": self._class_named(template),
            "trait": self.choice.choice(TRAIT_NAMES if self._rarely(0.5) else TRAITS),
        }
        free = self.known.free.get(template)
        if method == "DELETE" and free and self._rarely(0.7):
            keys = [key for key in names if f"{{{key}}}" in template]
            names |= zip(keys, self.choice.choice(free), strict=True)
        path = template.format_map(names)
        if wrong and self._rarely(0.1):
            parts = path.split("/")
            at = self.choice.randrange(1, len(parts))
            parts[at : at + self.choice.randint(0, 1)] = [self.choice.choice(WRONG_PIECES)]
            path = "/".join(parts)
        return path

    def _pieces(self, template: str, wrong: bool) -> tuple[str, ...]:
        pairs = self._pairs(template)
        while wrong and pairs and self._rarely(0.4):
            at = self.choice.randrange(len(pairs))
            pairs[at] = self._wrong_pair(*pairs[at])
        if wrong and pairs and self._rarely(0.1):
            pairs.append(self.choice.choice(pairs))
        pieces = [f"{escaped(key)}={escaped(value)}" for key, value in pairs]
        if wrong and self._rarely(0.05):
            pieces.append(self.choice.choice(WRONG_PAIRS))
        return tuple(piece for piece in pieces if piece)

    def _wrong_pair(self, key: str, value: str) -> tuple[str, str]:
        letter = self.choice.choice("aZ0_-:,!=+ %\n")
        at = self.choice.randrange(len(value) + 1)
        return self.choice.choice(
            [
                (key, self.choice.choice(WRONG_PIECES)),
                (key, value[:at] + letter + value[at:]),
                (key, value[:at]),
                (key + letter, value),
                (key, "!" + value),
                (key, "in:" + value),
                (key, value + ":" + "9" * 30),
                (key, f"{value},{value}"),
            ]
        )

    # Mostly parameters that the microversion supports: refusals of whole queries show little.

    def _knows(self, since: int) -> bool:
        return self._version >= since or self._rarely(0.02)

    def _provider_query(self) -> list[tuple[str, str]]:
        since = {"member_of": 3, "resources": 4, "in_tree": 14, "required": 18}
        return [pair for pair in super()._provider_query() if self._knows(since.get(pair[0], 0))]

    def _candidate_query(self) -> list[tuple[str, str]]:
        suffixes = [""]
        if self._knows(33):
            suffixes += ["1", "2", "_A", "_B"]
        elif self._knows(25):
            suffixes += ["1", "2", "3"]
        chosen = self.choice.sample(suffixes, min(len(suffixes), self.choice.choice([1, 1, 2, 3])))
        bare = [suffix for suffix in chosen if suffix and self._knows(36) and self._rarely(0.15)]
        pairs = []
        for suffix in chosen:
            if suffix not in bare:
                pairs.append(("resources" + suffix, self._resources()))
            for name, since, share, value in (
                ("required", 17, 0.3, self._required),
                ("member_of", 21, 0.2, self._member_of),
                ("in_tree", 31, 0.1, self._one_provider),
            ):
                if self._knows(since) and self._rarely(share):
                    pairs.append((name + suffix, value()))
        named = [suffix for suffix in chosen if suffix]
        if len(named) > 1 or (self._knows(25) and self._rarely(0.05)):
            pairs.append(("group_policy", self.choice.choice(["none", "isolate"])))
        if self._knows(36) and named and (bare or self._rarely(0.3)):
            pairs.append(("same_subtree", ",".join(named)))
        if self._knows(35) and self._rarely(0.15):
            pairs.append(
                ("root_required", self.choice.choice(["", "!"]) + self.choice.choice(TRAITS))
            )
        if self._knows(16) and self._rarely(0.3):
            pairs.append(("limit", str(self.choice.choice([1, 2, 3, 10, 1_000]))))
        return pairs

    def _required(self) -> str:
        forms = ["{}", "{},{}"]
        if self._knows(22):
            forms += ["!{}", "!{}", "{},!{}"]
        if self._knows(39):
            forms.append("in:{},{}")
        return self.choice.choice(forms).format(*self.choice.sample(TRAITS, 2))

    def _member_of(self) -> str:
        forms = ["{}", "in:{},{}"]
        if self._knows(32):
            forms += ["!{}", "!in:{},{}"]
        return self.choice.choice(forms).format(*self.choice.sample(AGGREGATES, 2))

    def _class(self) -> str:
        return self.choice.choice(NAMES if self._rarely(0.05) else CLASSES)

    def _class_named(self, template: str) -> str:
        offered = self.known.offers.get(self._provider)
        if template.startswith("/resource_classes") and not self._rarely(0.2):
            return self.choice.choice(CUSTOM)
        return self.choice.choice(offered) if offered and self._rarely(0.7) else self._class()

    def _all_routes(self) -> list[tuple[str, str, Body]]:
        def named() -> Any:
            return {"name": self.choice.choice(CUSTOM)}

        classes = "/resource_classes", "/resource_classes/{class}"
        return [
            (method, path, named if body is not None and path in classes else body)
            for method, path, body in super()._all_routes()
        ]

    def _inventories(self) -> Any:
        body = super()._inventories()
        if not self._rarely(0.1):
            for name in self.known.offers.get(self._provider, ()):
                if self._rarely(0.8):
                    body["inventories"].setdefault(name, self._spec())
        return body
