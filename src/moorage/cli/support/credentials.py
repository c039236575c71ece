"""The tokens of commands: given explicitly, or found next to the database."""

import os
from typing import TYPE_CHECKING

from click.core import ParameterSource

from moorage.cli.support.output import USAGE, Failure

if TYPE_CHECKING:
    from moorage.client.transport import Token
    from moorage.serve.files import Files

NOAUTH2_TOKEN = "admin"
"""A token that a server with `noauth2` accepts as an administrator's."""


def token_given(text: str | None, source: ParameterSource | None) -> "Token":
    """Return the token of `--token`, MOORAGE_TOKEN or the file in MOORAGE_TOKEN_FILE, or None.

    Raises Failure: 2, it is invalid.
    """
    named = "MOORAGE_TOKEN" if source is ParameterSource.ENVIRONMENT else "--token"
    if text:
        return _sendable(text, named)
    path = os.environ.get("MOORAGE_TOKEN_FILE")
    return _in_file(path) if path else None


def stored_token(files: "Files") -> str | None:
    """Return the administrator's token next to the database, or None. Raises Failure: 2."""
    try:
        text = files.token_read()
    except ValueError as error:
        raise Failure(USAGE, str(error)) from None
    return None if text is None else _sendable(text, str(files.token))


def _in_file(path: str) -> "Token":
    from moorage.client.transport import token_in  # deferred: it loads the HTTP client

    try:
        return token_in(path)
    except OSError as error:
        raise Failure(USAGE, f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise Failure(USAGE, str(error)) from None


def _sendable(text: str, source: str) -> str:
    from moorage.client.transport import token_of  # deferred: it loads the HTTP client

    try:
        return token_of(text, source)
    except ValueError as error:
        raise Failure(USAGE, str(error)) from None
