"""Tokens, the caller, the database, the audit log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.wire.operations.operation import Operation, Types

if TYPE_CHECKING:
    from moorage.wire import admin, audit, pages
else:
    admin, audit, pages = map(Types, ("admin", "audit", "pages"))

CREATE_TOKEN = Operation(
    "POST /v1/tokens",
    role="admin",
    body=admin.TokenWanted,
    answer=admin.TokenMade,
    status=201,
    summary="Create a token; only this response has its secret.",
)

LIST_TOKENS = Operation(
    "GET /v1/tokens",
    role="admin",
    parameters=pages.PageAsked,
    answer=admin.Tokens,
    summary="List all tokens without their secrets, oldest first, including invalid ones.",
)

ROTATE_TOKEN = Operation(
    "POST /v1/tokens/{id}/rotate",
    role="admin",
    body=admin.RotationWanted,
    answer=admin.TokenMade,
    status=201,
    summary="Replace a token with a new one; the old one stays valid for a grace period.",
)

REVOKE_TOKEN: Operation[None] = Operation(
    "DELETE /v1/tokens/{id}",
    role="admin",
    parameters=admin.TokenRevoked,
    summary="Revoke a token at once, and end its tickets.",
)

WHOAMI = Operation(
    "GET /v1/whoami",
    role="reader",
    scopes=("janitor", "agent", "enroller", "governor", "reporter"),
    projects=True,
    answer=admin.WhoAmI,
    summary="Return the caller's name, role, project, scope and expiry; the server's version.",
)

BACKUP_DATABASE = Operation(
    "POST /v1/database/backup",
    role="admin",
    body=admin.BackupWanted,
    answer=admin.Backup,
    summary="Write a complete copy of the database to a new file in `backup_directory`.",
)

CHECK_DATABASE = Operation(
    "POST /v1/database/check",
    role="admin",
    answer=admin.Differences,
    summary="Recompute every sum, generation and tree, and list every difference.",
)

RAISE_EPOCH = Operation(
    "POST /v1/database/epoch",
    role="admin",
    answer=admin.Epoch,
    summary="Begin a new epoch, because the database was restored to an earlier state.",
)

LIST_AUDIT = Operation(
    "GET /v1/audit",
    role="admin",
    parameters=audit.AuditAsked,
    answer=audit.AuditPage,
    summary="List the audit log, newest first.",
)
