"""A ledger whose snapshots are restored at random, and a record of its tokens and cursors.

A token belongs to one lease for ever. A cursor stands for one state of the ledger: a reader that
resumes from it and is not refused knows the exact state after the changes that it gets.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from moorage.service.app import Service
from moorage.service.feed.watch import ChangesGoneError, Cursor
from moorage.service.ledger import vocabulary_cases
from moorage.store.changelog import ChangeRow
from tests.service.pools import ask, pool_put, spec

POOL = "p"


class World(Protocol):
    """A database with services that can be restored to earlier states."""

    services: list[Service]

    async def snapshot(self) -> None:
        """Save the current state."""
        ...

    async def put_back(self, n: int) -> None:
        """Restore the n-th snapshot."""
        ...

    async def again(self) -> None:
        """Restart the services."""
        ...


@dataclass
class Book:
    """A record of all tokens and cursors that were ever issued."""

    choice: Random
    tokens: dict[tuple[int, ...], str] = field(default_factory=dict)
    cursors: dict[str, frozenset[str]] = field(default_factory=dict)
    count: int = 0
    refused: int = 0
    resumed: int = 0

    async def change(self, service: Service) -> None:
        """Create or delete a trait."""
        names = sorted(await traits_of(service))
        if names and self.choice.random() < 0.3:
            await service.transactor.submit(vocabulary_cases.TraitDelete(self.choice.choice(names)))
        else:
            self.count += 1
            await service.transactor.submit(vocabulary_cases.TraitEnsure(f"CUSTOM_{self.count}"))

    async def grant(self, service: Service) -> None:
        """Get a lease granted; its token must be higher than every token before."""
        self.count += 1
        lease = (await ask(service.admission, f"key-{self.count}", POOL)).lease
        assert lease.token is not None
        token = tuple(map(int, str(lease.token).split(".")))
        assert token not in self.tokens, f"token {token} was issued twice"
        assert all(token > other for other in self.tokens), f"token {token} is not the highest"
        self.tokens[token] = lease.id

    async def note(self, service: Service) -> None:
        """Get a cursor for the current state."""
        while True:
            cursor = await service.watch.now()
            there = await traits_of(service)
            if await service.watch.now() == cursor:
                break
        known = self.cursors.setdefault(str(cursor), there)
        assert known == there, f"cursor {cursor} was issued twice"

    async def resume(self, service: Service) -> None:
        """Resume from any issued cursor: it must be refused, or nothing may be missed."""
        if not self.cursors:
            return
        given = list(self.cursors)
        text = self.choice.choice(self.choice.choice((given, given[-3:])))
        cursor, mine = Cursor.parse(text), set(self.cursors[text])
        try:
            while True:
                window = await service.watch.window(cursor)
                for one in window.changes:
                    follow(mine, one.row)
                cursor = window.next
                if not window.cut:
                    break
        except ChangesGoneError:
            self.refused += 1
            return
        self.resumed += 1
        assert mine == await traits_of(service), (
            f"a reader that resumed from {text} has another ledger"
        )


def follow(mine: set[str], row: ChangeRow) -> None:
    """Apply a change row."""
    if row.kind == "trait":
        if row.body is None:
            mine.discard(row.key)
        else:
            mine.add(row.key)


async def traits_of(service: Service) -> frozenset[str]:
    """Return the traits of the ledger."""
    return frozenset((await service.index.current()).traits)


async def run_steps(world: World, seed: int, steps: int) -> Book:
    """Execute `steps` random steps on a ledger."""
    book = Book(Random(seed))
    await pool_put(world.services[0].admission, POOL, spec(limit=10_000))
    snapshots = 0
    acts: list[Callable[[Service], Awaitable[None]]] = [
        *(book.change, book.change, book.change),
        *(book.grant, book.note, book.note, book.resume, book.resume),
    ]
    for step in range(steps):
        drawn = book.choice.random()
        if step == 5 or drawn < 0.1:
            await world.snapshot()
            snapshots += 1
        elif snapshots and drawn < 0.2:
            for service in world.services:
                await service.index.current()  # a process reads the changes once a second anyway
            await world.put_back(book.choice.randrange(snapshots))
        elif drawn < 0.23:
            await world.again()
        else:
            await book.choice.choice(acts)(book.choice.choice(world.services))
    return book
