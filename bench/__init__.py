"""Measures whole services over HTTP, as their clients see them: Moorage and the original.

`__main__.py` is the command; `run.py` measures each service with each fleet. `fleet.py` defines the
fleets, `questions.py` the requests, `scenarios.py` their order; `native.py`, `admission.py` and
`agents.py` have what only Moorage answers, `reporters/` measures reports by itself. `measure.py`
computes a line from the results of `wire.py`, the client, and `machine.py`, the processor times.
`target.py` and `original.py` start the services. `report.py` compares the lines, `documents.py` and
`chart.py` publish them. `versus.py` compares versions of Moorage: `baselines.py` builds them,
`turns.py` measures them in turns, `goals.py` has what is wanted. `any_of.py` measures long lines,
`ironic/` the gate. May import anything; only tests of budgets import it.
"""
