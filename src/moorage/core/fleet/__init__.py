"""Who is out there, and what do they really have? Agents of machines, and their groups.

`model.py` defines the values, `facts.py` what a decision may read and change. `offers.py` says what
an agent offers and why not more. `registering.py`, `reports.py`, `desired.py`, `policy.py` and
`groups.py` decide; `starts.py` says which consumers may start on a machine.
May import: the rest of `core` outside its rooms.
"""
