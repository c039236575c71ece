"""At every revision each node has at most one writer, and it is the owner: the changes witness it.

Members join, die, are replaced by new instances, and go on as if nothing had happened; nodes are
pinned; all report the same nodes at two services at the same time. Each report writes totals of its
own, so each change shows who made it.
"""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from moorage.core.errors import Code, Error
from moorage.core.ids import ProviderId
from moorage.core.ledger.facts import Changes
from moorage.service.fleet.reporter_cases import Leave, PinNodes
from moorage.store.changelog import WHOLE, changes_load
from moorage.wire import rendezvous
from tests.service.fleet.pair import Pair, play, refused
from tests.service.fleet.reporters.reporting import GROUP, join, node, report, silence
from tests.service.running import TESTER, provider_id

MEMBERS = ("a", "b", "c")
NODES = 12
ROUNDS = 14
KINDS = ("inventory", "reporter", "pin")


@dataclass
class Walk:
    """What the members do at random, and who has written which total."""

    pair: Pair
    random: Random
    totals: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Member and token by the total that they reported."""
    tokens: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """All instances of each member, with their tokens; even the fenced ones go on."""
    silences: list[tuple[int, str]] = field(default_factory=list)
    """After which revision a member was silent."""
    accepted: set[int] = field(default_factory=set)
    """The totals that are written by the answer of a report."""
    instances: int = 0

    async def joins(self, member: str) -> None:
        """Start a new instance."""
        self.instances += 1
        number = self.instances
        service = self.random.choice(self.pair.services)
        try:
            found = await join(service, member, number)
        except Error as error:  # it has left in the same batch
            assert error.code == "fenced"
            return
        self.tokens.setdefault(member, []).append((number, found.member.token))

    async def reports(self, member: str) -> None:
        """Report all nodes as some instance of the member, perhaps a fenced one."""
        if member not in self.tokens:
            return
        _, token = self.random.choice(self.tokens[member][-2:])
        total = len(self.totals) + 1
        self.totals[total] = (member, token)
        service = self.random.choice(self.pair.services)
        try:
            answers = await report(service, member, token, [node(n, total) for n in range(NODES)])
        except Error as error:
            assert error.code == "fenced"
            return
        if any(answer.outcome in ("created", "updated") for answer in answers):
            self.accepted.add(total)

    async def leaves(self, member: str) -> None:
        """Leave in order."""
        await self.random.choice(self.pair.services).transactor.submit(Leave(GROUP, member, None))

    async def pins(self) -> None:
        """Pin some nodes, or remove their pins."""
        picked = [provider_id(n) for n in self.random.sample(range(NODES), 3)]
        member = self.random.choice((*MEMBERS, None))
        await self.random.choice(self.pair.services).transactor.submit(
            PinNodes(GROUP, picked, member, TESTER)
        )

    async def falls_silent(self) -> None:
        """Let one member be silent; nothing else happens meanwhile."""
        member = self.random.choice(MEMBERS)
        await silence(self.pair.services[0], member)
        self.silences.append((await self.pair.revision(), member))

    async def round(self) -> None:
        """Do several things at the same time."""
        doing: list[Any] = [self.reports(self.random.choice(MEMBERS)) for _ in range(6)]
        doing += [self.joins(self.random.choice(MEMBERS)) for _ in range(self.random.randrange(2))]
        if self.random.random() < 0.3:
            doing.append(self.leaves(self.random.choice(MEMBERS)))
        if self.random.random() < 0.5:
            doing.append(self.pins())
        self.random.shuffle(doing)
        await asyncio.gather(*doing)
        if self.random.random() < 0.4:
            await self.falls_silent()


@dataclass
class Ownership:
    """Who owns the nodes, by the change rows up to a revision."""

    tokens: dict[str, str] = field(default_factory=dict)
    live: set[str] = field(default_factory=set)
    pinned: dict[str, str] = field(default_factory=dict)

    def apply(self, kind: str, key: str, body: str | None) -> None:
        """Follow a change row."""
        name = key.split("/")[1]
        if kind == "pin":
            if body is None:
                self.pinned.pop(name, None)
            else:
                self.pinned[name] = json.loads(body)
        elif body is None:
            self.tokens.pop(name, None)
            self.live.discard(name)
        else:
            self.tokens[name] = json.loads(body)["token"]
            self.live.add(name)

    def may_write(self, uuid: ProviderId, member: str, token: str) -> bool:
        """May this member with this token write the node?"""
        owner = rendezvous.owner(uuid, self.live, self.pinned.get(uuid))
        return owner == member and self.tokens.get(member) == token


async def _batches(pair: Pair) -> list[tuple[int, Changes, list[tuple[str, str, str | None]]]]:
    """Read all change rows."""
    engine = pair.services[0].engine
    found = []
    place: tuple[int, int] | None = (0, WHOLE)
    while place is not None:
        tail = await engine.look(changes_load(*place, kinds=KINDS))
        found += [(batch.revision, batch.ledger, batch.others) for batch in tail.batches]
        place = tail.place
    return found


def _written(changes: Changes) -> Iterator[tuple[ProviderId, int]]:
    for (uuid, _), inventory in changes.inventories.items():
        if inventory is not None:
            yield uuid, inventory.total


async def witnessed(walk: Walk) -> None:
    """Check every change of a node against who owned it at that revision."""
    owners, silences = Ownership(), list(walk.silences)
    seen: set[int] = set()
    for revision, changes, others in await _batches(walk.pair):
        while silences and silences[0][0] < revision:
            owners.live.discard(silences.pop(0)[1])
        written = list(_written(changes))
        before = {
            (uuid, total): owners.may_write(uuid, *walk.totals[total]) for uuid, total in written
        }
        for row in others:
            owners.apply(*row)
        for uuid, total in written:
            # Within one batch, a member may report before or after another one takes over.
            after = owners.may_write(uuid, *walk.totals[total])
            assert before[uuid, total] or after, (revision, uuid, walk.totals[total], owners)
            seen.add(total)
    assert seen <= walk.accepted


@pytest.mark.parametrize("seed", range(6))
def test_one_writer_at_every_revision(url: str, seed: int) -> None:
    """Whatever the members do, and however services restart."""

    async def scenario(pair: Pair) -> None:
        walk = Walk(pair, Random(seed))
        await walk.joins("a")
        for number in range(ROUNDS):
            await walk.round()
            if number == ROUNDS // 2:
                await pair.end()
                await pair.start()
        for member in MEMBERS:
            await walk.joins(member)
        await walk.round()
        await witnessed(walk)
        assert walk.accepted

    play(url, scenario)


def test_a_restore_renews_tokens(url: str) -> None:
    """In a new epoch each member gets a new token when it joins; what it sent before is late."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.services
        old = (await join(one, "a")).member.token
        await other.operations.epoch_raise(by=TESTER)
        new = (await join(one, "a")).member.token
        assert new.split(".")[1] == "2"
        assert new != old
        with refused(Code.FENCED):
            await report(other, "a", old, [node(0)])
        assert (await join(other, "a")).member.token == new
        await report(other, "a", new, [node(0)])

    play(url, scenario)
