"""Who books: clients for themselves, and operators, who also close units; see `bookings.py`."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from msgspec import structs

from moorage.core.admission.booking_model import Booking
from moorage.core.admission.model import Need, PoolSpec
from moorage.core.clock import HOUR, SECOND
from moorage.core.ids import BookingId
from tests.simulation.admission import calls as do
from tests.simulation.admission.server import Booked

Steps = Generator[Any, Any, Any]


def specs_of(random: Random, plain: dict[str, PoolSpec]) -> dict[str, PoolSpec]:
    """Return pools of which most can be booked, because their leases end."""
    found = dict(plain)
    for name, spec in plain.items():
        if spec.cohort is None and random.random() < 0.85:
            hold = spec.hold or random.choice([None, 4 * SECOND, 8 * SECOND, 8 * SECOND])
            hours = random.choice([None, 1, 1, 1])
            ahead = None if hours is None else HOUR
            found[name] = structs.replace(spec, hold=hold, book_ahead=ahead, book_hours=hours)
    return found


def needs_of(random: Random, specs: dict[str, PoolSpec], *, closes: bool = False) -> list[Need]:
    """Return what somebody books; nothing, if nothing can be booked."""
    names = sorted(name for name, spec in specs.items() if spec.cohort is None)
    if not names:
        return []
    chosen = random.sample(names, min(len(names), random.choice([1, 1, 2])))
    alone = [name for name in chosen if specs[name].fair_share is not None]
    found = []
    for name in sorted(alone[:1] or chosen):
        spec = specs[name]
        most = min(spec.limit or 2, spec.quota or 9)
        units = random.randrange(1, most + 1)
        found.append(Need(name, 0 if closes and random.random() < 0.5 else units))
    return found


def windows_of(random: Random, wall: int) -> tuple[do.Span, ...]:
    """Return when, by the wall clock: soon, and perhaps once or twice more."""
    start = wall + random.randrange(25 * SECOND)
    found = []
    for _ in range(random.choice([1, 1, 2, 3])):
        end = start + random.randrange(2 * SECOND, 15 * SECOND)
        found.append((start, end))
        start = end + random.randrange(10 * SECOND)
    return tuple(found)


def book(random: Random, owner: str, key: str, needs: list[Need], wall: int) -> do.Book:
    """Return a request for a booking."""
    return do.Book(
        owner=owner,
        key=key,
        needs=tuple(needs),
        windows=windows_of(random, wall),
        lead=random.choice([0, 0, 2 * SECOND]),
        no_show=random.choice([None, SECOND, 4 * SECOND]),
    )


@dataclass
class Booker:
    """The bookings of one client."""

    random: Random
    specs: dict[str, PoolSpec]
    now: Callable[[], int]
    """The wall clock."""
    known: list[tuple[BookingId, tuple[Need, ...]]]
    """Bookings of all clients: some try to use those of others."""
    count: int = 0

    def books(self, name: str, owner: str) -> Steps:
        """Book, and return at about the time for which it is; None: it will not be used."""
        needs = needs_of(self.random, self.specs)
        if self.known and self.random.random() < 0.12:
            return self.random.choice(self.known[-3:])
        if not needs or self.random.random() < 0.5:
            return None
        self.count += 1
        wanted = book(self.random, owner, f"{name}/{self.count}", needs, self.now())
        answer = yield wanted
        if not isinstance(answer, Booked) and self.random.random() < 0.5:
            answer = yield wanted  # the answer may have been lost
        if not isinstance(answer, Booked):
            return None
        self.known.append((answer.id, wanted.needs))
        what, windows = self.random.random(), wanted.windows
        if what < 0.15:
            windows = windows_of(self.random, self.now())
            changed = do.Rebook(answer.id, owner, tuple(needs_of(self.random, self.specs)), windows)
            if isinstance((yield changed), Booked):
                wanted = replace(wanted, needs=changed.needs)
        elif what < 0.25:
            yield do.Unbook(answer.id, self.random.choice([owner, f"not {owner}"]))
        if self.random.random() < 0.2:
            return None  # nobody comes
        start, _ = self.random.choice(windows)
        yield max(1, start - self.now() + self.random.randrange(-3 * SECOND, 5 * SECOND))
        return answer.id, wanted.needs


def ask(random: Random, plain: do.Ask, booked: tuple[BookingId, tuple[Need, ...]]) -> do.Ask:
    """Return a request for units of a booking."""
    key, needs = booked
    part = tuple(structs.replace(need, units=random.randrange(1, need.units + 1)) for need in needs)
    return replace(plain, needs=part, any_of=(), booking=key, borrow=None, forced=False)


def operators(
    random: Random,
    specs: dict[str, PoolSpec],
    now: Callable[[], int],
    live: Callable[[], list[Booking]],
    is_faulty: Callable[[], bool],
) -> Steps:
    """Close units, book for others, change and cancel; in the end cancel all."""
    count = 0
    while is_faulty():
        yield random.randrange(12 * SECOND)
        count += 1
        there = live()
        what = random.randrange(5)
        if what < 2 and (needs := needs_of(random, specs, closes=what == 0)):
            call = book(random, f"owner-{random.randrange(2)}", f"by {count}", needs, now())
            forced = random.random() < 0.3
            yield replace(call, closure=what == 0, forced=forced, operates=True)
        elif what == 2 and there:
            one = random.choice(there)
            yield do.Rebook(one.id, None, one.needs, windows_of(random, now()))
        elif what == 3 and there:
            yield do.Unbook(random.choice(there).id, None)
    yield 30 * SECOND  # so that nothing old comes after it
    while there := live():
        for one in there:
            yield do.Unbook(one.id, None)
