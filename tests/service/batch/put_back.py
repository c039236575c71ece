"""A ledger whose snapshots are put back at random, and what was given out meanwhile.

A token belongs to one lease for ever. A cursor stands for one state of the ledger: whoever resumes
from it and is not refused has, after what it is told, exactly what there is.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from moorage.service.app import Service
from moorage.service.feed.watch import ChangesGoneError, Cursor
from moorage.service.ledger import vocabulary_cases
from moorage.store.changelog_pages import ChangeRow
from tests.service.pools import ask, spec
from tests.service.running import TESTER

POOL = "p"


class World(Protocol):
    """A database with services, which can be put back."""

    services: list[Service]

    async def snapshot(self) -> None:
        """Keep the state as it is."""
        ...

    async def put_back(self, n: int) -> None:
        """Put the n-th snapshot back."""
        ...

    async def again(self) -> None:
        """Let the services begin anew."""
        ...


@dataclass
class Book:
    """Everything that was ever given out."""

    choice: Random
    tokens: dict[tuple[int, ...], str] = field(default_factory=dict)
    cursors: dict[str, frozenset[str]] = field(default_factory=dict)
    count: int = 0
    refused: int = 0
    resumed: int = 0

    async def change(self, service: Service) -> None:
        """Make or delete a trait."""
        names = sorted(await held(service))
        if names and self.choice.random() < 0.3:
            await service.transactor.submit(vocabulary_cases.TraitDelete(self.choice.choice(names)))
        else:
            self.count += 1
            await service.transactor.submit(vocabulary_cases.TraitEnsure(f"CUSTOM_{self.count}"))

    async def grant(self, service: Service) -> None:
        """Be granted a lease; its token is higher than every token before."""
        self.count += 1
        lease = (await ask(service.admission, f"key-{self.count}", POOL)).lease
        assert lease.token is not None
        token = tuple(map(int, str(lease.token).split(".")))
        assert token not in self.tokens, f"token {token} was given out twice"
        assert all(token > other for other in self.tokens), f"token {token} is not the highest"
        self.tokens[token] = lease.id

    async def note(self, service: Service) -> None:
        """Be given a cursor for what there is."""
        while True:
            cursor = await service.watch.now()
            there = await held(service)
            if await service.watch.now() == cursor:
                break
        known = self.cursors.setdefault(str(cursor), there)
        assert known == there, f"cursor {cursor} was given out twice"

    async def resume(self, service: Service) -> None:
        """Resume from any cursor that was ever given out: refused, or nothing is missed."""
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
        assert mine == await held(service), f"whoever resumed from {text} has another ledger"


def follow(mine: set[str], row: ChangeRow) -> None:
    """Do what a change says."""
    if row.kind == "trait":
        if row.body is None:
            mine.discard(row.key)
        else:
            mine.add(row.key)


async def held(service: Service) -> frozenset[str]:
    """Return the traits of the ledger."""
    return frozenset((await service.index.current()).traits)


async def lived(world: World, seed: int, steps: int) -> Book:
    """Let a ledger live through so many steps of chance."""
    book = Book(Random(seed))
    await world.services[0].admission.pool_put(POOL, spec(limit=10_000), None, TESTER)
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
                await service.index.current()  # a process looks once a second, unasked
            await world.put_back(book.choice.randrange(snapshots))
        elif drawn < 0.23:
            await world.again()
        else:
            await book.choice.choice(acts)(book.choice.choice(world.services))
    return book
