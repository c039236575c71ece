"""Reshape plans: a tree changes its shape while consumers hold allocations on it.

Start with `plan.py`, the document, and `planning.py`, which turns it into effects, changes and
violations. `size.py` bounds the document, `wanted.py` is the final state that it leads to.
`drafting.py` takes over what a plan says about providers, `splits.py` decides who goes where,
`fitting.py` searches where consumers fit, `totals.py` derives figures. `shape.py` judges trees and
names, `final_state.py` the rest, and writes the changes; `conservation.py` checks that no consumer
gains or loses. `effects.py` says what a plan does, with its digest, `inverse.py` how it is undone,
`tenants.py` which consumers belong to leases, `stranding.py` which tickets would wait in vain.
`violations.py` has the codes. `own_tree.py` limits
the plans of machines, `satisfied.py` says whether one has nothing left to do. `tree_order.py` is
the order in which people read trees. May import: the rest of `core.ledger`.
"""
