"""The one search: every provider of the fleet in memory, in columns, and the questions put to it.

Start with `fleet.py` (class Fleet: the copy, kept up to date by `apply`) and `candidates.py` (one
query from beginning to end).

* The fleet: `block.py` holds some thousand providers of whole trees as rows, `columns.py` their
  numbers and marks, `trees.py` which rows form a tree, `lineage.py` which rows are above others.
  `loading.py` fills a fleet from a snapshot, `chunks.py` applies large changes bit by bit.
* Blocks: `summaries.py` keeps bounds of what each block holds, `prospects.py` compares them with a
  query, `soundness.py` with the rows.
* A query: `validation.py` checks it. `groups.py` finds rows that can serve a group, `sharing.py`
  the sharing providers, `pruning.py` the trees that cannot serve all groups; `anchors.py` opens the
  others. `combine.py` and `walk.py` combine the groups of one tree, `matching.py` finds dead ends.
  `rounds.py` takes candidates from each tree in turn, `picks.py` keeps them in little memory.
* Bounds: `budget.py` counts steps, `steps.py` lets long work be interrupted.
* Claims: `preference.py` orders the trees, `choosing.py` tries them.
* `explain.py` says why nothing is found; `providers.py` lists providers.

May import: the rest of `core/ledger` but its decisions, msgspec, numpy.
"""

from moorage.core.ledger.search.candidates import candidates, searched
from moorage.core.ledger.search.choosing import preferred, preferring
from moorage.core.ledger.search.fleet import Fleet
from moorage.core.ledger.search.providers import providers, providers_in_order

__all__ = [
    "Fleet",
    "candidates",
    "preferred",
    "preferring",
    "providers",
    "providers_in_order",
    "searched",
]
