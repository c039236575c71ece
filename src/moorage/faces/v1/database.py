"""The database: backup and check of a running service."""

from http import HTTPStatus
from pathlib import PurePath

from moorage.faces.v1.routing import Request, Route
from moorage.faces.web import RefusalError
from moorage.service.access import Role
from moorage.wire.administration import Backup, BackupWanted, Differences


async def backup(request: Request[BackupWanted, None]) -> Backup:
    """Write a complete copy to a new file."""
    path = request.body.path
    if not PurePath(path).is_absolute() or "\0" in path:
        raise RefusalError(HTTPStatus.BAD_REQUEST, "path must be absolute.")
    await request.service.upkeep.backup(path, by=request.actor)
    return Backup(path=path)


async def check(request: Request[None, None]) -> Differences:
    """Derive everything again that can be; none when all is well."""
    return Differences(differences=await request.service.upkeep.check())


ROUTES = (
    Route(
        method="POST",
        path="/v1/database/backup",
        role=Role.ADMIN,
        summary="Write a complete copy of the database to a new file on the server's machine.",
        handler=backup,
        body=BackupWanted,
        answer=Backup,
    ),
    Route(
        method="POST",
        path="/v1/database/check",
        role=Role.ADMIN,
        summary="Derive every sum, generation and tree again and tell every difference.",
        handler=check,
        answer=Differences,
    ),
)
