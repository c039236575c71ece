"""Valid tokens in memory: every request needs one, and each agent has its own."""

from collections.abc import Iterable
from typing import Generic, TypeVar

__all__ = ["TokenCache"]

T = TypeVar("T")


class TokenCache(Generic[T]):
    """Tokens by the SHA-256 of their secrets; beyond the limit the first loaded is dropped.

    A token may end while it is being loaded. So `drop` and `clear` count: a load remembers `drops`
    when it begins, and `add` ignores a token whose load began before the last drop.
    """

    def __init__(self, tokens_max: int) -> None:
        self.tokens_max = tokens_max
        self.drops = 0
        self._tokens: dict[str, T] = {}

    def __len__(self) -> int:
        return len(self._tokens)

    def get(self, digest: str) -> T | None:
        """Return the token whose secret has this SHA-256; None if it is not cached."""
        return self._tokens.get(digest)

    def add(self, digest: str, token: T, drops: int) -> None:
        """Cache a token, unless a token was dropped since `drops` was read."""
        if drops != self.drops:
            return
        if len(self._tokens) >= self.tokens_max:
            del self._tokens[next(iter(self._tokens))]
        self._tokens[digest] = token

    def drop(self, digests: Iterable[str]) -> None:
        """Drop the tokens of these hashes, which were revoked or rotated."""
        self.drops += 1
        for digest in digests:
            self._tokens.pop(digest, None)

    def clear(self) -> None:
        """Drop all tokens."""
        self.drops += 1
        self._tokens.clear()
