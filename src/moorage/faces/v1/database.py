"""The database: backup and check of a running service."""

from http import HTTPStatus
from pathlib import PurePath

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from moorage.faces.v1.handling import Door, answer
from moorage.faces.web import RefusalError
from moorage.service.upkeep import Upkeep


class BackupWanted(Struct, frozen=True, forbid_unknown_fields=True):
    """The body that asks for a backup: an absolute path on the server's machine, a new file."""

    path: str


class Database:
    """The handlers of `/v1/database`."""

    def __init__(self, upkeep: Upkeep, door: Door) -> None:
        self._upkeep = upkeep
        self._door = door

    async def backup(self, request: Request) -> Response:
        """POST: write a complete copy to a new file."""
        wanted = await self._door.body(request, BackupWanted)
        if not PurePath(wanted.path).is_absolute() or "\0" in wanted.path:
            raise RefusalError(HTTPStatus.BAD_REQUEST, "path must be absolute.")
        await self._upkeep.backup(wanted.path)
        return answer({"path": wanted.path})

    async def check(self, request: Request) -> Response:
        """POST: re-derive everything that can be; the differences, none when all is well."""
        return answer({"differences": await self._upkeep.check()})
