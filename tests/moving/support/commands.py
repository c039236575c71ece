"""Runs `moorage import placement` as an operator does."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Self

SECONDS = 120.0

SMALL_CHUNKS = (
    "import moorage.integrations.placement.difference as difference; difference.CHUNK_ROWS = 20;"
    " from moorage.__main__ import main; main()"
)
"""The command with many small requests, so that there are many points to be killed at."""


class Importing:
    """The command, for one original and one server."""

    def __init__(self, folder: Path, database: str, server: str) -> None:
        self._folder = folder
        self._server = server
        self.file = folder / "placement.url"
        self.file.write_text(database + "\n")
        self.file.chmod(0o600)
        self._source = ["--database-file", str(self.file)]

    @classmethod
    def over_api(cls, folder: Path, url: str, server: str) -> Self:
        """Return the command for an original that is read over its API."""
        found = cls(folder, "", server)
        found._source = ["--url", url, "--source-token", "admin"]
        return found

    def _words(self, *options: str) -> list[str]:
        words = ["import", "placement", *self._source, *options]
        return [*words, "--server", self._server, "--token", "admin"]

    def _environment(self) -> dict[str, str]:
        return {k: v for k, v in os.environ.items() if not k.startswith("MOORAGE_")}

    def start(self, *options: str, small: bool = False) -> "subprocess.Popen[str]":
        """Start a step; with `small`, of many requests."""
        program = ["-c", SMALL_CHUNKS] if small else ["-m", "moorage"]
        return subprocess.Popen(
            [sys.executable, *program, *self._words(*options)],
            cwd=self._folder,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *options: str, code: int = 0, small: bool = False) -> str:
        """Run a step to its end; return what it prints. It must exit with this code."""
        process = self.start(*options, small=small)
        said, failed = process.communicate(timeout=SECONDS)
        assert process.returncode == code, (options, process.returncode, said, failed)
        return said if code == 0 else failed
