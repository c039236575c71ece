"""Confirms grants whose answers were read, and ends those whose answers nobody can have read.

Several clients may have asked with one key. A grant is confirmed as soon as one of them has read
its answer; it is given back only if none of them has.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.service.admission.presence.presence_cases import LeaseConfirm, LeaseUndelivered
from moorage.service.batch.transactor import Transactor

RETRY_SECONDS = 0.5
TRIES = 20
"""Tries to store what became of an answer, for less time than a grant lasts unconfirmed."""

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


class Confirmations:
    """The answers of this process that tell of grants."""

    def __init__(self, transactor: Transactor, *, shared: bool) -> None:
        """Create it; `shared`: other processes may tell others of the same grant."""
        self._transactor = transactor
        self._shared = shared
        self._answers: dict[LeaseId, _Answers] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def expect(self, lease: LeaseId, *, sole: bool = False, confirms: bool = False) -> Told:
        """Return what to call once it is known whether an answer was read that tells of a grant.

        Args:
            lease: the grant.
            sole: nobody else can have asked for it, at another process of the service.
            confirms: its client says that it confirms the grant itself, so that the answer was
                read proves nothing: a proxy may have read it.
        """
        before = self._answers.get(lease, _Answers(0, unknown=False))
        self._answers[lease] = before._replace(open=before.open + 1)
        alone = sole or not self._shared

        def told(read: bool | None) -> None:
            self._told(lease, None if read and confirms else read, alone=alone)

        return told

    def _told(self, key: LeaseId, read: bool | None, *, alone: bool) -> None:
        before = self._answers[key]
        after = _Answers(before.open - 1, before.unknown or read is not False)
        if after.open:
            self._answers[key] = after
        else:
            del self._answers[key]
        if read:
            self._begin(LeaseConfirm(key))
        elif not after.open and not after.unknown and alone:
            self._begin(LeaseUndelivered(key))

    def _begin(self, case: LeaseConfirm | LeaseUndelivered) -> None:
        task = asyncio.get_running_loop().create_task(self._submitted(case))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _submitted(self, case: LeaseConfirm | LeaseUndelivered) -> None:
        for _ in range(TRIES):
            try:
                await self._transactor.submit(case)
                return
            except Error as error:
                if error.code not in PASSING:
                    return  # it is not remembered any more
            await asyncio.sleep(RETRY_SECONDS)
        log.error("it cannot be stored whether the grant of lease %s was read", case.lease)

    async def stop(self) -> None:
        """Store what is known."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=RETRY_SECONDS * TRIES)
