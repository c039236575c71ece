"""The questions for a comparison of two Placement APIs: a sample of what the ledger holds.

The same seed and the same ledger give the same questions.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote

from moorage.integrations.placement.capacity_there import capacity_there
from moorage.integrations.placement.judging import Question, single
from moorage.integrations.placement.rows import Rows, decoded
from moorage.wire.imports import ConsumerRow, InventoryRow, ProviderRow

SHARES = "MISC_SHARES_VIA_AGGREGATE"

PROVIDERS_MAX = 300
"""A query for candidates is narrowed until at most this many providers may serve it: the original
computes all candidates, for minutes if there are many."""

PAIRS_MAX = 2_000
"""Candidates of two groups in one tree, for the same reason."""

ANY_TRAIT_SINCE = 39
"""The microversion since which one of several traits can be required."""

_PARTS = ("", "/inventories", "/usages", "/traits", "/aggregates", "/allocations")

T = TypeVar("T")


@dataclass(frozen=True)
class Sizes:
    """How much is asked."""

    providers: int = 2_000
    consumers: int = 2_000
    candidates: int = 200
    seed: int = 1


class Sample:
    """The rows of a ledger, and questions about them."""

    def __init__(self, rows: Rows, others: Collection[str], sizes: Sizes, minor: int) -> None:
        """Prepare questions.

        Args:
            rows: all of our ledger.
            others: the UUIDs of the original's providers.
            sizes: how much to ask.
            minor: the microversion, 1.`minor`.
        """
        self._minor = minor
        self._sizes = sizes
        self._rows = rows
        self.providers: dict[str, ProviderRow] = {
            uuid: decoded("providers", row) for uuid, row in rows.providers.items()
        }
        self._uuids = sorted(self.providers.keys() | set(others))
        self._used: dict[tuple[str, str], int] = defaultdict(int)
        self._projects: set[tuple[str, str]] = set()
        for encoded in rows.consumers.values():
            consumer: ConsumerRow = decoded("consumers", encoded)
            self._projects.add((consumer.project, consumer.user))
            for uuid, amounts in consumer.allocations.items():
                for name, amount in amounts.items():
                    self._used[uuid, name] += amount

    @property
    def sharing(self) -> frozenset[str]:
        """Providers that share what they have."""
        return frozenset(uuid for uuid, row in self.providers.items() if SHARES in row.traits)

    @property
    def rounded(self) -> frozenset[str]:
        """Providers with a ratio that some databases round."""
        return frozenset(
            uuid
            for uuid, row in self.providers.items()
            for one in row.inventories.values()
            if single(one.allocation_ratio) != one.allocation_ratio
        )

    def parts(self) -> list[tuple[str, list[Question]]]:
        """Return all questions, by what they are about."""
        return [
            ("names", list(self._names())),
            ("providers", list(self._about_providers())),
            ("consumers", list(self._about_consumers())),
            ("usages", list(self._usages())),
            ("candidates", list(Queries(self.providers, self._used, self._sizes, self._minor))),
        ]

    def _random(self, what: str) -> random.Random:
        return random.Random(f"{self._sizes.seed} {what}")

    def _names(self) -> Iterator[Question]:
        yield Question("providers", "/resource_providers")
        yield Question("resource classes", "/resource_classes")
        yield Question("traits", "/traits")
        yield Question("traits", "/traits?associated=true")
        for name in self._some("classes", sorted(self._rows.classes)):
            yield Question("resource class", f"/resource_classes/{name}")
        for name in self._some("traits", sorted(self._rows.traits)):
            yield Question("trait", f"/traits/{name}")

    def _some(self, what: str, among: Sequence[T]) -> Sequence[T]:
        count = self._sizes.consumers if what == "consumers" else self._sizes.providers
        return among if len(among) <= count else self._random(what).sample(among, count)

    def _about_providers(self) -> Iterator[Question]:
        luck = self._random("inventory")
        for uuid in self._some("providers", self._uuids):
            for part in _PARTS:
                kind = f"provider {part.removeprefix('/')}".strip()
                yield Question(kind, f"/resource_providers/{uuid}{part}")
            yield Question("tree", f"/resource_providers?in_tree={uuid}")
            row = self.providers.get(uuid)
            if row is not None and row.inventories:
                name = luck.choice(sorted(row.inventories))
                yield Question("inventory", f"/resource_providers/{uuid}/inventories/{name}")

    def _about_consumers(self) -> Iterator[Question]:
        for uuid in self._some("consumers", sorted(self._rows.consumers)):
            yield Question("consumer", f"/allocations/{uuid}")

    def _usages(self) -> Iterator[Question]:
        for project in sorted({project for project, _ in self._projects}):
            yield Question("project usages", f"/usages?project_id={quote(project, safe='')}")
        for project, user in self._some("users", sorted(self._projects)):
            path = f"/usages?project_id={quote(project, safe='')}&user_id={quote(user, safe='')}"
            yield Question("user usages", path)


class Queries:
    """Queries for candidates, each made from a provider that has what is asked for."""

    def __init__(
        self,
        providers: dict[str, ProviderRow],
        used: dict[tuple[str, str], int],
        sizes: Sizes,
        minor: int,
    ) -> None:
        self._minor = minor
        self._providers = providers
        self._used = used
        self._count = sizes.candidates
        self._luck = random.Random(f"{sizes.seed} candidates")
        self._with: dict[str, set[str]] = defaultdict(set)
        self._trees: dict[str, list[str]] = defaultdict(list)
        for uuid, row in providers.items():
            for name in (*row.inventories, *row.traits, *row.aggregates):
                self._with[name].add(uuid)
            self._trees[self._root(uuid)].append(uuid)
        self._traits = {name for row in providers.values() for name in row.traits}
        self._full = sorted(uuid for uuid, row in providers.items() if row.inventories)

    def _root(self, uuid: str) -> str:
        while (parent := self._providers[uuid].parent) in self._providers:
            uuid = str(parent)
        return uuid

    def __iter__(self) -> Iterator[Question]:
        shapes: list[Callable[[ProviderRow], Question]] = [
            self._plain,
            self._with_traits,
            self._with_aggregates,
            self._in_tree,
            self._two_groups,
            self._subtree,
        ]
        for number in range(self._count if self._full else 0):
            row = self._providers[self._luck.choice(self._full)]
            yield shapes[number % len(shapes)](row)

    def _amount(self, row: ProviderRow, name: str) -> int:
        """Return an amount that may be asked for: the least, any, or the last that is free."""
        one: InventoryRow = row.inventories[name]
        step = max(1, one.step_size)
        least = -(-one.min_unit // step) * step
        free = capacity_there(one) - self._used[row.uuid, name]
        most = max(least, min(one.max_unit, free) // step * step)
        between = self._luck.randrange(least, most + 1, step)
        beyond = min(one.max_unit // step * step, most + step)
        return max(1, self._luck.choice([least, between, most, max(least, beyond)]))

    def _resources(self, row: ProviderRow, most: int = 3) -> dict[str, int]:
        names = sorted(row.inventories)
        chosen = self._luck.sample(names, self._luck.randint(1, min(most, len(names))))
        return {name: self._amount(row, name) for name in sorted(chosen)}

    def _question(
        self, row: ProviderRow, amounts: dict[str, int], terms: list[str], among: set[str]
    ) -> Question:
        """Return a query of one group; if too many providers may serve it, of one tree."""
        for name in amounts:
            among = among & self._with[name]
        if len(among) > PROVIDERS_MAX:
            terms = [*terms, f"in_tree={row.uuid}"]
        return _question([f"resources={_terms(amounts)}", *terms], amounts, 1)

    def _plain(self, row: ProviderRow) -> Question:
        return self._question(row, self._resources(row), [], set(self._providers))

    def _with_traits(self, row: ProviderRow) -> Question:
        amounts = self._resources(row)
        among = set(self._providers)
        strange = sorted(self._traits - set(row.traits))
        if row.traits and self._minor >= ANY_TRAIT_SINCE and self._luck.random() < 0.5:
            names = sorted({self._luck.choice(row.traits), self._luck.choice(sorted(self._traits))})
            among &= set().union(*(self._with[name] for name in names))
            return self._question(row, amounts, [f"required=in:{','.join(names)}"], among)
        terms = []
        if row.traits:
            terms.append(self._luck.choice(row.traits))
            among &= self._with[terms[0]]
        if strange:
            terms.append(f"!{self._luck.choice(strange)}")
        return self._question(row, amounts, [f"required={','.join(terms)}"] if terms else [], among)

    def _with_aggregates(self, row: ProviderRow) -> Question:
        terms = []
        among = set(self._providers)
        if row.aggregates:
            uuid = self._luck.choice(row.aggregates)
            among = self._with[uuid]
            terms.append(f"member_of={uuid}")
        return self._question(row, self._resources(row), terms, among)

    def _in_tree(self, row: ProviderRow) -> Question:
        root = self._providers[self._root(row.uuid)]
        terms = [f"in_tree={row.uuid}"]
        if root.traits:
            terms.append(f"root_required={self._luck.choice(root.traits)}")
        amounts = self._resources(row)
        return _question([f"resources={_terms(amounts)}", *terms], amounts, 1)

    def _two_groups(self, row: ProviderRow) -> Question:
        """Return a query for two providers of one tree, or for the same one twice."""
        tree = [self._providers[uuid] for uuid in self._trees[self._root(row.uuid)]]
        others = [one for one in tree if one.inventories] if len(tree) ** 2 <= PAIRS_MAX else [row]
        other = self._luck.choice(others)
        one, two = self._resources(row, 1), self._resources(other, 1)
        policy = self._luck.choice(["none", "isolate"])
        terms = [
            *(f"resources1={_terms(one)}", f"resources2={_terms(two)}"),
            *(f"in_tree1={row.uuid}", f"in_tree2={row.uuid}", f"group_policy={policy}"),
        ]
        if row.traits:
            terms.append(f"required1={self._luck.choice(row.traits)}")
        return _question(terms, _sum(one, two), 2)

    def _subtree(self, row: ProviderRow) -> Question:
        tree = [self._providers[uuid] for uuid in self._trees[self._root(row.uuid)]]
        if len(tree) ** 2 > PAIRS_MAX:
            return self._in_tree(row)
        other = self._luck.choice([one for one in tree if one.inventories])
        one, two = self._resources(row, 1), self._resources(other, 1)
        terms = [
            *(f"resources_A={_terms(one)}", f"resources_B={_terms(two)}", "same_subtree=_A,_B"),
            *(f"in_tree_A={row.uuid}", f"in_tree_B={row.uuid}", "group_policy=none"),
        ]
        return _question(terms, _sum(one, two), 2)


def _terms(amounts: dict[str, int]) -> str:
    return ",".join(f"{name}:{amount}" for name, amount in amounts.items())


def _sum(one: dict[str, int], two: dict[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + two.get(name, 0) for name in one.keys() | two.keys()}


def _question(terms: list[str], amounts: dict[str, int], groups: int) -> Question:
    query = "&".join(quote(term, safe="=:,!") for term in terms)
    asked = tuple(sorted(amounts.items()))
    return Question("candidates", f"/allocation_candidates?{query}", asked, groups)
