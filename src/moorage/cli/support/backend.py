"""Administration: by the server that owns the database, or directly in the database.

Both ways take and return the same plain values, those of the native API.
"""

import asyncio
import os
import pwd
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from moorage.cli.support.credentials import NOAUTH2_TOKEN, stored_token
from moorage.cli.support.options import address_of
from moorage.cli.support.output import FAILED, NOT_FOUND, UNREACHABLE, USAGE, Failure
from moorage.client.decoding import UndecodableError
from moorage.client.run.failures import exit_code_of
from moorage.client.transport import RefusedError, Token, Transport, UnreachableError
from moorage.config import Settings
from moorage.core.errors import Code, Error
from moorage.core.limits import PAGE_MAX
from moorage.serve.files import Files
from moorage.service.access.audit import Actor
from moorage.service.app import Service
from moorage.service.chores import Retention
from moorage.service.clock import SystemClock
from moorage.service.native.audit import shown as entry_shown
from moorage.service.native.tokens import create_token, replace, shown
from moorage.store.api import Fatal, Locked, StoreError
from moorage.store.open import copy
from moorage.store.ownership import UntrustedError
from moorage.wire.admin import RotationWanted, TokenWanted

T = TypeVar("T")

KEEPING = Retention(ended_leases_hours=None)
"""A command does not know how long its server keeps ended leases, so it deletes none."""


class ServerBackend:
    """Sends requests to a running server.

    `database` is its database file, if that is on this machine and the one of the settings.
    """

    def __init__(self, transport: Transport, database: str | None = None) -> None:
        self.transport = transport
        self._database = database

    def token_create(self, wanted: TokenWanted) -> dict[str, Any]:
        """See `command.Administration`."""
        answer: dict[str, Any] = self._ask("POST", "/v1/tokens", asdict(wanted))
        return answer

    def token_rotate(self, token_id: str, wanted: RotationWanted) -> dict[str, Any]:
        """See `command.Administration`."""
        path = f"/v1/tokens/{quote(token_id, safe='')}/rotate"
        answer: dict[str, Any] = self._ask("POST", path, asdict(wanted))
        return answer

    def token_list(self) -> list[dict[str, Any]]:
        """See `command.Administration`."""
        tokens: list[dict[str, Any]] = []
        page: dict[str, Any] = {"next": ""}
        while page["next"] is not None:
            cursor = f"&cursor={quote(page['next'])}" if page["next"] else ""
            page = self._ask("GET", f"/v1/tokens?limit={PAGE_MAX}{cursor}")
            tokens += page["tokens"]
        return tokens

    def token_revoke(self, token_id: str) -> None:
        """See `command.Administration`."""
        self._ask("DELETE", f"/v1/tokens/{quote(token_id, safe='')}")

    def audit(self, limit: int, target: str | None = None) -> list[dict[str, Any]]:
        """See `command.Administration`."""
        asked = urlencode({"limit": limit} | ({} if target is None else {"target": target}))
        entries: list[dict[str, Any]] = self._ask("GET", f"/v1/audit?{asked}")["entries"]
        return entries

    def backup(self, target: str) -> str:
        """See `command.Administration`.

        A database on this machine is copied by this process, with the caller's permissions, because
        its server writes only into `backup_directory`. The server records the copy, or its failure.
        """
        if self._database is None:
            answer: str = self._ask("POST", "/v1/database/backup", {"name": target})["path"]
            return answer
        path = os.path.abspath(target)
        noted = {"copied_to": path}
        self._ask("POST", "/v1/database/backup", noted)
        try:
            copy(self._database, path)
        except (StoreError, OSError) as error:
            with suppress(Failure):  # the error of the copy is the one to report
                self._ask("POST", "/v1/database/backup", {**noted, "failed": str(error)})
            raise Failure(FAILED if isinstance(error, Fatal) else USAGE, str(error)) from None
        return path

    def check(self) -> list[str]:
        """See `command.Administration`."""
        found: list[str] = self._ask("POST", "/v1/database/check", {})["differences"]
        return found

    def epoch_raise(self) -> dict[str, int]:
        """See `command.Administration`."""
        raised: dict[str, int] = self._ask("POST", "/v1/database/epoch", {})
        return raised

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        with refusals_translated():
            return self.transport.request(method, path, body)


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
            hint = "; set one with --token or MOORAGE_TOKEN"
        raise Failure(exit_code_of(refusal), f"{refusal}{hint}", refusal.code) from None


class DatabaseBackend:
    """Opens the database itself, if no server uses it; a missing file is never created."""

    def __init__(self, database_url: str) -> None:
        self._database_url = database_url

    def token_create(self, wanted: TokenWanted) -> dict[str, Any]:
        """See `command.Administration`."""
        made = self._run(lambda service: create_token(service.access, wanted, local()))
        answer: dict[str, Any] = msgspec.to_builtins(made)
        return answer

    def token_rotate(self, token_id: str, wanted: RotationWanted) -> dict[str, Any]:
        """See `command.Administration`."""
        made = self._run(lambda service: replace(service.access, token_id, wanted, local()))
        answer: dict[str, Any] = msgspec.to_builtins(made)
        return answer

    def token_list(self) -> list[dict[str, Any]]:
        """See `command.Administration`."""
        tokens = self._run(lambda service: service.access.list())
        return [msgspec.to_builtins(shown(token)) for token in tokens]

    def token_revoke(self, token_id: str) -> None:
        """See `command.Administration`."""
        self._run(lambda service: service.access.revoke(token_id, by=local()))

    def audit(self, limit: int, target: str | None = None) -> list[dict[str, Any]]:
        """See `command.Administration`."""
        rows, _ = self._run(lambda service: service.audit.page(None, limit, target))
        return [msgspec.to_builtins(entry_shown(row)) for row in rows]

    def backup(self, target: str) -> str:
        """See `command.Administration`."""
        path = os.path.abspath(target)
        self._run(lambda service: service.operations.backup(path, by=local()))
        return path

    def check(self) -> list[str]:
        """See `command.Administration`."""
        return self._run(lambda service: service.operations.check())

    def epoch_raise(self) -> dict[str, int]:
        """See `command.Administration`."""
        epoch, revision = self._run(lambda service: service.operations.epoch_raise(by=local()))
        return {"epoch": epoch, "revision": revision}

    def restored(self, source: str, kept: str | None) -> None:
        """Record in the audit trail that the database was restored from the backup `source`."""
        after = {"kept": kept}
        self._run(
            lambda service: service.audit.record(local(), "database.restore", source, after=after)
        )

    def _run(self, act: Callable[[Service], Awaitable[T]]) -> T:
        self._check_there()
        try:
            return asyncio.run(self._with_service(act))
        except Locked as error:
            raise Failure(UNREACHABLE, f"{error}; its server does not answer") from None
        except Error as error:
            code = _exit_code(error.code)
            raise Failure(code, error.message, error.code) from None
        except StoreError as error:
            raise Failure(FAILED if isinstance(error, Fatal) else USAGE, str(error)) from None

    def _check_there(self) -> None:
        """Raise Failure, 2, if there is no file: otherwise an empty ledger would be created."""
        path = Files(self._database_url).database
        if path is not None and not path.exists():
            raise Failure(
                USAGE,
                f"there is no database at {path}; use --database, or change to its folder",
            )

    async def _with_service(self, act: Callable[[Service], Awaitable[T]]) -> T:
        service = await Service.open(
            self._database_url, SystemClock(), on_fatal=_give_up, retention=KEEPING
        )
        try:
            return await act(service)
        finally:
            await service.stop()


def _exit_code(code: Code) -> int:
    """Return the exit code of a refusal, the same as that of a server's."""
    if code is Code.INVALID:
        return USAGE
    return NOT_FOUND if code.endswith("_not_found") else FAILED


def find(settings: Settings, url: str | None, token: Token) -> ServerBackend | DatabaseBackend:
    """Choose the target: the named server, else the announced one, else the database itself.

    Args:
        settings: with the address of the database.
        url: of a server, if one is named.
        token: for the server; by default the administrator's token next to the database, which is
            sent only to this database's own server.
    """
    try:
        files = Files(settings.database)
    except StoreError as error:
        raise Failure(USAGE, str(error)) from None
    try:
        found = _named(files, url, token) if url is not None else _announced(files, token)
    except (OSError, ValueError) as error:
        raise Failure(USAGE, str(error)) from None
    return found or DatabaseBackend(address_of(settings))


def _named(files: Files, url: str, token: Token) -> ServerBackend:
    """Return access to the named server."""
    try:
        announced = files.announced(with_token=token is not None)
    except UntrustedError:
        announced = None
    here = announced is not None and announced.url == url
    # Servers on PostgreSQL are not announced, so it is unknown whether this is one of them.
    secret = token or (stored_token(files) if here else None)
    return ServerBackend(Transport(url, secret), str(files.database) if here else None)


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


def local() -> Actor:
    """Return the local user, for audit rows: access to the database file permits everything."""
    try:
        who = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        who = str(os.getuid())
    return Actor(who, None, "local")


def _give_up(error: Exception) -> None:
    """Exit at once: work that may be lost must not be reported as done."""
    os._exit(FAILED)
