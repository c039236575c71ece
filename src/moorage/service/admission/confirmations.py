"""Which clients are gone, and which grants are confirmed, as connections show.

A grant whose answer was read is confirmed; one whose answer nobody can have read is given back.
Several clients may have asked with one key. A grant is confirmed as soon as one of them has read
its answer; it is given back only if none of them has.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from moorage.core.admission import expiry, leases
from moorage.core.admission.facts import Changes as AdmissionChanges
from moorage.core.admission.facts import Keys as AdmissionKeys
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.service_time import When
from moorage.service.admission.lease_cases import LeaseCase
from moorage.service.batch.transactor import Transactor
from moorage.service.batch.use_case import UseCase
from moorage.service.batch.world import Changes, Keys, World


@dataclass(slots=True)
class TicketsLeft(UseCase[None]):
    """Note that no request waits for these tickets, because the only process was started again."""

    tickets: list[LeaseId]

    def keys(self) -> Keys:
        return Keys(admission=AdmissionKeys(heard=set(self.tickets)))

    def decide(self, world: World, when: When) -> Changes:
        made = AdmissionChanges()
        for ticket in self.tickets:
            made.update(leases.left_at_restart(world.admission, when.moment, ticket))
        return Changes(admission=made)

    def conclude(self, world: World, when: When) -> None:
        """Return nothing."""


@dataclass(slots=True)
class LeasesConfirm(UseCase[None]):
    """Note that the holders of these grants have read of them; some may have ended since."""

    leases: list[LeaseId]

    def keys(self) -> Keys:
        return Keys(admission=AdmissionKeys(heard=set(self.leases)))

    def decide(self, world: World, when: When) -> Changes:
        made, facts = AdmissionChanges(), world.admission
        for lease in self.leases:
            if lease in facts.leases:
                made.update(expiry.confirm(facts, when.moment, lease))
        return Changes(admission=made)

    def conclude(self, world: World, when: When) -> None:
        """Return nothing."""


@dataclass(slots=True)
class LeaseUndelivered(LeaseCase):
    """End a grant that nobody has read of, unless it is confirmed."""

    def decide(self, world: World, when: When) -> Changes:
        facts, moment = world.admission, when.moment
        return Changes(admission=expiry.undelivered(facts, moment, when.wall, self.lease))


RETRY_SECONDS = 0.5
TRIES = 20
"""Tries to store what became of an answer, for less time than a grant lasts unconfirmed."""

COLLECT_SECONDS = 0.2
"""How long confirmations are collected. Many short leases end within it and need none stored.

Not for those that are released by names of slots, as `expect` says.
"""

LEASES_MAX = 100
"""Confirmations that are stored at once."""

PASSING = frozenset({Code.UNAVAILABLE, Code.OVERLOADED})

log = logging.getLogger("moorage.confirmations")

Told = Callable[[bool | None], None]
"""Takes whether an answer was read; None: it is not known. Call it once."""


class _Answers(NamedTuple):
    """The answers that tell of one grant."""

    open: int
    """How many of them it is not known of yet."""
    unknown: bool
    """Whether it stays unknown of some that went out."""


ONLY = _Answers(1, unknown=False)
"""One answer: almost always there is no other."""


class Confirmations:
    """The answers of this process that tell of grants."""

    def __init__(self, transactor: Transactor, *, shared: bool) -> None:
        """Create it; `shared`: other processes may tell others of the same grant."""
        self._transactor = transactor
        self._shared = shared
        self._answers: dict[LeaseId, _Answers] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._read: dict[LeaseId, None] = {}
        """Grants that are to be confirmed."""
        self._timer: asyncio.TimerHandle | None = None

    def expect(self, lease: LeaseId, *, sole: bool = False, confirms: bool = False) -> Told:
        """Return what to call once it is known whether an answer was read that tells of a grant.

        Args:
            lease: the grant.
            sole: nobody else can have asked for it, at another process of the service. It is
                confirmed without delay: a release that comes late must be known as its holder's.
            confirms: its client says that it confirms the grant itself, so that the answer was
                read proves nothing: a proxy may have read it.
        """
        before = self._answers.get(lease)
        self._answers[lease] = ONLY if before is None else before._replace(open=before.open + 1)

        def told(read: bool | None) -> None:
            self._told(lease, None if read and confirms else read, sole=sole)

        return told

    def ended(self, lease: LeaseId) -> None:
        """Note that a lease has ended: nothing is left to confirm."""
        self._read.pop(lease, None)

    def _told(self, key: LeaseId, read: bool | None, *, sole: bool) -> None:
        before = self._answers.pop(key)
        after = _Answers(before.open - 1, before.unknown or read is not False)
        if after.open:
            self._answers[key] = after
        if read and sole:
            self._begin(LeasesConfirm([key]))
        elif read:
            self._read[key] = None
            if self._timer is None:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(COLLECT_SECONDS, self._collected)
        elif not after.open and not after.unknown and (sole or not self._shared):
            self._begin(LeaseUndelivered(key))

    def _collected(self) -> None:
        """Confirm what was read."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        read, self._read = [*self._read], {}
        for first in range(0, len(read), LEASES_MAX):
            self._begin(LeasesConfirm(read[first : first + LEASES_MAX]))

    def _begin(self, case: UseCase[Any]) -> None:
        task = asyncio.get_running_loop().create_task(self._submitted(case))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _submitted(self, case: UseCase[Any]) -> None:
        for _ in range(TRIES):
            try:
                await self._transactor.submit(case)
                return
            except Error as error:
                if error.code not in PASSING:
                    return  # it is not remembered any more
            await asyncio.sleep(RETRY_SECONDS)
        log.error("cannot store which grants were read: %s", case)

    async def stop(self) -> None:
        """Store what is known."""
        self._collected()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=RETRY_SECONDS * TRIES)
