"""Secrets of hooks, from files or variables: never from the command line or the file of hooks."""

import os
from collections.abc import Callable, Mapping
from typing import Any

SECRET_BYTES_MAX = 4096

Secret = Callable[[], str]
"""Reads a secret as it is now. Raises SecretError."""


class SecretError(Exception):
    """A secret cannot be read, or is none; the message has not its text."""


def secret_of(wanted: Any) -> Secret:
    """Return how to read a secret, of `{file = PATH}` or `{variable = NAME}`. Raises ValueError."""
    if not isinstance(wanted, Mapping) or len(wanted) != 1:
        raise ValueError("a secret is {file = PATH} or {variable = NAME}")
    ((kind, where),) = wanted.items()
    if kind not in ("file", "variable") or not isinstance(where, str) or not where:
        raise ValueError("a secret is {file = PATH} or {variable = NAME}")
    return lambda: _checked(_in_file(where) if kind == "file" else _in_variable(where), where)


def _in_file(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(SECRET_BYTES_MAX)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise SecretError(f"cannot read {path}: {why}") from None


def _in_variable(name: str) -> str:
    return os.environ.get(name, "")


def _checked(text: str, where: str) -> str:
    text = text.strip()
    # Also because it may be sent in a header, which a line break would end.
    if not text or not all(" " <= character <= "~" for character in text):
        raise SecretError(f"{where} has no secret: one line of visible ASCII characters")
    return text
