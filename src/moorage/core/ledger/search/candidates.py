"""One query for allocation candidates, from start to end: `searched`.

Each anchor gives its first candidate, then each its second, and so on (`RoundRobin`).
The search can be interrupted, and the catalog may change in between. The candidates of an anchor
are as of the time when it was opened. A tree that is rearranged during a search may be missing from
the answer, but no candidate appears twice.
"""

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from moorage.core.ids import ProviderId
from moorage.core.ledger.model import ProviderRecord
from moorage.core.ledger.requests import CandidateAnswer, CandidateQuery, Pick, Start
from moorage.core.ledger.search.anchors import Search
from moorage.core.ledger.search.budget import Budget
from moorage.core.ledger.search.catalog.catalog import Catalog
from moorage.core.ledger.search.catalog.chunk import Chunk
from moorage.core.ledger.search.compact_candidates import Picks
from moorage.core.ledger.search.steps import Steps

PIECE_CANDIDATES = 1_000
"""Candidates or providers that are sorted in one piece."""


OPENING_STEPS_MAX = 200_000
"""The most steps of opening all anchors that are open; they use about 50 MB.

Further anchors are closed after their first candidate, and opened again when others are finished.
"""


_NO_PICK: Pick = ()
"""An anchor has no more candidates."""


class _Anchor(NamedTuple):
    """An anchor that has given candidates and may have more."""

    left: Iterator[Pick | None]
    """None: a pause is due."""
    steps: int
    """Steps up to its first candidate."""
    place: Start
    wrapped: bool
    """Whether it is before the place where the search started."""


class _Closed(NamedTuple):
    """An anchor that has given one candidate, and was closed because too many were open."""

    first: Pick
    members: list[ProviderId]
    """The members of its tree, the root first."""
    place: Start
    wrapped: bool


class _Visited:
    """Visited anchors of one chunk, and a copy of the chunk: 16 bytes per row."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self._records = chunk.records.copy()
        self._root = chunk.trees.root.copy()
        self.anchors: list[memoryview] = []

    def members(self) -> list[ProviderId]:
        """Return all members of the trees of the anchors, as of the visit."""
        chosen = np.zeros(len(self._root), dtype=np.bool_)
        for rows in self.anchors:
            chosen[np.asarray(rows)] = True
        found = chosen[self._root].nonzero()[0].tolist()
        return [record.provider.uuid for row in found if (record := self._records[row]) is not None]


class RoundRobin:
    """One search, from its start until it has found enough: drive `run`.

    Args:
        catalog: The providers; it may change between two steps of `run`.
        search: The query over this catalog.
        nested: Whether summaries are of whole trees.
        wanted: Candidates after which it ends.
        sure: Whether it counts as cut only if there is another anchor or candidate.
    """

    def __init__(
        self, catalog: Catalog, search: Search, nested: bool, wanted: int, sure: bool
    ) -> None:
        self._catalog = catalog
        self._search = search
        self._budget = search.budget
        self._nested = nested
        self._wanted = wanted
        self._sure = sure
        self.found: list[Pick] = []
        self.shown: dict[ProviderId, ProviderRecord] = {}
        """The providers in summaries, as of the time when a candidate was found there."""
        self.then: Start | None = None
        """Where the search was cut; None: it was completed."""
        self.spans: list[tuple[int, int]] = []
        """By round: the index of its first candidate, and of the first one before the start."""
        # A group without resources takes nothing from its provider.
        giving = [number for number, term in enumerate(search.terms) if term.resources]
        self._givers = giving if len(giving) < len(search.terms) else None
        self._open: list[_Anchor] = []
        self._closed: deque[_Closed] = deque()
        self._opening_steps = 0
        self._budget.rested()
        self._applied = catalog.applied
        self._changed = False
        self._visited: set[ProviderId] = set()
        """The members of all trees that were visited before the last change."""
        self._recent: list[tuple[Chunk, memoryview]] = []
        """The anchors that were visited since the last pause."""
        self._rested: list[_Visited] = []
        """The anchors that were visited before that pause, since the last change."""

    def run(self, start: Start) -> Iterator[None]:
        """Search; the caller may do other work, or stop, wherever this yields."""
        for _ in self._search.beginning():
            if self._budget.is_rest_due:
                yield
                self._budget.rested()
        self._applied = self._catalog.applied
        yield from self._first_round(start)
        while self.then is None and (self._open or self._closed):
            if not self._open:
                yield from self._open_again()
            yield from self._next_round()

    def _first_round(self, start: Start) -> Iterator[None]:
        """Visit all anchors once, from the start to the end, then from the first row."""
        chunks = list(self._catalog.chunks)
        if not chunks:
            self.spans.append((0, 0))
            return
        first = start.chunk % len(chunks)
        most = self._search.prospects()
        # In other chunks nothing can be found.
        likely = np.flatnonzero(most)
        if start.skip and len(likely):
            # A random start is drawn from the rows that may serve, even if few chunks have any.
            ends = most.cumsum()
            first = int(ends.searchsorted(start.chunk % int(ends[-1]), side="right"))
        low, high = likely.searchsorted((first, first + 1))
        row = self._row_of(start, chunks[first]) if low < high else 0
        for wrapped, numbers in ((False, likely[low:]), (True, likely[:high])):
            if wrapped:
                self.spans.append((0, len(self.found)))
            for number in numbers.data:
                span = (0, None) if number != first else (0, row) if wrapped else (row, None)
                if span[1] == 0:
                    continue  # the search started at the first row of this chunk
                yield from self._visit(chunks[number], number, span, wrapped)
                if self.then is not None:
                    return

    def _row_of(self, start: Start, chunk: Chunk) -> int:
        """Return the first row to visit in the chunk where the search starts."""
        if not start.skip:
            return start.row
        rows = self._rows(chunk, (0, None))
        if not rows:
            return 0
        return rows[(int(np.searchsorted(rows, start.row)) + start.skip) % len(rows)]

    def _visit(
        self, chunk: Chunk, number: int, span: tuple[int, int | None], wrapped: bool
    ) -> Iterator[None]:
        """Take one candidate of each anchor in some rows of a chunk."""
        budget = self._budget
        rows, at = self._rows(chunk, span), 0
        together = self._search.takes_lone()
        while at < len(rows):
            row = rows[at]
            place = Start(number, row)
            if len(self.found) == self._wanted:
                self.then = place
                return
            # After a change, part of a tree may have been searched before.
            taken = self._take_lone(chunk, rows[at:]) if together and not self._changed else 0
            at += taken or 1
            if taken:
                row = rows[at - 1]
                place = Start(number, row)
            elif not self._take_only(chunk, row):
                applied = self._applied
                if (yield from self._take_first(chunk, place, wrapped, rows[:at])):
                    changed = self._applied != applied
                    rows, at = (self._rows(chunk, (row + 1, span[1])) if changed else rows[at:]), 0
            if budget.over or (len(self.found) == self._wanted and not self._sure):
                self.then = _after(place)
                return
            if budget.steps >= budget.pause_at:
                self._recent.append((chunk, rows[:at]))
                changed = yield from self._rest()
                rows, at = (self._rows(chunk, (row + 1, span[1])) if changed else rows[at:]), 0
        self._recent.append((chunk, rows))
        yield from self._rest()
        self._search.forget(chunk)

    def _rows(self, chunk: Chunk, span: tuple[int, int | None]) -> memoryview:
        """Return the anchors in some rows of a chunk; a small search reads only a few of them."""
        rows = self._search.anchor_rows(chunk)
        low, high = span
        if low or high is not None:
            end = None if high is None else rows.searchsorted(high)
            rows = rows[rows.searchsorted(low) : end]
        return rows.data

    def _take_lone(self, chunk: Chunk, rows: memoryview) -> int:
        """Take the only candidates of the first anchors among these; return how many were taken.

        As `_take_only` for one after another, up to the next tree, the next pause or the end.
        """
        budget = self._budget
        left = min(budget.pause_at, budget.whole + 1) - budget.steps
        count = max(0, min(len(rows), self._wanted - len(self.found), left))
        count = chunk.trees.lone_among(rows[:count])
        records = [record for row in rows[:count] if (record := chunk.records[row]) is not None]
        uuids = [record.provider.uuid for record in records]
        terms = len(self._search.terms)
        budget.steps += count
        self.found += [(uuid,) * terms for uuid in uuids]
        self.shown.update(zip(uuids, records, strict=True))
        return count

    def _take_only(self, chunk: Chunk, row: int) -> bool:
        """Take the only candidate of an anchor; False: the anchor must be opened."""
        if self._changed and not self._visited.isdisjoint(members_at(chunk, row)):
            return True  # the tree has been rearranged: part of it was searched before
        only = self._search.single(chunk, row)
        if only is None:
            return False
        self._budget.steps += 1
        self.found.append(only)
        record = chunk.record(row)
        self.shown[record.provider.uuid] = record
        return True

    def _take_first(
        self, chunk: Chunk, place: Start, wrapped: bool, visited: memoryview
    ) -> Generator[None, None, bool]:
        """Take the first candidate of an anchor, and keep the anchor open if it may have more.

        Returns whether it paused. `visited`: the rows of the chunk up to this one that were visited
        since the last pause.
        """
        before, members = self._budget.steps, None
        left = self._search.picks(chunk, place.row)
        first = next(left, _NO_PICK)
        if first is None:
            # The tree may change while it is being opened.
            members = members_at(chunk, place.row)
            self._recent.append((chunk, visited))
            first = yield from self._further(left)
        rested = members is not None
        if first and self._add(first):
            steps = self._budget.steps - before
            if self._opening_steps + steps > OPENING_STEPS_MAX:
                members = members or members_at(chunk, place.row)
                self._closed.append(_Closed(first, members, place, wrapped))
            else:
                self._opening_steps += steps
                self._open.append(_Anchor(left, steps, place, wrapped))
        return rested

    def _next_round(self) -> Iterator[None]:
        """Take one more candidate from each open anchor."""
        found, budget = self.found, self._budget
        began, turn = len(found), -1
        anchors, self._open = self._open, []
        for anchor in anchors:
            if anchor.wrapped and turn < 0:
                turn = len(found)
            full = len(found) == self._wanted
            pick = _NO_PICK if full and not self._sure else next(anchor.left, _NO_PICK)
            if pick is None:
                pick = yield from self._further(anchor.left)
            if full and (pick or not self._sure):
                self.then = anchor.place
                return
            if not pick or not self._add(pick):
                self._opening_steps -= anchor.steps
            else:
                self._open.append(anchor)
            if budget.steps >= budget.pause_at:
                if budget.over:
                    self.then = _after(anchor.place)
                    return
                yield from self._rest()
        self.spans.append((began, len(found) if turn < 0 else turn))

    def _open_again(self) -> Iterator[None]:
        """Open as many closed anchors as may be open at the same time."""
        while self._closed and not (self._open and self._opening_steps >= OPENING_STEPS_MAX):
            closed = self._closed.popleft()
            place = self._catalog.places.get(closed.members[0])
            if place is None or members_at(*place) != closed.members:
                continue  # the tree has been rearranged meanwhile
            if self._changed and place[1] not in self._rows(place[0], (0, None)):
                continue
            before = self._budget.steps
            left = self._search.picks(*place)
            first = next(left, _NO_PICK)
            if first is None:
                first = yield from self._further(left)
            if not first:
                continue
            steps = self._budget.steps - before
            self._opening_steps += steps
            left = _without(closed.first, chain((first,), left))
            self._open.append(_Anchor(left, steps, closed.place, closed.wrapped))
            yield from self._rest()

    def _further(self, left: Iterator[Pick | None]) -> Generator[None, None, Pick]:
        """Pause until an anchor has its next candidate; empty: it has none."""
        while True:
            yield from self._rest()
            pick = next(left, _NO_PICK)
            if pick is not None:
                return pick

    def _add(self, pick: Pick) -> bool:
        """Keep a candidate; False: part of it no longer exists."""
        shown, places = self.shown, self._catalog.places
        if self._changed and not all(uuid in shown or uuid in places for uuid in pick):
            return False
        for uuid in self.giving(pick):
            if uuid not in shown:
                self._show(uuid)
        self._budget.steps += 1
        self.found.append(pick)
        return True

    def giving(self, pick: Pick) -> Iterable[ProviderId]:
        """Return the providers that give resources in a candidate."""
        return pick if self._givers is None else [pick[number] for number in self._givers]

    def _show(self, uuid: ProviderId) -> None:
        """Add a provider or, with a nested query, its whole tree to the summaries."""
        chunk, row = self._catalog.places[uuid]
        if not self._nested:
            self.shown[uuid] = chunk.record(row)
            return
        members = chunk.trees.members(int(chunk.trees.root[row]))
        self._budget.steps += len(members)
        for member in members:
            record = chunk.record(member)
            self.shown.setdefault(record.provider.uuid, record)

    def _rest(self) -> Generator[None, None, bool]:
        """Pause if a pause is due; return whether the catalog has changed meanwhile."""
        if not self._budget.is_rest_due:
            return False
        for chunk, rows in self._recent:
            # The visited members are computed only if the catalog changes, which is rare.
            if not self._rested or self._rested[-1].chunk is not chunk:
                self._rested.append(_Visited(chunk))
            self._rested[-1].anchors.append(rows)
        self._recent.clear()
        yield
        changed = self._catalog.applied != self._applied
        if changed:
            while self._rested:
                self._visited.update(self._rested.pop().members())
                yield
            self._applied = self._catalog.applied
            self._changed = True
            self._search.again()
        self._budget.rested()
        return changed


def members_at(chunk: Chunk, row: int) -> list[ProviderId]:
    """Return the members of the tree of a root, the root first."""
    return [chunk.record(member).provider.uuid for member in chunk.trees.members(row)]


def _after(place: Start) -> Start:
    """Return the place of the next anchor."""
    return Start(place.chunk, place.row + 1)


def _without(known: Pick, picks: Iterator[Pick | None]) -> Iterator[Pick | None]:
    """Yield the other candidates, without one that was found before."""
    return (pick for pick in picks if pick != known)


def searched(
    catalog: Catalog, query: CandidateQuery, start: Start, most: int, budget: Budget | None = None
) -> Steps[CandidateAnswer]:
    """Find where all groups of a query can be served together, in pieces.

    Between two pieces the catalog may change: each candidate was right at some time during the
    search. Every tree gives one candidate before any tree gives a second one, and so on. The same
    start on the same catalog gives the same answer. If nothing is cut, every start gives the same
    candidates, in the same order unless a sharing provider serves any of them.

    While nothing is found, trees that took too many steps are tried again with more of them, until
    the steps of the whole search are used up.

    Args:
        catalog: The providers.
        query: The request; every class and trait in it exists.
        start: Where to start; an answer has the start for the next one.
        most: The most candidates in an answer, also without `limit`.
        budget: The steps that the search may take.
    """
    budget = budget or Budget()
    budget.turn = start.turn
    wanted = most if query.limit is None else min(query.limit, most)
    capped = query.limit is None or query.limit > most
    while True:
        search = Search(catalog, query, budget)
        rounds = RoundRobin(catalog, search, query.nested, wanted, sure=capped)
        yield from rounds.run(start)
        if rounds.found or not budget.must_try_harder:
            break
        budget.try_harder()
    found, shown = rounds.found, list(rounds.shown.values())
    if found and rounds.then is None and start != Start(turn=start.turn):
        found = _from_the_first(rounds)
        shown = yield from _in_order(found, rounds, query.nested)
    capped = capped and rounds.then is not None and len(found) == most
    then = replace(rounds.then or start, turn=budget.turn + (not found))
    every = Picks(search.terms, found)
    return CandidateAnswer(every, shown, budget.complete, capped, then, found)


def _from_the_first(rounds: RoundRobin) -> list[Pick]:
    """Return the candidates in the order of a search that starts at the first row."""
    found: list[Pick] = []
    ends = [first for first, _ in rounds.spans[1:]] + [len(rounds.found)]
    for (first, turn), end in zip(rounds.spans, ends, strict=True):
        found += rounds.found[turn:end]
        found += rounds.found[first:turn]
    return found


def _in_order(found: list[Pick], rounds: RoundRobin, nested: bool) -> Steps[list[ProviderRecord]]:
    """Return the summaries of providers in the order of the candidates."""
    shown = rounds.shown
    trees: dict[ProviderId, list[ProviderRecord]] = {}
    for number, (uuid, record) in enumerate(shown.items()):
        trees.setdefault(record.provider.root if nested else uuid, []).append(record)
        if number % PIECE_CANDIDATES == 0:
            yield
    records: list[ProviderRecord] = []
    for number, pick in enumerate(found):
        for uuid in rounds.giving(pick):
            records += trees.pop(shown[uuid].provider.root if nested else uuid, ())
        if number % PIECE_CANDIDATES == 0:
            yield
    return records
