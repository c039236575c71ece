"""Nova's own code as a process, which answers questions: `nova_side.py` is its other end."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.support.ironic import ROOT

NOVA_SIDE = "tests.reporters.nova_side"

THREADS = {"OS_NOVA_DISABLE_EVENTLET_PATCHING": "true"}
"""Nova's threading mode: eventlet, the other, is deprecated."""


class Nova:
    """Nova's own code, in its environment. `module` is the program that answers."""

    def __init__(
        self, python: Path, url: str, token: str, log: Path, module: str = NOVA_SIDE
    ) -> None:
        self._log = log
        with log.open("w") as errors:
            self.process = subprocess.Popen(
                [python, "-m", module, url, token],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": "src", **THREADS},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def ask(self, what: str, argument: Any) -> dict[str, Any]:
        """Ask for one thing; return the answer."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps({what: argument}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, self._log.read_text()[-2_000:]
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End it."""
        self.process.communicate()
