"""Measurements of whole services over HTTP, as their clients see them: Moorage and the original.

`__main__.py` is the command and `run.py` its course: which services with which fleets. `fleet.py`
says what is loaded, `questions.py` what is asked, `scenarios.py` and `native.py` in which order;
`measure.py` adds up a line, from `wire.py`, the client, and `machine.py`, the processors' time.
`target.py` and `original.py` start what is measured. `report.py` compares, `documents.py` and
`chart.py` show it. `versus.py` compares two versions of Moorage in turns. May import anything;
nothing imports it.
"""
