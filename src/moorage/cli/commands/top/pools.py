"""Pools as lines: how busy each is, the first ticket of its line, and why that waits."""

from collections import Counter
from collections.abc import Iterable, Sequence

from moorage.cli.support.tables import Column, Row
from moorage.cli.support.views.cells import state_cell
from moorage.cli.support.views.lease_text import eta_text
from moorage.cli.support.views.pool_text import state_of, word_of
from moorage.core.counting import counted
from moorage.wire.admission import Pool
from moorage.wire.labels import holder_of

COLUMNS = (
    Column("pool"),
    Column("in use", right=True),
    Column("waiting", right=True),
    Column("state", least=16),
    Column("first", dropped=10, least=12),
    Column("eta", dropped=2),
    Column("reason", dropped=1, least=16, last=True),
)

STATES = ("paused", "over", "full", "open")
"""The states of pools, in the order in which an operator looks at them."""

COUNTED = ("full", "over", "paused")
"""Those that are counted in the totals."""

BUSY, NAME, FULL = "busy", "name", "full"


def in_order(pools: Iterable[Pool], order: str = BUSY) -> list[Pool]:
    """Return pools in an order; equal ones stay by name.

    `BUSY`: as an operator looks at them: those in whose line the most wait, with the most leases
    that are not heard of, paused ones, those over their limit, full ones. `FULL`: those of which
    the largest part is occupied first.
    """
    if order == NAME:
        return [*pools]
    if order == FULL:
        return sorted(pools, key=lambda pool: -pool.occupied / max(pool.units, 1))
    return sorted(
        pools,
        key=lambda pool: (-pool.waiting, -pool.unheard, STATES.index(word_of(pool))),
    )


def rows(pools: Iterable[Pool]) -> list[Row]:
    """Return pools as lines of a table."""
    return [
        [
            pool.name,
            f"{pool.occupied}/{pool.units}",
            str(pool.waiting),
            state_cell(state_of(pool)),
            *_first(pool),
        ]
        for pool in pools
    ]


def totals(pools: Sequence[Pool]) -> str:
    """Return what all pools have together, in one line."""
    words = Counter(word_of(pool) for pool in pools)
    states = "".join(f", {words[word]} {word}" for word in COUNTED)
    occupied, units = (sum(getattr(pool, one) for pool in pools) for one in ("occupied", "units"))
    waiting = sum(pool.waiting for pool in pools)
    unheard = sum(pool.unheard for pool in pools)
    text = f"{counted(len(pools), 'pool')}{states}; {occupied}/{units} in use; {waiting} waiting"
    return f"{text}; {unheard} unheard" if unheard else text


def _first(pool: Pool) -> list[str]:
    """Return the first ticket's owner and key, when it may be granted, and why it waits.

    Without a ticket: why the pool is paused.
    """
    ticket = pool.first
    if ticket is None or ticket.waiting is None:
        return ["-", "-", pool.pause_reason or "-"]
    waiting = ticket.waiting
    return [
        f"{holder_of(ticket.owner, ticket.labels)} {ticket.labels.get('verb') or ticket.key}",
        eta_text(waiting) or "-",
        waiting.reason,
    ]
