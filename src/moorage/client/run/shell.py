"""Code for bash: the functions that CI scripts source, and a trap that preserves earlier traps."""

from __future__ import annotations

import pkgutil
import shlex
from collections.abc import Sequence

PACKAGE = "moorage.client.run"
FUTURE = "from __future__ import annotations\n"
LABELS_IMPORT = "from moorage.client.run.labels import "
PYTHON_MARK = "@PYTHON@"
COMMAND_MARK = "@COMMAND@"
SIGNALS_MARK = "@SIGNALS@"


def client_text() -> str:
    """Return the functions for lease proxies; they need only bash and python3, no other file."""
    # One text cannot import the other, so the first stands in place of its import.
    python = _file("lease_proxy.py").replace(FUTURE, "", 1)
    labels = next(line for line in python.splitlines() if line.startswith(LABELS_IMPORT))
    python = _file("labels.py") + "\n\n" + python.replace(f"{labels}\n", "", 1)
    return _file("client.sh").replace(PYTHON_MARK, shlex.quote(python))


def trap_text(us: Sequence[str], handle: str, signals: Sequence[str]) -> str:
    """Return code that releases the leases in a file when the shell ends.

    Args:
        us: the command that runs this program, with its first arguments.
        handle: the file.
        signals: whose traps are chained.
    """
    command = shlex.join([*us, "lease", "release", "--handle", handle])
    text = _file("trap.sh").replace(COMMAND_MARK, shlex.quote(command))
    return text.replace(SIGNALS_MARK, shlex.join(signals))


def _file(name: str) -> str:
    data = pkgutil.get_data(PACKAGE, name)
    assert data is not None
    return data.decode()
