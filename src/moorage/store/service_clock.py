"""Loads and saves the row `service_clock`, see `Timeline` in `core/service_time.py`."""

from collections.abc import Sequence

from msgspec import structs

from moorage.core.service_time import Timeline
from moorage.store.api import Plan, Query, Row, Write

LOAD = Query("service_clock_load")

LOCK = Query("service_clock_lock")
"""Also prevents that another transaction decides by service time; lock it after the rooms' rows."""


def timeline_from_rows(rows: Sequence[Row]) -> Timeline:
    """Read the rows of `LOAD` or `LOCK`."""
    return Timeline(*rows[0])


def timeline_write(timeline: Timeline) -> Write:
    """Return the statement that saves the timeline."""
    return Write("service_clock_update", [structs.astuple(timeline)])


def timeline_load() -> Plan[Timeline]:
    """Load the timeline."""
    (rows,) = yield [LOAD]
    return timeline_from_rows(rows)
