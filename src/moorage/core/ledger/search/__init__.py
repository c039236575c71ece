"""The candidate search: finds the providers that can serve a query, in memory.

Start with `candidates.py`: one query from beginning to end.

* `catalog/` is the in-memory copy of all providers; `validation.py` checks a query against it.
* `groups.py` finds the rows that can serve one group, `sharing.py` the sharing providers.
  `anchors.py` skips chunks and trees that cannot serve all groups together, and opens the others;
  `combine/` combines the groups of one tree. `compact_candidates.py` stores candidates compactly.
* `budget.py` limits the steps of a search; `steps.py` lets long work be interrupted.
* `claim_choice.py` chooses for a claim, among the trees that it prefers.
* `explain.py` explains why nothing is found, by `conditions.py` one by one: what the providers lack
  that are nearest to it, or which parts do not fit together. `misses.py` names the providers that
  lack the least, `places.py` those where it fits.
* `provider_listing.py` lists providers, `capacity_sums.py` sums up their inventories.

May import: the rest of `core/ledger` except its decisions, msgspec, numpy.
"""

from moorage.core.ledger.search.candidates import searched
from moorage.core.ledger.search.catalog.catalog import Catalog
from moorage.core.ledger.search.claim_choice import preferring
from moorage.core.ledger.search.provider_listing import providers_in_order

__all__ = [
    "Catalog",
    "preferring",
    "providers_in_order",
    "searched",
]
