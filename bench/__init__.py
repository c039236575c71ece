"""Measurements of a whole service over HTTP, as its clients see it.

`__main__.py` is the command; `scenarios.py` says what is measured, `fleet.py` what is loaded
before, `wire.py` is the client, `target.py` starts what is measured, `report.py` shows it.
"""
