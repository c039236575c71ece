"""Single slots: `slots.py` is the interface for faces, `slot_cases.py` are the changes.

May import: what `service/admission` may import.
"""
