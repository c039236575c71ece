"""Single slots: `changes.py` by operators, and in `idle_slots.py` which one a ticket gets.

May import: the rest of `core/admission`, of which only the grants import this.
"""
