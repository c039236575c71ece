"""Moorage: the ledger of a machine fleet's capacity, and who may use it now.

Floors, from the top: `cli`, `serve`, `faces` and `client`, `service`, `store`, `core`, `wire`.
Imports run downwards only; start reading at `serve/` for the running process
and at `core/ledger/` for the rules.
"""

__version__ = "0.1.0"
