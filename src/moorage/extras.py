"""What a command says if the extra that it needs is missing; what extras install: pyproject.toml.

Imports nothing but the standard library and runs on Python 3.9: so does whatever needs no extra.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib.util import find_spec

OLDEST = (3, 11)
"""The oldest Python on which the extras can be installed."""

IMAGE = "MOORAGE_IMAGE"
"""The variable that our container images set."""

SERVER = (
    "apsw",
    "click",
    "httptools",
    "jinja2",
    "jsonschema",
    "msgspec",
    "numpy",
    "os_resource_classes",
    "os_traits",
    "prometheus_client",
    "rich",
    "uvicorn",
    "uvloop",
    "yaml",
)
"""The modules of the extra `server`, which every other extra includes."""


def server_lack(
    modules: Iterable[str] = SERVER, version: tuple[int, ...] = sys.version_info[:3]
) -> str | None:
    """Return what the commands of the extra `server` need, to follow their name; None: nothing."""
    if version < OLDEST:
        oldest, this = (".".join(map(str, one)) for one in (OLDEST, version))
        return f"needs Python {oldest} or later, this is {this}"
    for name in modules:
        if find_spec(name) is None:
            return needs("server", f"there is no {name}")
    return None


def needs(extra: str, why: object) -> str:
    """Return that something needs an extra, and how to get it: one line, to follow its name.

    Nothing can be installed into our container images, so there the line names another image.

    Args:
        extra: its name.
        why: what is missing, such as an ImportError.
    """
    reason = " ".join(str(why).split())
    if os.environ.get(IMAGE):
        return f"needs the extra {extra} ({reason}): use the image `all`, which has every extra"
    return f"needs the extra {extra} ({reason}): pip install 'moorage[{extra}]'"
