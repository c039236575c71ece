"""Code for bash: the functions that CI scripts source, and a trap that preserves earlier traps."""

from __future__ import annotations

import pkgutil
import re
import shlex
from collections.abc import Sequence

PACKAGE = "moorage.client.run"
FUTURE = "from __future__ import annotations\n"
CONTAINED = (
    ("moorage.client", "proxies.py"),
    (PACKAGE, "labels.py"),
    (PACKAGE, "process/starters.py"),
    (PACKAGE, "lease_proxy_exchange.py"),
    (PACKAGE, "lease_proxy_files.py"),
    (PACKAGE, "lease_proxy.py"),
)
"""The files that the functions consist of, each after those that it imports.

They become one text, so no name may be in two of them.
"""

OUR_IMPORT = re.compile(r"^from moorage\.[^(\n]*(\([^)]*\))?\n", re.MULTILINE)
PYTHON_MARK = "@PYTHON@"
COMMAND_MARK = "@COMMAND@"
SIGNALS_MARK = "@SIGNALS@"


def client_text() -> str:
    """Return the functions for lease proxies; they need only bash and python3, no other file."""
    # One text cannot import the others, so these stand in place of their imports.
    texts = [_file(name, package).replace(FUTURE, "", 1) for package, name in CONTAINED]
    python = OUR_IMPORT.sub("", "\n\n".join(texts))
    return _file("client.sh").replace(PYTHON_MARK, shlex.quote(f"{FUTURE}{python}"))


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


def _file(name: str, package: str = PACKAGE) -> str:
    data = pkgutil.get_data(package, name)
    assert data is not None
    return data.decode()
