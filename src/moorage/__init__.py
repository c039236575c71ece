"""Moorage: the ledger of a machine fleet's capacity, and who may use it now.

Floors, from the top: `cli/` is the command line, `serve/` the server process, `integrations/` what
governs other systems, `faces/` the APIs, `client/` what runs on other machines, `config/` the
settings, `service/` the use cases, `store/` the database, `core/` the rules, `wire/` the words of
the native API. Imports run downwards only. `__main__.py` runs all commands, or without the extra
`server` those of `client/`; `extras.py` says what to install, `starting.py` makes imports cheaper,
`ownership.py` decides which files to trust, `systemd/` notifies systemd and takes its sockets.
Start reading at `serve/` for the running process and at `core/ledger/` for the rules.
"""

__version__ = "0.1.0"
