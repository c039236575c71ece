"""The queue before the transactor: what agents send gives way to claims.

After an outage thousands of agents register at once. They wait behind all other requests, but each
batch has room for a few of them, so that they advance under any load. They may fill only a part of
the queue: beyond it they are refused, and others are not.
"""

from collections import deque
from collections.abc import Iterable

from moorage.core.errors import Code, Error
from moorage.service.batch.batch import BATCH_MAX, Item

BATCH_KEYS_MAX = 2_000
"""Most rows that the requests of one batch load together; a larger request runs alone."""

PATIENT_LEAST = 4
"""Places of a batch that other requests leave to patient ones."""

PATIENT_MAX = 16
"""Most patient requests of one batch: a claim that has just missed it does not wait for long."""

PATIENT_PERCENT = 50
"""The share of the queue that patient requests may fill."""


class RequestQueue:
    """Requests in the order of their arrival; the patient ones in a lane of their own."""

    def __init__(self, most: int) -> None:
        """Create it; `most`: the limit, setting `queue_max`."""
        self._most = most
        self._prompt: deque[Item] = deque()
        self._patient: deque[Item] = deque()

    def __len__(self) -> int:
        return len(self._prompt) + len(self._patient)

    def add(self, item: Item) -> None:
        """Add a request. Raises `Error`: OVERLOADED, the queue is full."""
        if len(self._prompt) + len(self._patient) >= self._most:
            raise _full(f"{self._most} requests are waiting already")
        if not item.work.patient:
            self._prompt.append(item)
        elif 100 * len(self._patient) < PATIENT_PERCENT * self._most:
            self._patient.append(item)
        else:
            raise _full(f"{len(self._patient)} requests of agents are waiting already")

    def put_back(self, items: Iterable[Item]) -> None:
        """Put requests first again, in their order."""
        for item in reversed([*items]):
            (self._patient if item.work.patient else self._prompt).appendleft(item)

    def take(self) -> list[Item]:
        """Remove and return the requests of the next batch whose callers still wait."""
        batch: list[Item] = []
        kept = min(PATIENT_LEAST, len(self._patient))
        rows = _fill(batch, self._prompt, BATCH_MAX - kept, 0)
        _fill(batch, self._patient, min(BATCH_MAX, len(batch) + PATIENT_MAX), rows)
        return batch

    def clear(self) -> list[Item]:
        """Remove and return all requests."""
        removed = [*self._prompt, *self._patient]
        self._prompt.clear()
        self._patient.clear()
        return removed


def _fill(batch: list[Item], lane: deque[Item], most: int, rows: int) -> int:
    """Move requests to a batch until it has `most`; return how many rows it loads."""
    while lane and len(batch) < most:
        item = lane[0]
        rows += len(item.keys.ledger)
        if batch and (item.work.alone or batch[-1].work.alone or rows > BATCH_KEYS_MAX):
            break
        lane.popleft()
        if not item.future.done():
            batch.append(item)
    return rows


def _full(why: str) -> Error:
    return Error(Code.OVERLOADED, f"{why} (setting queue_max); try again later.")
