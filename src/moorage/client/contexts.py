"""The file of contexts: the servers that this user has signed in to, and which one is current.

It is JSON: Python 3.9 reads no TOML without help, INI has no quotes for names, and `transport.py`
has loaded JSON anyway. It decides where tokens are sent, and has tokens itself, so only its owner
may read or write it.

Part of the single file that runs on Python 3.9, see `run/`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from moorage.ownership import check_folder, read_own

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
"""The name of a context: a word that needs no quotes in a shell, and is no option."""

NAME_FORM = "1 to 63 letters, digits, '.', '_' and '-', beginning with a letter or a digit"

REMEDY = "name the server with --url, or another folder with XDG_CONFIG_HOME"


class Context(NamedTuple):
    """One server: its address, the caller's token or the file with it, and whom to trust."""

    url: str
    token: str | None = None
    token_file: str | None = None
    certificate: str | None = None
    ca_file: str | None = None


class Contexts(NamedTuple):
    """What the file has: contexts by name, and the current one."""

    by_name: Mapping[str, Context]
    current: str | None = None


def path_of(environ: Mapping[str, str]) -> str | None:
    """Return the path of the file; None: this user has no home.

    Source: the XDG Base Directory Specification, which ignores relative paths.
    """
    folder = environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(folder):
        folder = os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(folder, "moorage", "contexts.json") if os.path.isabs(folder) else None


def read(path: str | None) -> Contexts:
    """Return what the file has; a missing file has no contexts.

    Raises:
        ValueError: others can read or write the file, or it is not as it should be.
        OSError: it cannot be read.
    """
    if path is None:
        return Contexts({})
    try:
        raw = read_own(path, REMEDY, secret=True)
    except (FileNotFoundError, NotADirectoryError):
        return Contexts({})
    try:
        return _decoded(json.loads(raw))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read as a file of contexts: {error}") from None


def check_writable(path: str) -> None:
    """Raise ValueError if another user could replace the file. Raises OSError."""
    check_folder(os.path.dirname(path), REMEDY)


def named(path: str | None, name: str) -> Context:
    """Return the context of a name. Raises ValueError: there is none; and as `read`."""
    found = read(path).by_name
    if name not in found:
        names = ", ".join(sorted(found))
        known = f"there are {names}" if names else "there are none"
        raise ValueError(f"there is no context {name}; {known}: `moorage login URL` makes one")
    return found[name]


def written(contexts: Contexts) -> bytes:
    """Return the content of the file."""
    by_name = {
        name: {key: value for key, value in one._asdict().items() if value is not None}
        for name, one in sorted(contexts.by_name.items())
    }
    return (
        json.dumps({"current": contexts.current, "contexts": by_name}, indent=2) + "\n"
    ).encode()


def _decoded(value: Any) -> Contexts:
    """Return the contexts of a JSON document. Raises ValueError."""
    members = _object(value, "the document", ("current", "contexts"))
    by_name = {}
    for name, one in _object(members.get("contexts", {}), "contexts", None).items():
        if not NAME.fullmatch(name):
            raise ValueError(f"the name of a context must have {NAME_FORM}")
        texts = _object(one, f"context {name}", Context._fields)
        for key, text in texts.items():
            if not isinstance(text, str) or not text:
                raise ValueError(f"{key} of context {name} must be a text")
        if "url" not in texts:
            raise ValueError(f"context {name} has no url")
        if "token" in texts and "token_file" in texts:
            raise ValueError(f"context {name} must not have both token and token_file")
        by_name[name] = Context(**texts)
    current = members.get("current")
    if current is not None and not (isinstance(current, str) and current in by_name):
        raise ValueError("current must be the name of a context")
    return Contexts(by_name, current)


def _object(value: Any, what: str, known: tuple[str, ...] | None) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} must be an object")
    for name in value:
        if known is not None and name not in known:
            raise ValueError(f"{what} must not have {name!r}")
    return value
