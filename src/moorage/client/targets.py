"""Which server a command addresses, with which token, and whom it trusts.

Options go before variables, these before the current context, and that before a local database.
What belongs to a context, above all its token, is used only with the address of that context.

Part of the single file that runs on Python 3.9, see `run/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from moorage.client.transport import Token, Transport, token_in, token_of

URL = "MOORAGE_URL"
TOKEN = "MOORAGE_TOKEN"
TOKEN_FILE = "MOORAGE_TOKEN_FILE"
CERTIFICATE = "MOORAGE_CERTIFICATE"
CA_FILE = "MOORAGE_CA_FILE"
CONTEXT = "MOORAGE_CONTEXT"

LOCAL = ("MOORAGE_DATABASE", "MOORAGE_CONFIG")
"""Variables that name a local database, which then goes before the current context."""

UNSET = "no server is set: set MOORAGE_URL, use --url, or sign in with `moorage login URL`"


class Target(NamedTuple):
    """A server. Without `url`, the one of a local database is meant, if there is one."""

    url: str | None
    token: Token
    certificate: str | None = None
    ca_file: str | None = None
    context: str | None = None
    """The name of the context that it comes from."""

    def transport(self, **more: Any) -> Transport:
        """Return access to it; it has an address. Raises OSError, ValueError, as `Transport`."""
        assert self.url is not None
        made = Transport(
            self.url, self.token, certificate=self.certificate, ca_file=self.ca_file, **more
        )
        made.context = self.context
        return made


def target_of(
    words: Mapping[str, Any], environ: Mapping[str, str], *, local: bool = False
) -> Target:
    """Return the server that a command addresses.

    Args:
        words: the options `url`, `token`, `token_file`, `certificate`, `ca_file` and `context`, as
            far as the command has them.
        environ: the variables.
        local: options name a local database.

    Raises:
        ValueError: the options contradict each other; a context or a token is not valid.
        OSError: a file cannot be read.
    """
    given = words.get("url"), words.get("context")
    if all(given):
        raise ValueError("--url and --context exclude each other: use one of them")
    if given[1]:
        return _of_context(given[1], words, {}, environ)
    if environ.get(URL) and environ.get(CONTEXT) and not given[0]:
        raise ValueError(f"{URL} and {CONTEXT} exclude each other: set one of them")
    url = given[0] or environ.get(URL)
    name = None if url or local else environ.get(CONTEXT)
    if not (url or local or name or any(environ.get(variable) for variable in LOCAL)):
        from moorage.client import contexts  # deferred: as below

        name = contexts.read(contexts.path_of(environ)).current
    if name:
        return _of_context(name, words, environ, environ)
    return Target(url or None, token_named(words, environ), *_trusted(words, environ))


def _of_context(
    name: str, words: Mapping[str, Any], environ: Mapping[str, str], found_by: Mapping[str, str]
) -> Target:
    """Return the server of a context; options and variables replace its parts.

    `found_by` are the variables by which the file of contexts is found.
    """
    from moorage.client import contexts  # deferred: in CI, variables name the server

    found = contexts.named(contexts.path_of(found_by), name)
    token = token_named(words, environ)
    if token is None and found.token is not None:
        token = token_of(found.token, f"the token of context {name}")
    elif token is None and found.token_file is not None:
        token = token_in(found.token_file)
    trusted = _trusted(words, environ)
    if trusted == (None, None):
        trusted = found.certificate, found.ca_file
    return Target(found.url, token, *trusted, name)


def _trusted(words: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return the certificate and the authorities: those of options, else those of variables."""
    given = words.get("certificate") or None, words.get("ca_file") or None
    if given == (None, None):
        return environ.get(CERTIFICATE) or None, environ.get(CA_FILE) or None
    return given


def token_named(words: Mapping[str, Any], environ: Mapping[str, str]) -> Token:
    """Return the token of the options, else of the variables; None if none is given.

    Raises OSError, ValueError.
    """
    if words.get("token_file"):
        return token_in(words["token_file"])
    if words.get("token"):
        return token_of(words["token"], "--token")
    return token_of_environment(environ)


def token_of_environment(environ: Mapping[str, str]) -> Token:
    """Return the token of the variables; None if none is set. Raises OSError, ValueError."""
    token, path = environ.get(TOKEN), environ.get(TOKEN_FILE)
    if token:
        return token_of(token, TOKEN)
    return token_in(path) if path else None
