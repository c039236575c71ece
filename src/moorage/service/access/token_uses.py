"""When tokens were last used: noted in memory at each request, written in portions now and then."""

from itertools import islice

from moorage.core.clock import HOUR, Instant

__all__ = ["TokenUses"]

USED_EVERY = HOUR
"""The minimum time between two recorded uses of a token."""

WRITTEN_MAX = 1_000
"""The most uses written at once: a batch of all agents' tokens would delay claims."""


class TokenUses:
    """Last uses of tokens, by their ids, of at most `tokens_max` tokens."""

    def __init__(self, tokens_max: int) -> None:
        self._tokens_max = tokens_max
        self._used: dict[str, Instant] = {}
        self._unwritten: dict[str, Instant] = {}

    def note(self, token_id: str, stored: Instant | None, now: Instant) -> None:
        """Note a use; `stored` is the last one in the database. Ignored within `USED_EVERY`."""
        last = self._used.get(token_id, stored)
        if last is not None and now - last < USED_EVERY:
            return
        if token_id not in self._used and len(self._used) >= self._tokens_max:
            first = next(iter(self._used))
            del self._used[first]
            self._unwritten.pop(first, None)
        self._used[token_id] = self._unwritten[token_id] = now

    def last(self, token_id: str) -> Instant | None:
        """Return the last use noted here; it may not have been written yet."""
        return self._used.get(token_id)

    def take(self) -> dict[str, Instant]:
        """Return uses to write, earliest first, at most `WRITTEN_MAX`; they count as written."""
        taken = dict(islice(self._unwritten.items(), WRITTEN_MAX))
        for token_id in taken:
            del self._unwritten[token_id]
        return taken

    def put_back(self, uses: dict[str, Instant]) -> None:
        """Count uses as not written, because writing them has failed."""
        self._unwritten = {**uses, **self._unwritten}
