"""Tokens, the caller, the database, the audit log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.wire.operations.operation import Access, Content, Operation, Types

if TYPE_CHECKING:
    from moorage.wire import admin, audit, pages
else:
    admin, audit, pages = map(Types, ("admin", "audit", "pages"))

CREATE_TOKEN = Operation(
    Access("POST /v1/tokens", "admin"),
    Content(body=admin.TokenWanted, answer=admin.TokenMade, status=201),
    "Create a token; only this response has its secret.",
)
LIST_TOKENS = Operation(
    Access("GET /v1/tokens", "admin"),
    Content(parameters=pages.PageAsked, answer=admin.Tokens),
    "List all tokens without their secrets, oldest first, including invalid ones.",
)
ROTATE_TOKEN = Operation(
    Access("POST /v1/tokens/{id}/rotate", "admin"),
    Content(body=admin.RotationWanted, answer=admin.TokenMade, status=201),
    "Replace a token with a new one; the old one stays valid for a grace period.",
)
REVOKE_TOKEN: Operation[None] = Operation(
    Access("DELETE /v1/tokens/{id}", "admin"),
    Content(parameters=admin.TokenRevoked),
    "Revoke a token at once, and end its tickets.",
)
WHOAMI = Operation(
    Access(
        "GET /v1/whoami",
        "reader",
        "janitor",
        "agent",
        "enroller",
        "governor",
        "reporter",
        projects=True,
    ),
    Content(answer=admin.WhoAmI),
    "Return the caller's name, role, project, scope and expiry; the server's version.",
)
MAKE_SIGN_IN_LINK = Operation(
    Access("POST /v1/sign-in-links", "reader", projects=True),
    Content(answer=admin.SignInLink, status=201),
    "Make a link that signs a browser in to the dashboard as the caller, once, within 2 minutes.",
)
BACKUP_DATABASE = Operation(
    Access("POST /v1/database/backup", "admin"),
    Content(body=admin.BackupWanted, answer=admin.Backup),
    "Write a complete copy of the database to a new file in `backup_directory`.",
)
CHECK_DATABASE = Operation(
    Access("POST /v1/database/check", "admin"),
    Content(answer=admin.Differences),
    "Recompute every sum, generation and tree, and list every difference.",
)
RAISE_EPOCH = Operation(
    Access("POST /v1/database/epoch", "admin"),
    Content(answer=admin.Epoch),
    "Begin a new epoch, because the database was restored to an earlier state.",
)
LIST_AUDIT = Operation(
    Access("GET /v1/audit", "admin"),
    Content(parameters=audit.AuditAsked, answer=audit.AuditPage),
    "List the audit log, newest first.",
)
