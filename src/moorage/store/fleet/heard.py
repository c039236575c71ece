"""Stores when agents were last heard of: one row for each process, which only it writes."""

from array import array
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import NamedTuple
from zlib import compress, decompress

from moorage.core.clock import Instant
from moorage.store.api import Plan, Query, Write

UNKNOWN = 0xFFFF_FFFF
"""In place of an age: this process does not know when the agent was last heard of."""

MILLISECOND = 1_000
"""Microseconds: the unit of stored ages."""

Ages = Mapping[int, int]
"""By the number of the agent: microseconds since it was last heard of."""


class HeardRow(NamedTuple):
    """The knowledge of one process at a time of the database."""

    process: str
    at: Instant
    ttl: int
    """The longest TTL that agents still may count on."""
    stopped: bool
    """Whether the process ended then; otherwise it may have lived on for a while."""
    ages: dict[int, int]


class Exchange(NamedTuple):
    """All rows, and the present time of the database."""

    now: Instant
    rows: list[HeardRow]


def ages_text(ages: Ages) -> str:
    """Return ages as compressed text; they are rounded up to milliseconds."""
    packed = array("I", [UNKNOWN]) * (max(ages, default=0) + 1)
    for number, age in ages.items():
        packed[number] = min(-(-age // MILLISECOND), UNKNOWN - 1)
    return b64encode(compress(packed.tobytes(), 1)).decode()


def ages_from_text(text: str) -> dict[int, int]:
    """Read what `ages_text` wrote."""
    packed = array("I")
    packed.frombytes(decompress(b64decode(text)))
    return {n: age * MILLISECOND for n, age in enumerate(packed) if age != UNKNOWN}


def heard_load(now: Instant) -> Plan[Exchange]:
    """Load all rows; `now` is the time of this process, which counts if no other has a clock."""
    (rows,) = yield [Query("heard_load", (now,))]
    found = [
        HeardRow(process, at, ttl, bool(stopped), ages_from_text(ages))
        for process, at, ttl, stopped, ages, _ in rows
    ]
    return Exchange(Instant(rows[0][5]) if rows else now, found)


def heard_write(
    process: str, ages: Ages, ttl: int, now: Instant, *, kept: int, stopped: bool
) -> Plan[Exchange]:
    """Overwrite the row of a process, and load all rows.

    Args:
        process: its id.
        ages: what it knows.
        ttl: the longest TTL that agents still may count on.
        now: its time, which counts if no other process has a clock.
        kept: microseconds after which a row of another process is deleted.
        stopped: whether the process ends now.
    """
    yield [Write("heard_upsert", [(process, ttl, int(stopped), ages_text(ages), now)])]
    exchange = yield from heard_load(now)
    if len(exchange.rows) > 1:
        yield [Write("heard_delete", [(process, exchange.now - kept)])]
    return exchange
