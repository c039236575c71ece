"""The names of all commands. It imports nothing: it is read without the extra `server`, too."""

from __future__ import annotations

HOMES = {
    "agent": "group",
    "apply": "apply",
    "audit": "audit",
    "config": "group",
    "consumer": "group",
    "db": "group",
    "explain": "explain",
    "fleet": "fleet",
    "gate": "ironic.gate.group",
    "group": "group",
    "ironic": "group",
    "lease": "group",
    "metal3": "group",
    "pool": "group",
    "provider": "group",
    "report": "group.report",
    "serve": "serve",
    "simulate": "simulate",
    "token": "group",
    "top": "top",
    "watch": "watch",
    "whoami": "token.whoami",
}
"""Commands besides those of `client/commands.py`, with the name of each in its module.

The module has the command's name, unless it is written before the name.
"""


SECTIONS = {
    "Jobs": ("run", "lease", "trap", "simulate"),
    "Pools and leases": ("pool", "apply", "top"),
    "The ledger": ("provider", "consumer", "fleet", "explain"),
    "Machines": ("agent", "group", "report"),
    "Ironic and metal3": ("gate", "ironic", "metal3"),
    "The server": ("serve", "db", "token", "whoami", "audit", "watch", "config"),
}
"""The sections of the help; a command that is in none is among the others."""


SHARED = {
    "lease": ("force", "list", "move", "revoke", "show", "why"),
    "agent": (
        *(
            "create",
            "decommission",
            "drain",
            "enroll",
            "expunge",
            "group",
            "list",
            "resume",
            "root",
        ),
        *("set-desired", "show"),
    ),
}
"""The operators' commands in groups that have commands of `client/commands.py`, too."""


def operators_command(words: list[str]) -> str | None:
    """Return the command at the start of a command line if only the operators' part has it."""
    first, second = (*words, "", "")[:2]
    if first in SHARED:
        return f"{first} {second}" if second in SHARED[first] else None
    return first if first in HOMES or first == "completion" else None
