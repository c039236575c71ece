"""How requests share a system's patience: a few at once, and none while it asks for a pause."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from moorage.integrations.clock import monotonic

TRIES: Final = 5
"""How often a request is sent until it counts as unanswered."""

FIRST_PAUSE: Final = 1.0
LEAST_PAUSE: Final = 0.001
"""Seconds: less than that, a clock may not advance at all."""

PAUSE_MAX: Final = 60.0
"""Seconds; a `Retry-After` that is longer counts as this long."""


class NoAnswerError(Exception):
    """A system gave no answer, or none that says something. The message says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: its status, its JSON, and the seconds of its `Retry-After`, if it has one."""

    status: int
    content: Any
    retry_after: float | None = None


Send = Callable[[str], Awaitable[Answer]]
"""Sends a GET for a path with its query, once. Raises NoAnswerError."""


class Paced:
    """Sends requests, `most` at once. If the other side is busy, all of them wait."""

    def __init__(self, send: Send, most: int, chance: random.Random | None = None) -> None:
        self._send = send
        self._chance = chance or random.Random()
        self._places = asyncio.Semaphore(most)
        self._open_at = 0.0
        self.sent = 0

    async def get(self, path: str) -> Answer:
        """Return the answer, with any status but those of a busy system. Raises NoAnswerError."""
        pause, trouble = FIRST_PAUSE, NoAnswerError()
        for _ in range(TRIES):
            async with self._places:
                await self._turn()
                self.sent += 1
                try:
                    answer = await self._send(path)
                except NoAnswerError as error:
                    trouble, asked = error, None
                else:
                    if not _is_passing(answer.status):
                        return answer
                    where = path.partition("?")[0]
                    trouble = NoAnswerError(f"Nova answers {answer.status} for {where}")
                    asked = answer.retry_after
            seconds = min(PAUSE_MAX, pause if asked is None else max(asked, 0.0))
            # Not all at the same moment: the other side is busy.
            self._open_at = max(
                self._open_at, monotonic() + seconds * self._chance.uniform(1.0, 1.25)
            )
            pause *= 2
        raise trouble

    async def _turn(self) -> None:
        """Return when no pause is asked for."""
        while (left := self._open_at - monotonic()) > 0:
            await asyncio.sleep(max(left, LEAST_PAUSE))


def _is_passing(status: int) -> bool:
    """Return whether the same request may have another answer later."""
    return status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR
