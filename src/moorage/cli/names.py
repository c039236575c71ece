"""The names of all commands. It imports nothing: it is read without the extra `server`, too."""

from __future__ import annotations

HOMES = {
    "agent": "group",
    "apply": "apply",
    "audit": "audit.group",
    "booking": "group",
    "config": "group",
    "consumer": "group",
    "context": "signing_in.contexts.group",
    "dashboard": "signing_in.dashboard.command",
    "db": "group",
    "explain": "explain",
    "export": "moving.exports",
    "find": "find",
    "fleet": "fleet",
    "gate": "ironic.gate.group",
    "group": "group",
    "heal": "heal",
    "import": "moving.imports",
    "ironic": "group",
    "lease": "group",
    "login": "signing_in.contexts.login",
    "metal3": "group",
    "notify": "notify",
    "offers": "booking.offers",
    "pool": "group",
    "provider": "group",
    "report": "group.report",
    "reshape": "group",
    "serve": "serve",
    "simulate": "simulate",
    "token": "group",
    "top": "top",
    "usage": "usage",
    "verify": "moving.verifies",
    "watch": "watch",
    "whoami": "token.whoami",
}
"""Commands besides those of `client/commands.py`, with the name of each in its module.

The module has the command's name, unless it is written before the name.
"""

SUMMARY_MAX = 80
"""Characters of a summary."""

SUMMARIES = {
    "agent": "Report what machines really have; drain and resume them.",
    "apply": "Compare pools with FILE and apply the differences.",
    "audit": "Print the audit log, newest first.",
    "booking": "Book units of pools for a time; list and cancel bookings.",
    "config": "Show the settings.",
    "consumer": "Look at consumers: instances, migrations, others that use providers; release...",
    "context": "List, choose and delete contexts: the servers that `moorage login` has signed...",
    "dashboard": "Print a link that signs a browser in to the dashboard, once; open it where...",
    "db": "Migrate, check, back up and restore the database.",
    "explain": "Say where it fits and what would be left there, or which places come closest.",
    "export": "Write what another service can take over.",
    "find": "Find machines, agents, pools, leases, consumers and others by TEXT.",
    "fleet": "Print the capacity of all providers by resource class: total, ratio, offered,...",
    "gate": "Hold back requests to Ironic until the host may start.",
    "group": "Show and delete groups of reporters, which share Ironic's nodes; pin nodes to...",
    "heal": "Release what an audit has found, as FILE has it.",
    "import": "Take over what another service keeps.",
    "ironic": "Limit the number of nodes that OpenStack Ironic works on at once; report its...",
    "lease": "List, show, move, hand over and revoke leases and tickets; keep leases in files.",
    "login": "Sign in to the server at URL, which then is the one that other commands address.",
    "metal3": "Limit how many hosts metal3 starts at once.",
    "notify": "Post to webhooks when leases are granted or end, at least once, until stopped.",
    "offers": "Print the first windows in which units of pools are free, all of them at once.",
    "pool": "Create, show, change and pause pools.",
    "provider": "Look at providers: hosts, their parts, and what they share; change, drain,...",
    "report": "Show the reporters of nodes and their problems (see also `moorage group`).",
    "reshape": "Change the shape of trees of providers while consumers use them; undo it.",
    "serve": "Serve the ledger until a signal stops it.",
    "simulate": "Simulate limits and pacings with the decisions of the server, without waiting.",
    "token": "Create, list, rotate and revoke access tokens.",
    "top": "Show all pools, the first ticket of each line and why it waits; press ? for...",
    "usage": "Print how much consumers hold, by project, user, type or resource class.",
    "verify": "Compare the ledger with OpenStack Placement.",
    "watch": "Print every change of the ledger, one per line, until interrupted.",
    "whoami": "Print the caller's name, role, project, scope and expiry, and the server and...",
}
"""The first sentences of their help, as the help of all commands shows them.

That help imports no command: all of them take several times as long.
"""

SECTIONS = {
    "Jobs": ("run", "lease", "trap", "simulate"),
    "Pools and leases": ("pool", "booking", "offers", "apply", "top", "notify"),
    "The ledger": ("find", "provider", "consumer", "usage", "reshape", "fleet", "explain"),
    "Machines": ("agent", "group", "report"),
    "Ironic and metal3": ("gate", "ironic", "metal3"),
    "Moving": ("import", "verify", "export"),
    "Servers": ("login", "context", "whoami", "dashboard"),
    "The server": ("serve", "db", "token", "audit", "heal", "watch", "config"),
}
"""The sections of the help; a command that is in none is among the others."""


SHARED = {
    "lease": (
        *("accept", "decline", "extend", "force", "hold", "list", "move", "offer", "revoke"),
        *("show", "why"),
    ),
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
