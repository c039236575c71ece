"""Which anchor gives the next candidate: one of each, then the second of each, and so on.

The search can be interrupted, and the fleet may change in between. The candidates of an anchor
are as of the time when it was opened. A tree that is rearranged during a search may be missing from
the answer, but no candidate comes twice.
"""

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np

from moorage.core.ids import ProviderId
from moorage.core.ledger.model import ProviderRecord
from moorage.core.ledger.requests import Pick, Start
from moorage.core.ledger.search.anchors import Search
from moorage.core.ledger.search.block import Block
from moorage.core.ledger.search.fleet import Fleet

OPENING_STEPS_MAX = 200_000
"""Steps that opening all currently open anchors may have taken; they hold about 50 MB.

Further anchors are closed after their first candidate, and opened again when others are done.
"""


_NO_PICK: Pick = ()
"""An anchor has no candidate any more."""


class _Anchor(NamedTuple):
    """An anchor that has given candidates and may have more."""

    left: Iterator[Pick | None]
    """None: a rest is due."""
    steps: int
    """Steps that it took to its first candidate."""
    place: Start
    wrapped: bool
    """Whether it comes before the place where the search began."""


class _Closed(NamedTuple):
    """An anchor that has given one candidate, and was closed because too many were open."""

    first: Pick
    members: list[ProviderId]
    """Of its tree, the root first."""
    place: Start
    wrapped: bool


class _Visited:
    """Anchors of one block that were visited, and the block as it was: 16 bytes for each row."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self._records = block.records.copy()
        self._root = block.trees.root.copy()
        self.anchors: list[memoryview] = []

    def members(self) -> list[ProviderId]:
        """Return all members of the trees of the anchors, as they were then."""
        chosen = np.zeros(len(self._root), dtype=np.bool_)
        for rows in self.anchors:
            chosen[np.asarray(rows)] = True
        found = chosen[self._root].nonzero()[0].tolist()
        return [record.provider.uuid for row in found if (record := self._records[row]) is not None]


class Rounds:
    """One search, from its start until it has found what is wanted: drive `run`.

    Args:
        fleet: The providers; it may change between two steps of `run`.
        search: The query over this fleet.
        nested: Whether summaries are of whole trees.
        wanted: Candidates after which it ends.
        sure: Whether it is cut only where there is another anchor to search at.
    """

    def __init__(self, fleet: Fleet, search: Search, nested: bool, wanted: int, sure: bool) -> None:
        self._fleet = fleet
        self._search = search
        self._budget = search.budget
        self._nested = nested
        self._wanted = wanted
        self._sure = sure
        self.found: list[Pick] = []
        self.shown: dict[ProviderId, ProviderRecord] = {}
        """What summaries show, as it was when a candidate was found there."""
        self.then: Start | None = None
        """Where the search was cut; None: it came to its end."""
        self.spans: list[tuple[int, int]] = []
        """For each round the first of its candidates, and the first from before the start."""
        # A group without resources takes nothing of whoever serves it.
        giving = [number for number, term in enumerate(search.terms) if term.resources]
        self._givers = giving if len(giving) < len(search.terms) else None
        self._open: list[_Anchor] = []
        self._closed: deque[_Closed] = deque()
        self._opening_steps = 0
        self._budget.rested()
        self._applied = fleet.applied
        self._changed = False
        self._visited: set[ProviderId] = set()
        """The members of all trees that were visited before the last change."""
        self._recent: list[tuple[Block, memoryview]] = []
        """The anchors that were visited since the last rest."""
        self._rested: list[_Visited] = []
        """Those that were visited before, since the last change."""

    def run(self, start: Start) -> Iterator[None]:
        """Search; whoever drives this may do other things, or stop, wherever it yields."""
        for _ in self._search.beginning():
            if self._budget.is_rest_due:
                yield
                self._budget.rested()
        self._applied = self._fleet.applied
        yield from self._first_round(start)
        while self.then is None and (self._open or self._closed):
            if not self._open:
                yield from self._open_again()
            yield from self._next_round()

    def _first_round(self, start: Start) -> Iterator[None]:
        """Visit all anchors once, from the start round to where it was."""
        blocks = list(self._fleet.blocks)
        if not blocks:
            self.spans.append((0, 0))
            return
        first = start.block % len(blocks)
        most = self._search.prospects()
        # Elsewhere nothing can be found, so nobody looks there.
        likely = np.flatnonzero(most)
        if start.skip and len(likely):
            # A start by chance is among the rows that may serve, however few blocks have any.
            ends = most.cumsum()
            first = int(ends.searchsorted(start.block % int(ends[-1]), side="right"))
        low, high = likely.searchsorted((first, first + 1))
        row = self._row_of(start, blocks[first]) if low < high else 0
        for wrapped, numbers in ((False, likely[low:]), (True, likely[:high])):
            if wrapped:
                self.spans.append((0, len(self.found)))
            for number in numbers.data:
                span = (0, None) if number != first else (0, row) if wrapped else (row, None)
                if span[1] == 0:
                    continue  # the search began at the first row of this block
                yield from self._visit(blocks[number], number, span, wrapped)
                if self.then is not None:
                    return

    def _row_of(self, start: Start, block: Block) -> int:
        """Return the first row to be visited in the block where the search begins."""
        if not start.skip:
            return start.row
        rows = self._rows(block, (0, None))
        if not rows:
            return 0
        return rows[(int(np.searchsorted(rows, start.row)) + start.skip) % len(rows)]

    def _visit(
        self, block: Block, number: int, span: tuple[int, int | None], wrapped: bool
    ) -> Iterator[None]:
        """Take one candidate of each anchor in some rows of a block."""
        budget = self._budget
        rows, at = self._rows(block, span), 0
        while at < len(rows):
            row = rows[at]
            place = Start(number, row)
            if len(self.found) == self._wanted:
                self.then = place
                return
            at += 1
            if not self._take_only(block, row):
                applied = self._applied
                if (yield from self._take_first(block, place, wrapped, rows[:at])):
                    changed = self._applied != applied
                    rows, at = (self._rows(block, (row + 1, span[1])) if changed else rows[at:]), 0
            if budget.over or (len(self.found) == self._wanted and not self._sure):
                self.then = _after(place)
                return
            if budget.steps >= budget.pause_at:
                self._recent.append((block, rows[:at]))
                changed = yield from self._rest()
                rows, at = (self._rows(block, (row + 1, span[1])) if changed else rows[at:]), 0
        self._recent.append((block, rows))
        yield from self._rest()
        self._search.forget(block)

    def _rows(self, block: Block, span: tuple[int, int | None]) -> memoryview:
        """Return the anchors in some rows of a block; a small search reads but a few of them."""
        rows = self._search.anchor_rows(block)
        low, high = span
        if low or high is not None:
            end = None if high is None else rows.searchsorted(high)
            rows = rows[rows.searchsorted(low) : end]
        return rows.data

    def _take_only(self, block: Block, row: int) -> bool:
        """Take the candidate of an anchor that has a single one; False: it must be opened."""
        if self._changed and not self._visited.isdisjoint(members_at(block, row)):
            return True  # the tree has been rearranged: part of it was searched before
        only = self._search.single(block, row)
        if only is None:
            return False
        self._budget.steps += 1
        self.found.append(only)
        record = block.record(row)
        self.shown[record.provider.uuid] = record
        return True

    def _take_first(
        self, block: Block, place: Start, wrapped: bool, visited: memoryview
    ) -> Generator[None, None, bool]:
        """Take the first candidate of an anchor, and keep the anchor open if it may have more.

        Returns whether it let others work. `visited`: the rows of the block up to this one that
        were visited since that was last done.
        """
        before, members = self._budget.steps, None
        left = self._search.picks(block, place.row)
        first = next(left, _NO_PICK)
        if first is None:
            # Others may change the tree while it is being opened.
            members = members_at(block, place.row)
            self._recent.append((block, visited))
            first = yield from self._further(left)
        rested = members is not None
        if first and self._add(first):
            steps = self._budget.steps - before
            if self._opening_steps + steps > OPENING_STEPS_MAX:
                members = members or members_at(block, place.row)
                self._closed.append(_Closed(first, members, place, wrapped))
            else:
                self._opening_steps += steps
                self._open.append(_Anchor(left, steps, place, wrapped))
        return rested

    def _next_round(self) -> Iterator[None]:
        """Take one candidate more of each open anchor."""
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
        """Open as many of the closed anchors as may be open together."""
        while self._closed and not (self._open and self._opening_steps >= OPENING_STEPS_MAX):
            closed = self._closed.popleft()
            place = self._fleet.places.get(closed.members[0])
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
        """Let others work until an anchor has its next candidate; empty: it has none."""
        while True:
            yield from self._rest()
            pick = next(left, _NO_PICK)
            if pick is not None:
                return pick

    def _add(self, pick: Pick) -> bool:
        """Keep a candidate; False: part of it is not there any more."""
        shown, places = self.shown, self._fleet.places
        if self._changed and not all(uuid in shown or uuid in places for uuid in pick):
            return False
        for uuid in self.giving(pick):
            if uuid not in shown:
                self._show(uuid)
        self._budget.steps += 1
        self.found.append(pick)
        return True

    def giving(self, pick: Pick) -> Iterable[ProviderId]:
        """Return who gives anything in a candidate."""
        return pick if self._givers is None else [pick[number] for number in self._givers]

    def _show(self, uuid: ProviderId) -> None:
        """Note what summaries show of a provider or, with a nested query, of its tree."""
        block, row = self._fleet.places[uuid]
        if not self._nested:
            self.shown[uuid] = block.record(row)
            return
        members = block.trees.members(int(block.trees.root[row]))
        self._budget.steps += len(members)
        for member in members:
            record = block.record(member)
            self.shown.setdefault(record.provider.uuid, record)

    def _rest(self) -> Generator[None, None, bool]:
        """Let others work, if it is time to; return whether they have changed the fleet."""
        if not self._budget.is_rest_due:
            return False
        for block, rows in self._recent:
            # Who was visited is worked out only if the fleet changes, which it seldom does.
            if not self._rested or self._rested[-1].block is not block:
                self._rested.append(_Visited(block))
            self._rested[-1].anchors.append(rows)
        self._recent.clear()
        yield
        changed = self._fleet.applied != self._applied
        if changed:
            while self._rested:
                self._visited.update(self._rested.pop().members())
                yield
            self._applied = self._fleet.applied
            self._changed = True
            self._search.again()
        self._budget.rested()
        return changed


def members_at(block: Block, row: int) -> list[ProviderId]:
    """Return the members of the tree of a root, the root first."""
    return [block.record(member).provider.uuid for member in block.trees.members(row)]


def _after(place: Start) -> Start:
    """Return the place of the next anchor."""
    return Start(place.block, place.row + 1)


def _without(known: Pick, picks: Iterator[Pick | None]) -> Iterator[Pick | None]:
    """Leave out a candidate that was found before."""
    return (pick for pick in picks if pick != known)
