"""A concise notation for catalogs and request groups in examples; names are UUIDs."""

from typing import Any

from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.model import SHARING_TRAIT, Inventory, Provider, Tags
from moorage.core.ledger.requests import (
    AggregateFilter,
    CandidateAnswer,
    CandidateQuery,
    Group,
    TraitFilter,
)
from moorage.core.ledger.search import Catalog
from moorage.core.ledger.search.catalog.chunk import CHUNK_ROWS
from tests.core.ledger.search.whole import candidates

SHARING = SHARING_TRAIT


class Builder:
    """Builds a catalog; the UUID of a provider is its name."""

    def __init__(self, chunk_rows: int = CHUNK_ROWS) -> None:
        self.catalog = Catalog(frozenset(), frozenset(), chunk_rows)
        self._roots: dict[str, ProviderId] = {}

    def add(
        self,
        name: str,
        parent: str | None = None,
        traits: str = "",
        aggregates: str = "",
        **offers: int | Inventory,
    ) -> None:
        """Add a provider; traits and aggregates are words, `offers` are totals or inventories."""
        uuid = ProviderId(name)
        above = None if parent is None else ProviderId(parent)
        root = self._roots[name] = uuid if parent is None else self._roots[parent]
        now = Instant(0)
        changes = Changes(providers={uuid: Provider(uuid, name, 0, above, root, now, now)})
        changes.tags[uuid] = Tags(
            frozenset(traits.split()), frozenset(map(AggregateId, aggregates.split()))
        )
        for resource_class, offer in offers.items():
            held = Inventory(offer) if isinstance(offer, int) else offer
            changes.inventories[uuid, resource_class] = held
        self.catalog.apply(changes)

    def search(self, *groups: Group, **wide: Any) -> CandidateAnswer:
        """Search for candidates."""
        return candidates(self.catalog, replace(CandidateQuery(groups), **wide))

    def candidate_lines(self, *groups: Group, **wide: Any) -> set[str]:
        """Search for candidates; return each as a line such as `VCPU@host=2 _A:nic`."""
        return {
            " ".join(
                sorted(
                    f"{resource_class}@{provider}={amount}"
                    for provider, given in candidate.allocations.items()
                    for resource_class, amount in given.items()
                )
                + sorted(
                    f"{suffix}:{'+'.join(sorted(by))}"
                    for suffix, by in candidate.mappings.items()
                    if suffix
                )
            )
            for candidate in self.search(*groups, **wide).candidates
        }


def group(
    suffix: str = "",
    required: str = "",
    member_of: str = "",
    in_tree: str | None = None,
    **resources: int,
) -> Group:
    """Return a request group; conditions are words: `A` required, `!B` forbidden, `in:A,C` any."""
    traits, bad_traits = _terms(required)
    aggregates, bad_aggregates = _terms(member_of)
    return Group(
        suffix,
        resources,
        TraitFilter(traits, bad_traits),
        AggregateFilter(
            tuple(frozenset(map(AggregateId, names)) for names in aggregates),
            frozenset(map(AggregateId, bad_aggregates)),
        ),
        None if in_tree is None else ProviderId(in_tree),
    )


def _terms(text: str) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    required: list[frozenset[str]] = []
    forbidden: set[str] = set()
    for word in text.split():
        if word.startswith("in:"):
            required.append(frozenset(word[3:].split(",")))
        elif word.startswith("!"):
            forbidden.add(word[1:])
        else:
            required.append(frozenset({word}))
    return tuple(required), frozenset(forbidden)
