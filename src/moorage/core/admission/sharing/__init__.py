"""How units are shared beyond the order of arrival.

`fair_share.py` orders a line by what each sharer has used,
`cohorts.py` lends units between pools, `preemption.py` chooses which leases are asked to stop for a
ticket. It grants nothing.
Source: docs/decisions/0068-fair-share-and-cohorts.md, 0069-preemption.md.
May import: the values, units and requests of `core/admission`, `wire` and the root of `core`.
"""
