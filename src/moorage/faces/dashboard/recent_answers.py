"""Answers of the last seconds, so that open pages do not compute slow ones again and again."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

SECONDS = 15.0
"""How old an answer may be."""

ANSWERS_MAX = 64
"""Answers that are kept; beyond this the oldest is dropped."""


class RecentAnswers:
    """Answers by what was asked, and who asked. Concurrent questions share one answer."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Hashable, tuple[float, asyncio.Future[Any]]] = OrderedDict()

    async def of(self, key: Hashable, ask: Callable[[], Awaitable[Any]]) -> Any:
        """Return a recent answer, or ask. Raises what asking raises; failures are not kept."""
        now = asyncio.get_running_loop().time()
        at, answer = self._answers.get(key, (0.0, None))
        if answer is None or now - at >= SECONDS:
            answer = asyncio.ensure_future(ask())
            self._answers[key] = (now, answer)
            self._answers.move_to_end(key)
            if len(self._answers) > ANSWERS_MAX:
                self._answers.popitem(last=False)
        try:
            return await asyncio.shield(answer)
        except BaseException:
            if answer.done() and self._answers.get(key, (0.0, None))[1] is answer:
                del self._answers[key]
            raise
