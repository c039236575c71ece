"""Backup, check and epoch of a running service's database."""

from http import HTTPStatus
from pathlib import PurePath

from moorage.faces.v1.routing import Handlers, Request
from moorage.faces.web import RefusalError
from moorage.wire.admin import Backup, BackupWanted, Differences, Epoch
from moorage.wire.operations import admin as operations


async def backup(request: Request[BackupWanted, None]) -> Backup:
    """Write a backup to a new file, or record that the caller writes one itself."""
    name, path = request.body.name, request.body.copied_to
    if (name is None) == (path is None):
        raise RefusalError(HTTPStatus.BAD_REQUEST, "Pass either name or copied_to.")
    if name is not None and request.body.failed is not None:
        raise RefusalError(HTTPStatus.BAD_REQUEST, "Pass failed only together with copied_to.")
    operations = request.service.operations
    if path is None:
        assert name is not None
        return Backup(path=await operations.backup_named(name, by=request.actor), written=True)
    if not PurePath(path).is_absolute() or "\0" in path:
        raise RefusalError(HTTPStatus.BAD_REQUEST, "copied_to must be an absolute path.")
    await operations.backup_noted(path, by=request.actor, failed=request.body.failed)
    return Backup(path=path, written=False)


async def check(request: Request[None, None]) -> Differences:
    """Recompute all derived data and return the differences; an empty list means none."""
    return Differences(differences=await request.service.operations.check())


async def epoch_raise(request: Request[None, None]) -> Epoch:
    """Start a new epoch."""
    epoch, revision = await request.service.operations.epoch_raise(by=request.actor)
    return Epoch(epoch=epoch, revision=revision)


HANDLERS: Handlers = {
    operations.BACKUP_DATABASE: backup,
    operations.CHECK_DATABASE: check,
    operations.RAISE_EPOCH: epoch_raise,
}
