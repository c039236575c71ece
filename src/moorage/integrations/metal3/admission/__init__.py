"""Admission: which writes of a BareMetalHost get our pause.

`decision.py` decides; the shipped policy has the same rule in CEL. May import: `hosts`.
"""
