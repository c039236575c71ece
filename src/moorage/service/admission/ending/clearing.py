"""Ends all tickets of an owner, and its leases if wanted: some at a time, between requests."""

from typing import NamedTuple

from moorage.core.admission.line.clearing import belongs
from moorage.core.clock import Instant
from moorage.core.wildcards import BELOW
from moorage.service import errors
from moorage.service.admission.ending.revoke_cases import Clear, Clearing
from moorage.service.batch.transactor import Transactor
from moorage.service.pages import START
from moorage.store.admission import reads
from moorage.store.api import Engine

AT_ONCE = 200
"""Leases that one batch ends: some ten milliseconds."""

CLEARED_MAX = 10_000
"""Leases that one call ends: a few seconds."""


class Cleared(NamedTuple):
    """How many have ended; `more`: there were more than one call ends."""

    tickets: int = 0
    leases: int = 0
    more: bool = False


class OwnerClearing:
    """Ends what owners have. Every method raises `Error`."""

    def __init__(self, engine: Engine, transactor: Transactor) -> None:
        self._engine = engine
        self._transactor = transactor

    async def clear(self, what: Clearing, pool: str | None = None) -> Cleared:
        """End at most `CLEARED_MAX` of them; tickets first, or they would be granted meanwhile.

        Args:
            what: whose, in which states, and why.
            pool: only those that need units of it; None: all.
        """
        counts = {"waiting": 0, "granted": 0}
        owner = None if what.owner.endswith(BELOW) else what.owner
        for state in ("waiting", "granted"):
            if state not in what.states:
                continue
            after: tuple[int, str] = START
            while True:
                if sum(counts.values()) >= CLEARED_MAX:
                    return Cleared(counts["waiting"], counts["granted"], more=True)
                plan = reads.leases_window(after, AT_ONCE, pool=pool, state=state, owner=owner)
                with errors.translated():
                    seen = (await self._engine.read_aside(plan)).leases
                found = tuple(one.id for one in seen if belongs(one, what.owner))
                if found:
                    for one in await self._transactor.submit(Clear(found, what)):
                        counts[one.state] += 1
                if len(seen) < AT_ONCE:
                    break
                after = (Instant(seen[-1].arrival), seen[-1].id)
        return Cleared(counts["waiting"], counts["granted"])
