"""The tokens of commands that are found next to the database."""

from typing import TYPE_CHECKING

from moorage.cli.support.output import USAGE, Failure

if TYPE_CHECKING:
    from moorage.serve.files import Files

NOAUTH2_TOKEN = "admin"
"""A token that a server with `noauth2` accepts as an administrator's."""


def stored_token(files: "Files") -> str | None:
    """Return the administrator's token next to the database, or None. Raises Failure: 2."""
    try:
        text = files.token_read()
    except ValueError as error:
        raise Failure(USAGE, str(error)) from None
    return None if text is None else _sendable(text, str(files.token))


def _sendable(text: str, source: str) -> str:
    from moorage.client.transport import token_of  # deferred: it loads the HTTP client

    try:
        return token_of(text, source)
    except ValueError as error:
        raise Failure(USAGE, str(error)) from None
