"""Moorage with a pool, and gates before an Ironic, each in a process of its own."""

import json
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.e2e.support.server import Server, serve
from tests.support.closing import Closing

POOL = "deploy"
READY = re.compile(r"moorage: gate (?P<url>https?://\S+)")


class Stack(Closing):
    """A Moorage server with the pool `deploy`, and the token of a governor.

    `moorage` is the command, `folder` has database and token.
    """

    def __init__(self, moorage: Sequence[str], folder: Path, limit: int) -> None:
        self._moorage = [*moorage]
        folder.mkdir(exist_ok=True)
        self._server = serve(folder / "moorage.sqlite", moorage=moorage)
        self.url = self._server.url
        try:
            self.admin = (folder / "moorage.sqlite.token").read_text().strip()
            self.run("pool", "create", POOL, "--limit", str(limit), "--expire", "keep")
            made = self.run(
                *("token", "create", "--name", "gate", "--role", "governor"),
                *("--for", f"pool={POOL}", "--json"),
            )
        except BaseException:
            self.close()
            raise
        self.token = folder / "governor.token"
        self.token.touch(0o600)
        self.token.write_text(json.loads(made)["token"])

    def run(self, *arguments: str) -> str:
        """Run a command as an administrator; return its output. Raises AssertionError."""
        done = subprocess.run(
            [*self._moorage, *arguments],
            env={**os.environ, "MOORAGE_URL": self.url, "MOORAGE_TOKEN": self.admin},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{arguments}: {done.stderr}"
        return done.stdout

    def gate_command(self, ironic: str) -> list[str]:
        """Return the command of a gate before an Ironic, without its address."""
        command = [*self._moorage, "gate", "--ironic", ironic, "--pool", POOL]
        return [*command, "--url", self.url, "--token-file", str(self.token)]

    def gate(self, ironic: str, listen: str = "127.0.0.1:0") -> Server:
        """Start a gate before an Ironic."""
        return self.started([*self.gate_command(ironic), "--listen", listen])

    def started(self, command: Sequence[str], passed: Sequence[int] = ()) -> Server:
        """Start a command that runs a gate; it inherits the files that are passed."""
        return Server(command, ready=READY, passed=passed)

    def leases(self) -> list[dict[str, object]]:
        """Return the live leases of the pool."""
        found = self.run("lease", "list", "--pool", POOL, "--state", "granted", "--json")
        leases: list[dict[str, object]] = json.loads(found)
        return leases

    def close(self) -> None:
        """Stop the server."""
        self._server.stop()
