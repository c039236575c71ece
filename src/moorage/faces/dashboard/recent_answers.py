"""Recent answers to slow questions, so that open pages do not compute them again and again."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any

TIMES = 50
"""An answer is kept for this many times the time that it took."""

SECONDS_MAX = 15.0
"""How long an answer is kept at most."""

ANSWERS_MAX = 64
"""Answers that are kept; beyond this the oldest is dropped."""


@dataclass(slots=True)
class _Recent:
    answer: asyncio.Future[Any]
    until: float
    """When it is too old, on the clock of the event loop; until it is there: never."""


class RecentAnswers:
    """Answers by what was asked, and who asked. Concurrent questions share one answer."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Hashable, _Recent] = OrderedDict()

    async def of(self, key: Hashable, ask: Callable[[], Awaitable[Any]], *, fresh: bool) -> Any:
        """Return a recent answer, or ask. Raises what asking raises; failures are not kept.

        `fresh`: ask in any case.
        """
        recent = self._answers.get(key)
        if fresh or recent is None or asyncio.get_running_loop().time() >= recent.until:
            recent = _asked(ask)
            self._answers[key] = recent
            self._answers.move_to_end(key)
            if len(self._answers) > ANSWERS_MAX:
                self._answers.popitem(last=False)
        try:
            return await asyncio.shield(recent.answer)
        except BaseException:
            if recent.answer.done() and self._answers.get(key) is recent:
                del self._answers[key]
            raise


def _asked(ask: Callable[[], Awaitable[Any]]) -> _Recent:
    """Begin to ask; how long the answer takes decides how long it is kept."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    recent = _Recent(asyncio.ensure_future(ask()), float("inf"))

    def done(_: object) -> None:
        now = loop.time()
        recent.until = now + min(SECONDS_MAX, TIMES * (now - begun))

    recent.answer.add_done_callback(done)
    return recent
