"""The same work for many keys, some at once; the first error ends it."""

from collections.abc import Awaitable, Callable, Collection
from typing import Final, TypeVar

from moorage.integrations.bounded import run_bounded

K = TypeVar("K", bound=str)
V = TypeVar("V")

AT_ONCE: Final = 16
"""How many at once; requests to Nova have a lower bound of their own."""


async def together(
    keys: Collection[K], work: Callable[[K], Awaitable[V]], done: Callable[[], None] | None = None
) -> dict[K, V]:
    """Return the result for each key, in their order; `done` is called after each of them."""
    found: dict[K, V] = {}

    def of(key: K) -> Callable[[], Awaitable[None]]:
        async def one() -> None:
            found[key] = await work(key)
            if done is not None:
                done()

        return one

    await run_bounded(AT_ONCE, [of(key) for key in sorted(keys)])
    return found
