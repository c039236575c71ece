"""`moorage` and `python -m moorage`: all commands, or those of the client if the extra is missing.

It runs on Python 3.9, and imports what an extra installs only where that is complete.
"""

from __future__ import annotations

import sys

from moorage import starting
from moorage.extras import server_lack


def main() -> None:
    """Run the command line and exit the process."""
    starting.begin()
    lack = server_lack()
    if lack is None:
        from moorage.cli.main import main as all_commands

        all_commands()
    else:
        sys.exit(without_server(sys.argv[1:], lack))


def without_server(words: list[str], lack: str) -> int:
    """Execute a command of the client, or say what another one needs; return the exit code.

    Args:
        words: the command line, without the program's name.
        lack: what all other commands need, see `server_lack`.
    """
    from moorage.cli.names import operators_command
    from moorage.client.main import USAGE
    from moorage.client.main import main as client_commands
    from moorage.client.run.progress import Progress

    name = operators_command(words)
    if name is None:
        rest = f"Every other command {lack}."
        return client_commands(words, (sys.executable, "-m", "moorage"), rest)
    Progress().fail(USAGE, f"moorage {name} {lack}", "usage", "--json" in words)
    return USAGE


if __name__ == "__main__":
    main()
