"""Measures what is before Ironic: `gate.py` what the gate adds to a request."""
