"""Administration directly in the database, if no server uses it. It loads the whole service."""

import asyncio
import os
import pwd
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from moorage.cli.support.output import FAILED, NOT_FOUND, UNREACHABLE, USAGE, Failure
from moorage.core.errors import Code, Error
from moorage.serve.files import Files
from moorage.service.access.audit import AuditFilter, entry_shown
from moorage.service.access.token import token_shown
from moorage.service.access.tokens import create_token, rotate_token
from moorage.service.app import Service
from moorage.service.audit_entries import Actor
from moorage.service.chores import Retention
from moorage.service.clock import SystemClock
from moorage.store.api import Fatal, Locked, StoreError
from moorage.store.open import open_engine
from moorage.wire.admin import RotationWanted, TokenWanted
from moorage.wire.audit import AuditAsked

T = TypeVar("T")

KEEPING = Retention(ended_leases_hours=None)
"""A command does not know how long its server keeps ended leases, so it deletes none."""


class DatabaseBackend:
    """Opens the database itself, if no server uses it; a missing file is never created."""

    def __init__(self, database_url: str) -> None:
        self._database_url = database_url

    def token_create(self, wanted: TokenWanted) -> dict[str, Any]:
        """See `ServerBackend`."""
        made = self._run(lambda service: create_token(service.access, wanted, local()))
        answer: dict[str, Any] = msgspec.to_builtins(made)
        return answer

    def token_rotate(self, token_id: str, wanted: RotationWanted) -> dict[str, Any]:
        """See `ServerBackend`."""
        made = self._run(lambda service: rotate_token(service.access, token_id, wanted, local()))
        answer: dict[str, Any] = msgspec.to_builtins(made)
        return answer

    def token_list(self) -> list[dict[str, Any]]:
        """See `ServerBackend`."""
        tokens = self._run(lambda service: service.access.list())
        return [msgspec.to_builtins(token_shown(token)) for token in tokens]

    def token_revoke(self, token_id: str, *, leases: bool = False) -> None:
        """See `ServerBackend`."""
        self._run(lambda service: service.token_ends.revoke(token_id, local(), leases=leases))

    def audit(self, asked: AuditAsked) -> tuple[list[dict[str, Any]], str | None]:
        """See `ServerBackend`."""
        wanted = AuditFilter.of(asked)
        rows, following = self._run(
            lambda service: service.audit.page(asked.cursor, asked.limit, wanted)
        )
        return [msgspec.to_builtins(entry_shown(row)) for row in rows], following

    def backup(self, target: str) -> str:
        """See `ServerBackend`."""
        path = os.path.abspath(target)
        self._run(lambda service: service.operations.backup(path, by=local()))
        return path

    def check(self) -> list[str]:
        """See `ServerBackend`; the file of the catalog is removed, because it is not compared."""
        return self._run(self._checked)

    async def _checked(self, service: Service) -> list[str]:
        catalog = Files(self._database_url).catalog
        if catalog is not None:
            try:
                Path(catalog).unlink(missing_ok=True)
            except OSError as error:
                return [f"cannot remove {catalog}: {error.strerror}; remove it by hand"]
        return await service.operations.check()

    def epoch_raise(self) -> dict[str, int]:
        """See `ServerBackend`."""
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
        service = await Service.start(
            open_engine(self._database_url), SystemClock(), on_fatal=_give_up, retention=KEEPING
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
