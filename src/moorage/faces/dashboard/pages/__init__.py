"""The pages: each file gathers what its templates show, and has the actions of its buttons.

`pools.py` lists pools.
"""
