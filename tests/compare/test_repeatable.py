"""A run is repeatable: the same seed makes the same requests in every process."""

import os
import subprocess
import sys

from tests.compare.generate.requests import Generations
from tests.compare.generate.sequences import Sequence
from tests.e2e.support.fuzzer import CLASSES, CONSUMERS, PROVIDERS

REQUESTS = 300
KNOWN = Generations(
    providers=dict.fromkeys(PROVIDERS, 1),
    consumers=dict.fromkeys(CONSUMERS, 1),
    offers=dict.fromkeys(PROVIDERS, CLASSES),
    free={"/resource_providers/{provider}": [[uuid] for uuid in PROVIDERS]},
)


def made() -> str:
    """Return a sequence as text."""
    sequence = Sequence("a seed")
    asks = [*sequence.fleet(), *(sequence.ask(KNOWN) for _ in range(REQUESTS))]
    return "\n".join(ask.text(KNOWN) for ask in asks)


def test_hashes_do_not_matter() -> None:
    """Hashes, and with them the order of sets, differ between processes."""
    command = [sys.executable, "-c", f"from {__name__} import made; print(made())"]
    found = {
        subprocess.run(
            command,
            env={**os.environ, "PYTHONHASHSEED": hashes, "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            check=True,
        ).stdout
        for hashes in ("0", "1")
    }
    assert len(found) == 1
    assert len(found.pop().splitlines()) > REQUESTS
