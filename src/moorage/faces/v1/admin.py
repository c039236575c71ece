"""For administrators: tokens, audit rows, backups and checks; and who the caller is, for all."""

from http import HTTPStatus
from pathlib import PurePath

from moorage import __version__
from moorage.core.errors import Error
from moorage.core.ids import AgentId, ProviderId
from moorage.faces.v1.routing import Handlers, Request
from moorage.faces.web import RefusalError
from moorage.service.access.audit import AuditFilter, AuditRow, entry_shown
from moorage.service.access.token import token_shown
from moorage.service.access.tokens import create_token, rotate_token
from moorage.service.app import Service
from moorage.service.values import time_of, time_or_none
from moorage.wire.admin import (
    Backup,
    BackupWanted,
    Differences,
    Epoch,
    RotationWanted,
    SignInLink,
    TokenMade,
    TokenRevoked,
    Tokens,
    TokenWanted,
    WhoAmI,
)
from moorage.wire.audit import AuditAsked, AuditPage
from moorage.wire.operations import admin as operations
from moorage.wire.pages import PageAsked


async def create(request: Request[TokenWanted, None]) -> TokenMade:
    """Create a token; its secret is returned only here."""
    return await create_token(request.service.access, request.body, request.actor)


async def rotate(request: Request[RotationWanted, None]) -> TokenMade:
    """Replace a token by a new one."""
    token_id = request.variables["id"]
    return await rotate_token(request.service.access, token_id, request.body, request.actor)


async def index(request: Request[None, PageAsked]) -> Tokens:
    """Return tokens, without secrets."""
    asked = request.parameters
    tokens, following = await request.service.access.page(asked.cursor, asked.limit)
    return Tokens(tokens=[token_shown(token) for token in tokens], next=following)


async def revoke(request: Request[None, TokenRevoked]) -> None:
    """Revoke a token and end its tickets, and its leases if asked to."""
    token, leases = request.variables["id"], request.parameters.revoke_leases
    await request.service.token_ends.revoke(token, request.actor, leases=leases)


async def page(request: Request[None, AuditAsked]) -> AuditPage:
    """Return audit entries, newest first."""
    asked = request.parameters
    wanted = AuditFilter.of(asked)
    rows, following = await request.service.audit.page(asked.cursor, asked.limit, wanted)
    entries = [entry_shown(row, _name_of(request.service, row)) for row in rows]
    return AuditPage(entries=entries, next=following)


def _name_of(service: Service, row: AuditRow) -> str | None:
    """Return the name of the provider or agent that is the target of an action; None: no name."""
    noun = row.action.partition(".")[0]
    if noun == "agent":
        agent = service.fleet.directory.get(AgentId(row.target))
        if agent is None:
            return None
        if agent.facts is not None and agent.facts.hostname:
            return agent.facts.hostname
        root = agent.root
    else:
        root = ProviderId(row.target) if noun == "provider" else None
    record = None if root is None else service.index.catalog.record(root)
    return None if record is None else record.provider.name


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


async def whoami(request: Request[None, None]) -> WhoAmI:
    """Return the caller."""
    caller, scope = request.caller, request.caller.scope
    return WhoAmI(
        name=caller.user_id,
        role=request.actor.role,
        project_id=caller.project_id,
        scope={} if scope is None else {scope.field: [*scope.names]},
        owner=_owner(request),
        token_id=caller.token_id,
        expires_at=time_or_none(caller.expires_at),
        version=__version__,
    )


async def sign_in_link(request: Request[None, None]) -> SignInLink:
    """Make a one-time link to the dashboard."""
    token_id = request.caller.token_id
    if token_id is None:
        raise RefusalError(
            HTTPStatus.BAD_REQUEST,
            "Links are made only with Moorage's own tokens: sign in with this one on the page.",
        )
    access = request.service.access
    wait = access.sessions.openings.wait(request.caller.identity)
    if wait > 0:
        raise RefusalError(HTTPStatus.TOO_MANY_REQUESTS, "This token has signed in too often.")
    access.sessions.openings.note(request.caller.identity)
    code, ends = await access.links.make(token_id, by=request.actor)
    return SignInLink(code=code, expires_at=time_of(ends))


HANDLERS: Handlers = {
    operations.CREATE_TOKEN: create,
    operations.LIST_TOKENS: index,
    operations.ROTATE_TOKEN: rotate,
    operations.REVOKE_TOKEN: revoke,
    operations.LIST_AUDIT: page,
    operations.BACKUP_DATABASE: backup,
    operations.CHECK_DATABASE: check,
    operations.RAISE_EPOCH: epoch_raise,
    operations.WHOAMI: whoami,
    operations.MAKE_SIGN_IN_LINK: sign_in_link,
}


def _owner(request: Request[None, None]) -> str | None:
    """Return the owner of the leases that the caller asks for; None: it cannot ask for any."""
    if request.role is None and not request.governs:
        return None
    try:
        return request.owner
    except Error:  # the name is reserved
        return None
