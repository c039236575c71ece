"""Ends by others than the holder, in `revoke_cases.py`; `clearing.py` ends all that an owner has.

May import: what `service/admission` may import.
"""
