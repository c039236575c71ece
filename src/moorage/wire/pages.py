"""Lists that are returned page by page, and changes that are followed from a cursor."""

from __future__ import annotations

from moorage.wire.dataclass import dataclass

PAGE_MAX = 1_000
"""Entries in one page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAsked:
    """Which page: `cursor` is `next` of the page before; `limit` is at most 1000 entries."""

    cursor: str | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesAsked:
    """Which changes to follow.

    `after` is a cursor, EPOCH.REVISION or EPOCH.REVISION.N; without it only changes from now on are
    returned. `kinds` are separated by commas; all by default. `wait` is in seconds, at most 60. At
    most `limit` changes are examined, up to 1000.
    """

    after: str | None = None
    kinds: str | None = None
    wait: float = 30.0
    limit: int = 500
