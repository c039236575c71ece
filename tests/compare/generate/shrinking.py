"""Shrinks a sequence that shows a difference."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any

from tests.compare.generate.requests import NOTHING, Ask
from tests.e2e.support.hostile import Pairs

TRIALS_MAX = 600
"""The number of smaller sequences to try; then the smallest so far is the result."""

Shows = Callable[[list[Ask]], Awaitable[bool]]


class Shrinking:
    """Delta debugging, first over the requests, then inside each request."""

    def __init__(self, shows: Shows) -> None:
        self._shows = shows
        self._trials = 0

    async def smallest(self, asks: list[Ask]) -> list[Ask]:
        """Return a sequence that still shows the difference, without anything unnecessary."""
        asks = await self._fewer(asks)
        asks = await self._simpler(asks)
        return await self._fewer(asks)

    async def _holds(self, asks: list[Ask]) -> bool:
        self._trials += 1
        return self._trials <= TRIALS_MAX and await self._shows(asks)

    async def _fewer(self, asks: list[Ask]) -> list[Ask]:
        size = len(asks)
        while size >= 1:
            at = 0
            while at < len(asks):
                rest = asks[:at] + asks[at + size :]
                if rest and await self._holds(rest):
                    asks = rest
                else:
                    at += size
            size //= 2
        return asks

    async def _simpler(self, asks: list[Ask]) -> list[Ask]:
        for at in reversed(range(len(asks))):
            went_on = True
            while went_on:
                went_on = False
                for variant in variants(asks[at]):
                    changed = [*asks[:at], variant, *asks[at + 1 :]]
                    if await self._holds(changed):
                        asks, went_on = changed, True
                        break
        return asks


def variants(ask: Ask) -> Iterator[Ask]:
    """Yield the request with one part of its query or body omitted."""
    for at in range(len(ask.query)):
        yield replace(ask, query=ask.query[:at] + ask.query[at + 1 :])
    if ask.body is not NOTHING:
        for body in smaller(ask.body):
            yield replace(ask, body=body)


def smaller(value: Any) -> Iterator[Any]:
    """Yield the value with one member omitted, at any depth."""
    if isinstance(value, dict | Pairs):
        kind: Any = type(value)
        pairs = list(value.items() if isinstance(value, dict) else value)
        for at, (key, of) in enumerate(pairs):
            yield kind(pairs[:at] + pairs[at + 1 :])
            yield from (kind([*pairs[:at], (key, less), *pairs[at + 1 :]]) for less in smaller(of))
    elif isinstance(value, list):
        for at, of in enumerate(value):
            yield value[:at] + value[at + 1 :]
            yield from ([*value[:at], less, *value[at + 1 :]] for less in smaller(of))
