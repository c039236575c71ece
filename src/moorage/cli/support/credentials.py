"""The tokens of commands: given explicitly, or found next to the database."""

from typing import TYPE_CHECKING

from click.core import ParameterSource

from moorage.cli.support.output import USAGE, Failure

if TYPE_CHECKING:
    from moorage.serve.files import Files

NOAUTH2_TOKEN = "admin"
"""A token that a server with `noauth2` accepts as an administrator's."""


def token_given(text: str | None, source: ParameterSource | None) -> str | None:
    """Return the token of `--token` or MOORAGE_TOKEN, or None. Raises Failure: 2, it is invalid."""
    named = "MOORAGE_TOKEN" if source is ParameterSource.ENVIRONMENT else "--token"
    return _sendable(text, named) if text else None


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
