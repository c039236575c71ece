"""Who is out there, and what do they really have? Agents of machines, reporters, their groups.

`model.py` defines the values, `facts.py` what a decision may read and change, `agents.py` what all
rules share, `boots.py` which boot of a machine counts. `offers.py` says what an agent offers and
why not more. `registering.py` decides what agents declare, with `parts.py` for the parts of a
machine and `roots.py` for its root; `reports.py` what agents report (what reporters report:
`core/ledger/reported.py`), `plans.py` which plans of agents count, `desired.py` what they should
have, `policy.py` whether they are used, `groups.py` the defaults of their groups, `ttl.py` how long
they may be silent, `liveness.py` what follows from silence. `starts.py` says which consumers may
start on a machine. `reporters.py` defines the values of reporters, `members.py` decides who is live
and who is fenced, `deletion.py` which groups may be deleted, `ownership.py` who owns a node. May
import: the rest of `core` outside its rooms.
"""
