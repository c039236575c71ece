"""Administration by the server that owns the database, or directly in it, see `database.py`.

Both ways take and return the same plain values, those of the native API.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from moorage.cli.support.credentials import NOAUTH2_TOKEN, stored_token
from moorage.cli.support.output import FAILED, UNREACHABLE, USAGE, Failure
from moorage.cli.support.settings import address_of
from moorage.client.decoding import UndecodableError
from moorage.client.run.exit_codes import exit_code_of
from moorage.client.targets import Target
from moorage.client.transport import RefusedError, Token, Transport, UnreachableError
from moorage.config.settings import Settings
from moorage.core.limits import PAGE_MAX
from moorage.ownership import UntrustedError
from moorage.serve.files import Files
from moorage.store.api import Fatal, StoreError
from moorage.wire.admin import RotationWanted, TokenWanted
from moorage.wire.audit import AuditAsked
from moorage.wire.operations import admin
from moorage.wire.operations.operation import Operation

if TYPE_CHECKING:
    from moorage.cli.support.database import DatabaseBackend


class ServerBackend:
    """Sends requests to a running server; `DatabaseBackend` has the same methods.

    `database` is its database file, if that is on this machine and the one of the settings.
    """

    def __init__(self, transport: Transport, database: str | None = None) -> None:
        self.transport = transport
        self._database = database

    def token_create(self, wanted: TokenWanted) -> dict[str, Any]:
        """Create a token; its secret is under `token`."""
        return self._ask(admin.CREATE_TOKEN, body=asdict(wanted))

    def token_rotate(self, token_id: str, wanted: RotationWanted) -> dict[str, Any]:
        """Replace a token by a new one, whose secret is under `token`."""
        return self._ask(admin.ROTATE_TOKEN, token_id, body=asdict(wanted))

    def token_list(self) -> list[dict[str, Any]]:
        """Return all tokens."""
        tokens: list[dict[str, Any]] = []
        asked: dict[str, Any] = {"limit": PAGE_MAX, "cursor": None}
        while True:
            page = self._ask(admin.LIST_TOKENS, query=asked)
            tokens += page["tokens"]
            asked["cursor"] = page["next"]
            if page["next"] is None:
                return tokens

    def token_revoke(self, token_id: str, *, leases: bool = False) -> None:
        """Revoke a token and end its tickets, with `leases` its leases, too."""
        self._ask(admin.REVOKE_TOKEN, token_id, query={"revoke_leases": leases or None})

    def audit(self, asked: AuditAsked) -> tuple[list[dict[str, Any]], str | None]:
        """Return a page of audit entries, newest first, and the cursor of the next one."""
        page = self._ask(admin.LIST_AUDIT, query=asdict(asked))
        return page["entries"], page["next"]

    def backup(self, target: str) -> str:
        """Write a complete copy of the database to a new file; return its path.

        A database on this machine is copied by this process, with the caller's permissions, because
        its server writes only into `backup_directory`. The server records the copy, or its failure.
        """
        if self._database is None:
            answer: str = self._ask(admin.BACKUP_DATABASE, body={"name": target})["path"]
            return answer
        from moorage.store.open import copy  # deferred: it loads the engines

        path = os.path.abspath(target)
        noted = {"copied_to": path}
        self._ask(admin.BACKUP_DATABASE, body=noted)
        try:
            copy(self._database, path)
        except (StoreError, OSError) as error:
            with suppress(Failure):  # the error of the copy is the one to report
                self._ask(admin.BACKUP_DATABASE, body={**noted, "failed": str(error)})
            raise Failure(FAILED if isinstance(error, Fatal) else USAGE, str(error)) from None
        return path

    def check(self) -> list[str]:
        """Return every difference between stored derived data and its recomputed value."""
        found: list[str] = self._ask(admin.CHECK_DATABASE, body={})["differences"]
        return found

    def epoch_raise(self) -> dict[str, int]:
        """Start a new epoch; return it and the revision after which it begins."""
        return self._ask(admin.RAISE_EPOCH, body={})

    def _ask(
        self,
        operation: Operation[Any],
        *variables: str,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
    ) -> dict[str, Any]:
        """Call an operation; return the decoded JSON of its answer."""
        address = operation.address(*variables, query=query)
        with refusals_translated():
            answer: dict[str, Any] = self.transport.request(operation.method, address, body)
        return answer


@contextmanager
def refusals_translated() -> Iterator[None]:
    """Turn a refusal, or an unreachable server, into a Failure."""
    try:
        yield
    except UnreachableError as error:
        raise Failure(UNREACHABLE, str(error)) from None
    except UndecodableError as error:
        raise Failure(FAILED, str(error)) from None
    except RefusedError as refusal:
        hint = ""
        if refusal.status == 401:
            hint = (
                "; set one with --token-file or MOORAGE_TOKEN, or sign in with `moorage login URL`"
            )
        raise Failure(exit_code_of(refusal), f"{refusal}{hint}", refusal.code) from None


def find(settings: Settings, target: Target) -> "ServerBackend | DatabaseBackend":
    """Choose the target: the named server, else the announced one, else the database itself.

    Args:
        settings: with the address of the database.
        target: the server, if one is named, and the token for it; by default the administrator's
            token next to the database, which is sent only to this database's own server.
    """
    try:
        files = Files(settings.database)
    except StoreError as error:
        raise Failure(USAGE, str(error)) from None
    try:
        found = _announced(files, target.token) if target.url is None else _named(files, target)
    except (OSError, ValueError) as error:
        raise Failure(USAGE, str(error)) from None
    if found is not None:
        return found
    from moorage.cli.support.database import DatabaseBackend  # deferred: it loads the service

    return DatabaseBackend(address_of(settings))


def _named(files: Files, target: Target) -> ServerBackend:
    """Return access to the named server."""
    try:
        announced = files.announced(with_token=target.token is not None)
    except UntrustedError:
        announced = None
    here = announced is not None and announced.url == target.url
    # Servers on PostgreSQL are not announced, so it is unknown whether this is one of them.
    token = target.token or (stored_token(files) if here else None)
    transport = target._replace(token=token).transport()
    return ServerBackend(transport, str(files.database) if here else None)


def _announced(files: Files, token: Token) -> ServerBackend | None:
    """Return access to the announced server; None if there is none or it does not answer."""
    announced = files.announced(with_token=token is not None)
    if announced is None:
        if token is None:
            stored_token(files)  # raises for an invalid token, also without a server
        return None
    beside = NOAUTH2_TOKEN if announced.auth == "noauth2" else stored_token(files)
    transport = Transport(
        announced.url, token or beside, certificate=announced.certificate, environ={}
    )
    return ServerBackend(transport, str(files.database)) if transport.reachable() else None
