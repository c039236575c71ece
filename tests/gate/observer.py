"""How many nodes of a real Ironic are busy at once: by its own list, and by its own log.

`python -m tests.gate.observer URL` reads the list again and again, past any gate, until its
standard input ends; then it prints the largest number. Standard library only.
"""

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from urllib.request import Request, urlopen

from moorage.integrations.ironic.states import is_busy
from tests.support.closing import Closing
from tests.support.ironic import ROOT

LIST = "/v1/nodes?fields=uuid,provision_state&limit=1000"
MOVED = re.compile(r'Node ([0-9a-f-]{36}) moved to provision state "([^"]+)"')
"""A line of Ironic's log: it writes one for each change of a state."""


def busy_now(url: str) -> int:
    """Return how many nodes are busy by Ironic's list."""
    request = Request(url + LIST, headers={"X-OpenStack-Ironic-API-Version": "1.95"})
    with urlopen(request, timeout=30) as answer:
        nodes = json.load(answer)["nodes"]
    return sum(is_busy(node["provision_state"]) for node in nodes)


class Observer(Closing):
    """A process that watches the list. `most`: the largest number, known once it is closed."""

    def __init__(self, url: str) -> None:
        self.most = 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.gate.observer", url],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": "src"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        """Stop watching."""
        output, _ = self._process.communicate("")
        assert self._process.returncode == 0, "the observer failed"
        self.most = int(output)


def most_by_log(log: Path, begin: int) -> int:
    """Return the largest number of busy nodes by the lines of a log after a position.

    No node may be busy there.
    """
    with log.open("rb") as lines:
        lines.seek(begin)
        text = lines.read().decode("utf-8", "replace")
    busy: set[str] = set()
    most = 0
    for node, state in MOVED.findall(text):
        (busy.add if is_busy(state) else busy.discard)(node)
        most = max(most, len(busy))
    return most


def main() -> int:
    """Watch until the standard input ends."""
    ended = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    most = 0
    while not ended.wait(0.05):
        most = max(most, busy_now(sys.argv[1]))
    sys.stdout.write(f"{most}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
