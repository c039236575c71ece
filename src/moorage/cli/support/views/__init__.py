"""What commands print or draw, as people read it.

`cells.py` has the cells of lists: ids, ages, ends and states. `audit_text.py` says what an entry of
the audit log has changed. `reshape_text.py` draws two trees and what differs. `consumer_text.py`
has the rows of consumers, `provider_text.py` trees of providers. `pool_text.py` formats properties
of pools, `adaptive_text.py` their adaptive limits, also as options, `lease_text.py` those of
leases; `fleet_text.py` has the rows of capacity, agents and reporters,
`simulate_chart.py` draws simulations, `rollout_view.py` shows how far a rollout is,
`report_view.py` what `moorage ironic report` does. May import: what `support` may.
"""
