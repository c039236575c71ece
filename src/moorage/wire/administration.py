"""Tokens and the database, as an administrator sees them."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenWanted:
    """A wish for a new token. `role` is reader, user, service, operator or admin."""

    name: str
    role: str
    project_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token without its secret. `project_id` null: it is bound to no project."""

    id: str
    name: str
    role: str
    project_id: str | None
    created_at: datetime
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenMade(Token):
    """A new token with its secret in `token`, which nobody can show again."""

    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """A page of tokens, oldest first; `next` null: the last page."""

    tokens: list[Token]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupWanted:
    """A wish for a backup: `path` is absolute, a new file on the server's machine."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """A backup that was written: `path` is the file on the server's machine."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """What a check found: one sentence per difference, none when all is well."""

    differences: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """The epoch that begins, and the revision after which it begins."""

    epoch: int
    revision: int
