"""Lists that are returned page by page."""

from __future__ import annotations

from moorage.wire.dataclass import dataclass

PAGE_MAX = 1_000
"""Entries in one page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAsked:
    """Which page: `cursor` is `next` of the page before; `limit` is at most 1000 entries."""

    cursor: str | None = None
    limit: int = 100
