"""Benchmarks of whole services over HTTP, as their clients see them: Moorage and the original.

`__main__.py` is the command; `run.py` runs the services with their fleets. `fleet.py` defines what
is loaded, `questions.py` the requests, `scenarios.py`, `native.py` and `admission.py` their order;
`measure.py` measures a line with `wire.py`, the client, and `machine.py`, the processors' time.
`target.py` and `original.py` start the services. `report.py` compares, `documents.py` and
`chart.py` show the results. `versus.py` compares two versions of Moorage in turns. May import
anything; nothing imports it.
"""
