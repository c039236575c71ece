"""Lists have the order of Placement's rows, also after deletions and restarts.

`Rows` models OpenStack Placement without its SQL: tables whose rows get the next number, read by
number or by an index. Random requests go to both.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.service.os_vocabulary import STANDARD_CLASSES_LISTED
from tests.faces.placement.support.client import Client, Reply
from tests.support import cluster

CUSTOM = ("CUSTOM_Z", "CUSTOM_M", "CUSTOM_A")
STANDARD = ("VCPU", "MEMORY_MB", "DISK_GB", "SRIOV_NET_VF")
STEPS = 40
SEEDS = (1, 2)

Amounts = dict[str, dict[str, int]]
"""Amounts by provider and resource class."""


@pytest.fixture(params=["sqlite", "postgresql"])
def api(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Client]:
    """Yield a client of the Placement API of an empty service on either database."""
    url = cluster.fresh() if request.param == "postgresql" else None
    client = Client(tmp_path, url=url)
    yield client
    client.close()
    if url is not None:
        cluster.shared().drop(cluster.database_of(url))


class Rows:
    """Placement's tables: a list is a table, the position in it is the number of the row."""

    def __init__(self) -> None:
        self.providers: list[str] = []
        self.classes = list(STANDARD_CLASSES_LISTED)
        self.inventories: dict[str, set[str]] = {}
        self.allocations: list[tuple[str, str, str, int]] = []
        """(consumer, provider, class, amount)."""

    def replace_allocations(self, consumer: str, amounts: Amounts) -> None:
        """Delete the rows of a consumer and insert the new ones in the order of its claim."""
        self.allocations = [row for row in self.allocations if row[0] != consumer]
        self.allocations += [
            (consumer, provider, name, amount)
            for provider, named in amounts.items()
            for name, amount in named.items()
        ]

    def consumers(self) -> list[str]:
        """Return all consumers with allocations."""
        return list(dict.fromkeys(row[0] for row in self.allocations))

    def by_number(self, names: set[str]) -> list[str]:
        """Return classes by number."""
        return [name for name in self.classes if name in names]

    def allocations_of(self, consumer: str) -> Amounts:
        """Return the rows of a consumer by number."""
        held: Amounts = {}
        for holder, provider, name, amount in self.allocations:
            if holder == consumer:
                held.setdefault(provider, {})[name] = amount
        return held

    def allocations_on(self, provider: str) -> Amounts:
        """Return the rows of a provider by the index (provider, class, amount)."""
        rows = [
            (self.classes.index(name), amount, number, consumer, name)
            for number, (consumer, where, name, amount) in enumerate(self.allocations)
            if where == provider
        ]
        held: Amounts = {}
        for _, amount, _, consumer, name in sorted(rows):
            held.setdefault(consumer, {})[name] = amount
        return held

    def used(self, provider: str | None = None) -> dict[str, int]:
        """Return the usage of one provider, or of all, by class."""
        sums = {
            name: sum(
                row[3] for row in self.allocations if row[2] == name and self._is(row, provider)
            )
            for name in self.classes
        }
        offered = self.inventories[provider] if provider else None
        return {
            name: used
            for name, used in sums.items()
            if (used if offered is None else name in offered)
        }

    def _is(self, row: tuple[str, str, str, int], provider: str | None) -> bool:
        return provider is None or row[1] == provider


def as_pairs(given: Any) -> Any:
    """Return JSON with its objects as lists of pairs, because their order matters."""
    if isinstance(given, dict):
        return [(key, as_pairs(value)) for key, value in given.items()]
    return [as_pairs(item) for item in given] if isinstance(given, list) else given


class Script:
    """Random requests, and the rows that Placement would have after them."""

    def __init__(self, api: Client, seed: int) -> None:
        self.api = api
        self.chance = random.Random(seed)
        self.rows = Rows()
        self.steps = [
            *(
                self.add_providers,
                self.add_providers,
                self.remove,
                self.set_inventories,
                self.set_inventories,
            ),
            *(self.claim, self.claim, self.claim, self.claim_several, self.release),
            *(self.create_classes, self.delete_class, self.api.restart),
        ]

    def step(self) -> None:
        """Send a random request, then compare."""
        self.chance.choice(self.steps)()
        self.compare()

    def uuid(self) -> str:
        return f"{self.chance.getrandbits(32):08x}-0000-4000-8000-000000000000"

    def succeeded(self, *replies: Reply) -> bool:
        """Return whether all requests succeeded; some deletions are refused."""
        assert all(reply.status in (200, 201, 204, 409) for reply in replies), replies
        return all(reply.status != 409 for reply in replies)

    def add_providers(self) -> None:
        """Add up to three providers in one batch."""
        made = [self.uuid() for _ in range(self.chance.randint(1, 3))]
        bodies = [{"name": uuid, "uuid": uuid} for uuid in made]
        assert self.succeeded(
            *self.api.ask_all(*(("POST", "/resource_providers", body) for body in bodies))
        )
        self.rows.providers += made
        self.rows.inventories.update({uuid: set() for uuid in made})

    def remove(self) -> None:
        """Delete a provider; one with allocations is refused."""
        for uuid in self.pick(self.rows.providers):
            if self.succeeded(self.api.ask("DELETE", f"/resource_providers/{uuid}")):
                self.rows.providers.remove(uuid)

    def set_inventories(self) -> None:
        """Replace the inventories of a provider; the response is in the order of the request."""
        known = [*STANDARD, *self.rows.classes[len(STANDARD_CLASSES_LISTED) :]]
        for uuid in self.pick(self.rows.providers):
            names = self.chance.sample(known, self.chance.randint(1, 4))
            generation = self.api.ask("GET", f"/resource_providers/{uuid}").json["generation"]
            body = {
                "resource_provider_generation": generation,
                "inventories": {name: {"total": 1_000} for name in names},
            }
            reply = self.api.ask("PUT", f"/resource_providers/{uuid}/inventories", body)
            if self.succeeded(reply):
                assert list(reply.json["inventories"]) == names
                self.rows.inventories[uuid] = set(names)

    def claim(self) -> None:
        """Replace the allocations of a consumer, or claim for a new one."""
        known = self.rows.consumers()
        consumer = self.chance.choice([self.uuid(), *known])
        if amounts := self.amounts():
            body = self.claim_body(consumer, amounts)
            assert self.succeeded(self.api.ask("PUT", f"/allocations/{consumer}", body))
            self.rows.replace_allocations(consumer, amounts)

    def claim_several(self) -> None:
        """Claim for several consumers, in one request and in two concurrent ones."""
        wishes = {self.uuid(): self.amounts() for _ in range(4)}
        if all(wishes.values()):
            bodies = [(one, self.claim_body(one, amounts)) for one, amounts in wishes.items()]
            asked = [("POST", "/allocations", dict(half)) for half in (bodies[:2], bodies[2:])]
            assert self.succeeded(*self.api.ask_all(*asked))
            for consumer, amounts in wishes.items():
                self.rows.replace_allocations(consumer, amounts)

    def release(self) -> None:
        for consumer in self.pick(self.rows.consumers()):
            assert self.succeeded(self.api.ask("DELETE", f"/allocations/{consumer}"))
            self.rows.replace_allocations(consumer, {})

    def create_classes(self) -> None:
        """Create missing custom classes, all at once."""
        missing = [name for name in CUSTOM if name not in self.rows.classes]
        self.chance.shuffle(missing)
        made = missing[: self.chance.randint(0, 3)]
        self.succeeded(*self.api.ask_all(*(("PUT", f"/resource_classes/{n}", None) for n in made)))
        self.rows.classes += made

    def delete_class(self) -> None:
        for name in self.pick(self.rows.classes[len(STANDARD_CLASSES_LISTED) :]):
            if self.succeeded(self.api.ask("DELETE", f"/resource_classes/{name}")):
                self.rows.classes.remove(name)

    def pick(self, names: list[str]) -> list[str]:
        return self.chance.sample(names, min(1, len(names)))

    def amounts(self) -> Amounts:
        """Return random amounts for a claim, in random order; {} if there are no inventories."""
        offering = [uuid for uuid in self.rows.providers if self.rows.inventories[uuid]]
        chosen = self.chance.sample(offering, min(len(offering), self.chance.randint(1, 2)))
        found: Amounts = {}
        for uuid in chosen:
            names = sorted(self.rows.inventories[uuid])
            drawn = self.chance.sample(names, self.chance.randint(1, len(names)))
            found[uuid] = {name: self.chance.randint(1, 2) for name in drawn}
        return found

    def claim_body(self, consumer: str, amounts: Amounts) -> dict[str, Any]:
        seen = self.api.ask("GET", f"/allocations/{consumer}").json.get("consumer_generation")
        return {
            "allocations": {uuid: {"resources": named} for uuid, named in amounts.items()},
            "project_id": "project",
            "user_id": "user",
            "consumer_generation": seen,
            "consumer_type": "INSTANCE",
        }

    def get(self, path: str, key: str) -> Any:
        return self.api.ask("GET", path).json[key]

    def compare(self) -> None:
        """Check that all lists are in the order of the rows."""
        rows = self.rows
        found = self.get("/resource_providers", "resource_providers")
        assert [each["uuid"] for each in found] == rows.providers
        found = self.get("/resource_classes", "resource_classes")
        assert [each["name"] for each in found] == rows.classes
        sums = list(rows.used().items())
        grouped = [*sums[:1], ("consumer_count", len(rows.consumers())), *sums[1:]]
        expected = [("INSTANCE", grouped)] if sums else []
        assert as_pairs(self.get("/usages?project_id=project", "usages")) == expected
        for uuid in rows.providers:
            path = f"/resource_providers/{uuid}"
            names = rows.by_number(rows.inventories[uuid])
            assert list(self.get(f"{path}/inventories", "inventories")) == names
            assert as_pairs(self.get(f"{path}/usages", "usages")) == as_pairs(rows.used(uuid))
            held = self.get(f"{path}/allocations", "allocations")
            assert as_pairs({who: held[who]["resources"] for who in held}) == as_pairs(
                rows.allocations_on(uuid)
            )
        for consumer in rows.consumers():
            held = self.get(f"/allocations/{consumer}", "allocations")
            assert as_pairs({where: held[where]["resources"] for where in held}) == as_pairs(
                rows.allocations_of(consumer)
            )
        summaries = self.get("/allocation_candidates?resources=VCPU:1", "provider_summaries")
        fitting = [uuid for uuid in rows.providers if "VCPU" in rows.inventories[uuid]]
        assert list(summaries) == fitting
        for uuid, summary in summaries.items():
            assert list(summary["resources"]) == rows.by_number(rows.inventories[uuid])


@pytest.mark.parametrize("seed", SEEDS)
def test_lists_are_in_the_order_of_rows(api: Client, seed: int) -> None:
    """The order is compared after each of many random requests, with deletions and restarts."""
    script = Script(api, seed)
    for _ in range(STEPS):
        script.step()
    api.restart()
    script.compare()


def test_the_rows_notice_another_order(api: Client) -> None:
    """Control: two swapped providers fail the comparison."""
    script = Script(api, 1)
    script.add_providers()
    while len(script.rows.providers) < 2:
        script.add_providers()
    script.compare()
    script.rows.providers.reverse()
    with pytest.raises(AssertionError):
        script.compare()


def uuid_of(n: int) -> str:
    """Return the n-th provider's UUID."""
    return f"{n:08d}-0000-4000-8000-000000000000"


def candidate_texts(api: Client, query: str, version: int = 39) -> list[str]:
    """Return the candidates as JSON text, with providers abbreviated to their numbers."""
    found = api.ask("GET", f"/allocation_candidates?{query}", version=version)
    written = [json.dumps(each) for each in found.json["allocation_requests"]]
    return sorted(text.replace("-0000-4000-8000-000000000000", "") for text in written)


def test_candidates_are_written_in_the_order_of_the_query(api: Client) -> None:
    """Groups are in the order of the query; so are classes, or by number if a provider has a child.

    The expected texts are those of OpenStack Placement.
    """
    assert api.ask("PUT", "/resource_classes/CUSTOM_Z").status == 201
    api.provider(uuid_of(2), VCPU=8, CUSTOM_Z=8)
    api.provider(uuid_of(3), VCPU=8, CUSTOM_Z=8, DISK_GB=8)
    api.provider(uuid_of(1), parent=uuid_of(2), DISK_GB=8, VCPU=8)
    assert candidate_texts(api, "resources=CUSTOM_Z:1,VCPU:1", version=11) == [
        '{"allocations": [{"resource_provider": {"uuid": "00000002"}, '
        '"resources": {"VCPU": 1, "CUSTOM_Z": 1}}]}',
        '{"allocations": [{"resource_provider": {"uuid": "00000003"}, '
        '"resources": {"VCPU": 1, "CUSTOM_Z": 1}}]}',
    ]
    query = "resources1=DISK_GB:2&resources=CUSTOM_Z:1,VCPU:1&group_policy=none"
    first, second, third = candidate_texts(api, query, version=33)
    assert first == (
        '{"allocations": {"00000001": {"resources": {"DISK_GB": 2, "VCPU": 1}}, '
        '"00000002": {"resources": {"CUSTOM_Z": 1}}}}'
    )
    assert second == (
        '{"allocations": {"00000001": {"resources": {"DISK_GB": 2}}, '
        '"00000002": {"resources": {"VCPU": 1, "CUSTOM_Z": 1}}}}'
    )
    assert third == (
        '{"allocations": {"00000003": {"resources": {"DISK_GB": 2, "VCPU": 1, "CUSTOM_Z": 1}}}}'
    )
    assert candidate_texts(api, query)[1].endswith(
        '"mappings": {"1": ["00000001"], "": ["00000002"]}}'
    )
    summaries = api.ask("GET", f"/allocation_candidates?{query}").json["provider_summaries"]
    assert list(summaries) == [uuid_of(2), uuid_of(1), uuid_of(3)]
    assert api.ask("DELETE", f"/resource_providers/{uuid_of(1)}").status == 204
    assert candidate_texts(api, "resources=CUSTOM_Z:1,VCPU:1", version=33) == [
        '{"allocations": {"00000002": {"resources": {"CUSTOM_Z": 1, "VCPU": 1}}}}',
        '{"allocations": {"00000003": {"resources": {"CUSTOM_Z": 1, "VCPU": 1}}}}',
    ]


def test_amounts_of_a_class_in_two_groups(api: Client) -> None:
    """Each group's amount is at the place of its group, even if both want the same class."""
    api.provider(uuid_of(2), VCPU=8)
    api.provider(uuid_of(1), parent=uuid_of(2), DISK_GB=8, VCPU=8)
    query = "resources=DISK_GB:1,VCPU:1&resources1=VCPU:1&group_policy=none"
    assert candidate_texts(api, query, version=33) == [
        '{"allocations": {"00000001": {"resources": {"VCPU": 1, "DISK_GB": 1}}, '
        '"00000002": {"resources": {"VCPU": 1}}}}',
        '{"allocations": {"00000001": {"resources": {"VCPU": 2, "DISK_GB": 1}}}}',
        '{"allocations": {"00000002": {"resources": {"VCPU": 1}}, '
        '"00000001": {"resources": {"DISK_GB": 1, "VCPU": 1}}}}',
        '{"allocations": {"00000002": {"resources": {"VCPU": 2}}, '
        '"00000001": {"resources": {"DISK_GB": 1}}}}',
    ]


def test_traits_are_listed_by_creation_and_echoed_by_name(api: Client) -> None:
    """Custom traits follow the standard ones, in the order of their creation."""
    made = ["CUSTOM_Z", "CUSTOM_M", "CUSTOM_A"]
    api.ask_all(*(("PUT", f"/traits/{name}", None) for name in made))
    uuid = uuid_of(1)
    api.provider(uuid, VCPU=1)
    traits = ["CUSTOM_A", "HW_CPU_X86_AVX", "CUSTOM_Z", "COMPUTE_NODE", "CUSTOM_M"]
    path = f"/resource_providers/{uuid}/traits"
    body = {"traits": traits, "resource_provider_generation": 1}
    assert api.ask("PUT", path, body).json["traits"] == sorted(traits)
    ordered = ["COMPUTE_NODE", "HW_CPU_X86_AVX", *made]
    for _ in range(2):
        assert api.ask("GET", path).json["traits"] == ordered
        assert api.ask("GET", "/traits?associated=true").json["traits"] == ordered
        assert api.ask("GET", "/traits?name=startswith:CUSTOM_").json["traits"] == made
        named = api.ask("GET", f"/traits?name=in:{','.join(traits)}").json["traits"]
        assert named == sorted(traits)
        found = api.ask("GET", "/allocation_candidates?resources=VCPU:1").json
        assert found["provider_summaries"][uuid]["traits"] == ordered
        api.restart()
