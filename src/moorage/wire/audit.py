"""Entries of the audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from moorage.wire.dataclass import dataclass
from moorage.wire.pages import PageAsked


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One administrative act: `who` did `action` to `target`; its state `before` and `after`.

    `token_id` is the caller's token; null: it was not one of Moorage's own. `role` is the caller's;
    `server` and `local` stand for the server itself and for the command line. `name` is what people
    call a target that is a machine or an agent; null: it is neither, or has no name.
    """

    at: datetime
    id: str
    who: str
    token_id: str | None
    role: str
    action: str
    target: str
    before: Any
    after: Any
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditAsked(PageAsked):
    """Which entries to list: those that all the given values fit.

    `target` is what was acted on, such as the name of a pool or the id of a lease. `who` is the
    name of the actor. `action` is an action such as `pool.pause`, or the noun of several, such as
    `pool`. `since` and `until` limit the time of the action; times without a zone are UTC.
    With `who` or `action` a page may have fewer entries than `limit`, or none, and still a `next`.
    """

    target: str | None = None
    who: str | None = None
    action: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPage:
    """A page of audit entries, newest first; `next` null: the last page."""

    entries: list[AuditEntry]
    next: str | None
