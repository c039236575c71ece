"""Sums of what consumers hold, by project, user, consumer type or resource class, page by page."""

from collections.abc import Sequence
from itertools import groupby

from msgspec import Struct

from moorage.store.api import Plan, Query, Row
from moorage.store.ledger.reads import revision_text
from moorage.wire.enums import UsageBy

ROWS_MAX = 20_000
"""Sums of one class that are loaded at once: about 4 MB."""

Place = tuple[str, str]
"""What a sum is about: a project and a user, or one name and nothing."""

START: Place = ("", "")


class UsageFilter(Struct, frozen=True, kw_only=True):
    """What sums are by, and of which consumers; None: of any.

    `kind` is the type, or "unknown" for those without one.
    """

    by: UsageBy
    project_id: str | None = None
    user_id: str | None = None
    kind: str | None = None
    resource_class: str | None = None


class UsageSum(Struct, frozen=True):
    """How many consumers hold how much, by resource class."""

    place: Place
    consumers: int
    amounts: dict[str, int]


class UsageWindow(Struct, frozen=True):
    """Sums in the order of their places; `following` is the place after which others may follow.

    `wide`: not even the first sum was loaded, because it has more than `ROWS_MAX` classes.
    """

    as_of: str
    sums: list[UsageSum] = []
    following: Place | None = None
    wide: bool = False


class _Range(Struct, frozen=True):
    """The projects and users from one to another, both included; `more` follow after them."""

    first: Place
    last: Place
    more: bool = False


def usages_window(wanted: UsageFilter, after: Place, limit: int) -> Plan[UsageWindow]:
    """Sum up what is after a place, at most `limit` sums, as of one revision."""
    clock, rows = yield [Query("clock_load"), _range_query(wanted, after, limit)]
    as_of, found = revision_text(clock), _range(wanted, after, limit, rows)
    if found is None:
        return UsageWindow(as_of)
    beyond = after[0] if wanted.by in ("type", "class") else ""
    parameters = (
        *(wanted.by, *found.first, *found.last, wanted.user_id, wanted.kind),
        *(beyond, ROWS_MAX + 1),
    )
    if wanted.by == "class" or wanted.resource_class is not None:
        queries = [Query("usage_amounts_load", (*parameters, wanted.resource_class))]
    else:
        queries = [
            Query("usage_sums_load", parameters),
            Query("usage_consumers_count", parameters),
        ]
    amounts, *counts = yield queries
    return _window(as_of, found, amounts, counts[0] if counts else None, limit)


def _range_query(wanted: UsageFilter, after: Place, limit: int) -> Query:
    if wanted.by == "user":
        first = after if wanted.project_id is None else max(after, (wanted.project_id, ""))
        return Query("usage_users_window", (*first, limit + 1))
    if wanted.project_id is not None:
        return Query("usage_project_load", (wanted.project_id,))
    if wanted.by == "project":
        return Query("usage_projects_window", (after[0], limit + 1))
    return Query("usage_last_load")


def _range(wanted: UsageFilter, after: Place, limit: int, rows: Sequence[Row]) -> _Range | None:
    """Return the projects and users of which sums are wanted; None: there are none."""
    places: list[Place] = [(project, user) for project, user in rows]
    if wanted.project_id is not None:
        places = [one for one in places if one[0] == wanted.project_id]
    if wanted.by == "project":
        places = [one for one in places if one[0] > after[0]]
    if not places:
        return None
    if wanted.by in ("type", "class"):
        return _Range((wanted.project_id or "", ""), places[0])
    more = len(places) > limit
    first, last = places[0], places[:limit][-1]
    return _Range(first if wanted.by == "user" else (first[0], ""), last, more)


def _window(
    as_of: str, found: _Range, amounts: list[Row], counts: list[Row] | None, limit: int
) -> UsageWindow:
    """Make sums of rows; the last one is left out if it may lack rows."""
    cut = len(amounts) > ROWS_MAX
    counted = {(one, two): count for one, two, count in counts or ()}
    sums = []
    for place, rows in groupby(amounts, lambda row: (row[0], row[1])):
        held = [*rows]
        consumers = held[0][4] if counts is None else counted[place]
        sums.append(UsageSum(place, consumers, {name: amount for _, _, name, amount, _ in held}))
    if cut:
        sums.pop()
    shown = sums[:limit]
    if cut or len(sums) > limit:
        following = shown[-1].place if shown else None
        return UsageWindow(as_of, shown, following, wide=not shown)
    return UsageWindow(as_of, shown, found.last if found.more else None)
