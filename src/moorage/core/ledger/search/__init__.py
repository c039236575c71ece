"""The one search: every provider of the fleet in memory, in columns, and the questions put to it.

Start with `fleet.py` (class Fleet: the copy, kept up to date by `apply`), then `candidates.py`
(one question from beginning to end). `block.py` holds some thousand providers of whole trees as
rows, `columns.py` their numbers and marks, `trees.py` who belongs to which tree. `groups.py` says
which rows can serve a group, `anchors.py` which trees may serve all of them; `combine.py` and
`walk.py` combine the groups of one tree, `matching.py` sees dead ends, `budget.py` counts steps.
`summaries.py` knows of all blocks what they may hold at most, `prospects.py` compares that with a
question, `soundness.py` with the blocks. `preference.py` says which trees a claim tries first,
`choosing.py` tries them. `words.py` says which questions make sense, `explain.py` why nothing was
found; `providers.py` lists providers; `loading.py` fills a fleet from a snapshot. May import: the
rest of `core/ledger` but its decisions, msgspec, numpy.
"""

from moorage.core.ledger.search.candidates import candidates, searched
from moorage.core.ledger.search.choosing import preferred
from moorage.core.ledger.search.fleet import Fleet
from moorage.core.ledger.search.providers import providers, providers_in_order

__all__ = [
    "Fleet",
    "candidates",
    "preferred",
    "providers",
    "providers_in_order",
    "searched",
]
