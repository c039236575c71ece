"""Random choices that can be repeated: seeds, and what all fuzzers do to a request."""

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol, TypeVar

from tests.e2e.support.hostile import garbled, hostile, mutated, written
from tests.e2e.support.peer import Answer, NoAnswer, Peer


@contextmanager
def seeded(usual: int | None = None) -> Iterator[int]:
    """Return the seed of MOORAGE_SEED, the default, or a new one; a failure prints it."""
    if usual is None:
        usual = random.SystemRandom().randrange(10**9)
    seed = int(os.environ.get("MOORAGE_SEED", usual))
    try:
        yield seed
    except BaseException as error:
        error.add_note(f"MOORAGE_SEED={seed}")
        raise


class Chance:
    """One random source. `WRONG` is the probability of a wrong thing in a body, and of another."""

    WRONG: ClassVar[float]

    def __init__(self, seed: object) -> None:
        self.choice = random.Random(repr(seed))

    def _rarely(self, share: float = 0.03) -> bool:
        return self.choice.random() < share

    def _wrong(self, body: Any) -> Any:
        """Return the body, sometimes with one or more things wrong."""
        while self._rarely(self.WRONG):
            body = mutated(self.choice, body)
        return body

    def _content(self, body: Callable[[], Any] | None) -> bytes | None:
        """Return what is sent as a body: usually the body, rarely one where none is expected."""
        content = written(self._wrong(body())) if body else None
        if content is not None and self._rarely(0.05):
            content = garbled(self.choice, content)
        if content is None and self._rarely(0.02):
            content = written(hostile(self.choice))
        return content


class Request(Protocol):
    """A request of a fuzzer."""

    @property
    def what(self) -> str:
        """Which call it is."""
        ...

    @property
    def bytes(self) -> bytes:
        """The bytes that are sent."""
        ...


S = TypeVar("S", bound=Request)


async def judged(
    peer: Peer,
    sent: S,
    complaint: Callable[[S, Answer], str],
    learn: Callable[[S, Answer], None],
    seen: Counter[str],
) -> None:
    """Send a request; fail if its answer is wrong, otherwise learn from it and count."""
    try:
        answer = await peer.send(sent.bytes)
        wrong = complaint(sent, answer)
        learn(sent, answer)
    except (NoAnswer, TimeoutError, ValueError, KeyError) as error:
        error.add_note(f"sent: {sent.bytes[:5_000]!r}")
        raise
    assert not wrong, f"{wrong}: {answer} to {sent.bytes[:5_000]!r}"
    seen[f"{answer.status // 100}xx"] += 1
    if answer.status < 300:
        seen[sent.what] += 1
