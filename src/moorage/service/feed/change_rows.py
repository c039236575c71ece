"""Change rows: read as whole batches of one history, and shown as the native API shows them."""

from collections.abc import AsyncGenerator, Callable, Collection
from dataclasses import is_dataclass
from datetime import datetime
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from moorage.core.ledger.model import Inventory
from moorage.service.values import seconds_of, time_of
from moorage.store import changelog
from moorage.store.api import Engine
from moorage.store.changelog import WHOLE, Tail
from moorage.wire import admission
from moorage.wire.changes import VALUES, PoolSpecValue


class ChangesGone(Exception):
    """The change rows do not continue from this revision: a new snapshot is needed."""


async def tails(
    engine: Engine, revision: int, kinds: Collection[str]
) -> AsyncGenerator[Tail, None]:
    """Yield the changes of these kinds after a revision, some rows at a time, oldest first.

    Every batch is complete: one that a window of rows cuts is yielded with the next window. Yields
    at least once. Raises ChangesGone: the next window does not continue the last one's history.
    """
    place: tuple[int, int] | None = (revision, WHOLE)
    cut: list[changelog.Batch] = []
    while place is not None:
        tail = await engine.look(changelog.changes_load(*place, kinds=kinds))
        if cut and tail.at != cut[0].at:
            raise ChangesGone
        if cut and tail.batches and tail.batches[0].revision == cut[0].revision:
            cut[0].extend(tail.batches.pop(0))
        tail.batches[:0] = cut
        cut = [tail.batches.pop()] if tail.place is not None else []
        place = tail.place
        yield tail


STORED_IN_MICROSECONDS = admission.DURATIONS | {
    *("interval", "jitter", "idle", "half_life", "preemptible", "lead", "no_show")
}
"""Members that are returned in seconds."""


Teller = Callable[[Any], Any]


def value_of(kind: str, body: str) -> Any:
    """Convert the value of a change row to its wire form."""
    return _teller_of(kind)(_stored(kind, body))


def _stored(kind: str, body: str) -> Any:
    """Decode a body; the members that a stored inventory omits have their defaults."""
    if kind == "inventory":
        return msgspec.structs.asdict(msgspec.json.decode(body, type=Inventory))
    return msgspec.json.decode(body)


def pool_spec_of(kept: Any) -> Any:
    """Convert a pool's stored specification to its wire form; None stays None."""
    return None if kept is None else _pool_spec(kept)


@cache
def _teller_of(kind: str) -> Teller:
    return _teller(VALUES[kind])


def _teller(hint: Any) -> Teller:
    """Return the function that converts a stored value to this type."""
    if hint is datetime:
        return time_of
    if is_dataclass(hint):
        members = [
            (name, seconds_of if name in STORED_IN_MICROSECONDS else _teller(inner))
            for name, inner in get_type_hints(hint).items()
        ]
        return lambda kept: {name: tell(kept.get(name)) for name, tell in members}
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is dict:
        below = _teller(arguments[1])
        return lambda kept: {key: below(one) for key, one in kept.items()}
    if origin is list:
        inner = _teller(arguments[0])
        return lambda kept: [inner(one) for one in kept]
    if origin in (Union, UnionType) and type(None) in arguments:
        (other,) = (one for one in arguments if one is not type(None))
        inner = _teller(other)
        return lambda kept: None if kept is None else inner(kept)
    return _same


def _same(kept: Any) -> Any:
    return kept


_pool_spec = _teller(PoolSpecValue)
