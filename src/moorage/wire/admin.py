"""Tokens and the database, as an administrator sees them."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from typing import Literal

from moorage.wire.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenWanted:
    """A request for a new token.

    `role` is reader, user, service, operator, admin, janitor, agent, enroller, governor or
    reporter. The `scope` of a janitor or governor names its pools: `{"pool": ["a/b", "c/*"]}`,
    where `c/*` stands for all pools below `c`; that of an agent its UUID (`agent`), that of an
    enroller its groups (`group`), that of a reporter its groups of reporters (`group`). The token
    expires after `expires_in` seconds. Null: it does not expire.
    """

    name: str
    role: str
    project_id: str | None = None
    scope: dict[str, list[str]] = field(default_factory=dict)
    expires_in: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationWanted:
    """How to replace a token: the old one stays valid for `grace` seconds.

    The new one expires after `expires_in` seconds. Null: its lifetime is that of the old one when
    it was created.
    """

    grace: float = 86_400.0
    expires_in: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token without its secret. `project_id` null: it is bound to no project.

    `scope` is empty for the roles reader to admin. The token is not valid from `expires_at` on.
    `rotated_at`: when a new token replaced it. `used_at`: when it was last used, to within an hour.
    """

    id: str
    name: str
    role: str
    project_id: str | None
    scope: dict[str, list[str]]
    created_at: datetime
    expires_at: datetime | None
    rotated_at: datetime | None
    revoked_at: datetime | None
    used_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenMade(Token):
    """A new token with its secret in `token`, which cannot be shown again."""

    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """A page of tokens, oldest first; `next` null: the last page."""

    tokens: list[Token]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRevoked:
    """With `revoke_leases` the leases of a revoked token end, too, not only its tickets.

    Neither ends if another valid token has the same owner.
    """

    revoke_leases: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerRevokeWanted:
    """Whose tickets and leases end: those of an owner, or of all of a project, `PROJECT/*`.

    `state`: only the waiting, or only the granted ones. `pool`: only those that need units of it.
    Owners may end their own, which are then withdrawn or released; all others need an operator.
    """

    owner: str
    state: Literal["waiting", "granted"] | None = None
    pool: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerRevoked:
    """How many tickets and leases have ended. `more`: ask again, one call ends 10,000 at most."""

    owner: str
    tickets: int
    leases: int
    more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WhoAmI:
    """The caller, as the server knows it, and the server's version.

    `role` is one of those of tokens. `owner` is the caller as an owner of leases; null: it has
    none. `token_id` and `expires_at` are those of one of Moorage's own tokens; null: it is another
    one, or it does not expire.
    """

    name: str
    role: str
    project_id: str | None
    scope: dict[str, list[str]]
    owner: str | None
    token_id: str | None
    expires_at: datetime | None
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInLink:
    """A one-time link to the dashboard: `code`, which works once, and until `expires_at`.

    The address is that of the page that signs in, with `#link=CODE` after it.
    """

    code: str
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupWanted:
    """A request for a backup: `name` is a new file in the server's `backup_directory`.

    With `copied_to` instead, the server writes no copy: the caller copies the database to this
    absolute path itself, and the server only adds an audit row. If that copy fails, the caller
    sends the same `copied_to` again, with the reason in `failed`, for a second audit row.
    """

    name: str | None = None
    copied_to: str | None = None
    failed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """A backup. `path`: the file on the server's machine. `written`: the server wrote it."""

    path: str
    written: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """The result of a check: one sentence per difference, none if everything is consistent."""

    differences: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """The new epoch, and the revision after which it begins."""

    epoch: int
    revision: int
