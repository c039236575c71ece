"""Lists that are told page by page."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAsked:
    """Which page: `cursor` is the `next` of the page before, `limit` the most entries, to 1000."""

    cursor: str | None = None
    limit: int = 100
