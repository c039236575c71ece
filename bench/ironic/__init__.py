"""Measures what is before and beside Ironic.

`gate.py` measures what the gate adds to a request, `reporter.py` passes over many nodes.
"""
