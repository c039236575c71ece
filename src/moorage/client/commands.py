"""Every command of the single file; the `moorage` command is built from the same tables."""

from __future__ import annotations

from moorage.client.agent import options as agent
from moorage.client.run import options as run

COMMANDS = {
    "version": ((run.JSON,), "Print the version of Moorage."),
    **run.COMMANDS,
    **agent.COMMANDS,
}
"""Commands by name, with their options and their help texts."""

EXAMPLES = {"version": ("moorage version --json",), **run.EXAMPLES, **agent.EXAMPLES}
"""Command lines for the help of each command."""

GROUPS = {
    "lease": "Keep leases in files; report outcomes.",
    "agent": "Report what this machine really has.",
}
"""Help texts of the groups of commands."""
