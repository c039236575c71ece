"""The choice for a claim: a few candidates, those of the preferred trees first.

It opens few blocks, however many there are: with `random` the blocks of the rows that it draws,
otherwise those with the best bounds.
"""

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import chain, repeat

import numpy as np

from moorage.core.ledger.requests import Candidate, CandidateAnswer, CandidateQuery, Order
from moorage.core.ledger.search.anchors import Search
from moorage.core.ledger.search.block import Block
from moorage.core.ledger.search.budget import Budget
from moorage.core.ledger.search.fleet import Fleet
from moorage.core.ledger.search.preference import Rows, Scorer, best_first
from moorage.core.ledger.search.steps import Steps, to_end
from moorage.core.ledger.search.summaries import Counts
from moorage.core.limits import CANDIDATE_STEPS_MAX

TREE_CANDIDATES_MAX = 4
"""Candidates of one tree among those that a claim may choose from."""

BLOCKS_WANTED, BLOCK_CANDIDATES = 8, 8
"""Blocks that random candidates come from: one for every eight wanted, but at most eight."""

WHOLE_MAX = 16
"""Blocks of a fleet up to which one query may open all of them."""

BLOCKS_MAX = 2
"""Blocks of a larger fleet that one query opens to pack or to spread if they have enough anchors,
otherwise one more for each candidate wanted. Still more only as long as nothing is found."""

TIGHTENED_MAX = 64
"""Blocks whose bounds one query tightens, so that it does not pay for all changes before it; the
next query tightens more. For the others their wider bounds are used."""

PASSES_MAX = 3
"""How often the search for one question begins, if it finds nothing while the fleet changes."""

DRAWS_MAX = 16
"""Random draws for each candidate wanted, before the search takes rows as they come."""

Anchor = tuple[Block, int]

_Scored = tuple[float, int, int]
"""The score of an anchor, the number of its block, its row."""

_Waiting = tuple[_Scored, Iterator[_Scored]]
"""An anchor that waits for its turn, and those of its block that come after it."""


def preferred(
    fleet: Fleet,
    query: CandidateQuery,
    order: Order,
    wanted: int,
    steps_max: int = CANDIDATE_STEPS_MAX,
) -> CandidateAnswer:
    """Find up to `wanted` candidates, the preferred trees first; as `preferring`, all at once."""
    return to_end(preferring(fleet, query, order, wanted, steps_max))


def preferring(
    fleet: Fleet,
    query: CandidateQuery,
    order: Order,
    wanted: int,
    steps_max: int = CANDIDATE_STEPS_MAX,
) -> Steps[CandidateAnswer]:
    """Find up to `wanted` candidates, the preferred trees first, without summaries, in pieces.

    A tree gives at most `TREE_CANDIDATES_MAX`, because taking one of them often takes from the
    others as well. The answer is empty only if there is no candidate at all, or if it is not
    `exhausted`; it may have fewer than wanted if the others are in blocks beyond `BLOCKS_MAX`. The
    query's own limit is ignored.

    With `random`, every anchor is equally likely to be the first, unless nearly all rows that the
    summaries allow turn out not to fit. With `pack` and `spread` the order is exact in fleets of up
    to `WHOLE_MAX` blocks, and wherever the bounds show that no other block can hold a better tree;
    otherwise it is exact within the blocks with the best bounds.

    The fleet may change between two pieces. Each candidate was right at some time in between, and
    every provider that it names exists at the end. The order is that of the time when a block was
    looked into. If nothing is found while the fleet changes, the search begins anew, but at most
    `PASSES_MAX` times in all; then the answer is not `exhausted`.
    """
    budget = Budget(steps_max)
    budget.rested()
    for _ in range(PASSES_MAX):
        search, began = Search(fleet, query, budget), fleet.applied
        choice = _Choice(fleet, search, order, wanted)
        yield from choice.run()
        if choice.found or budget.over or fleet.applied == began:
            return CandidateAnswer(choice.found, [], budget.complete)
    return CandidateAnswer([], [], exhausted=False)


class _Choice:
    """Which anchors are tried for one question, one after another: drive `run`."""

    def __init__(self, fleet: Fleet, search: Search, order: Order, wanted: int) -> None:
        self._fleet = fleet
        self._search = search
        self._order = order
        self._wanted = wanted
        self.found: list[Candidate] = []
        self._opened: dict[int, Rows] = {}
        """The anchors of the blocks that were looked into, as they were then."""
        self._seen = 0
        """How many there are in all."""
        self._applied = fleet.applied
        self._changed = False
        self._now: dict[int, Rows] = {}
        """The anchors of blocks as they are since the last change, as far as they were needed."""

    def run(self) -> Steps[None]:
        """Open anchors until there are as many candidates as wanted; yields where it may rest."""
        search, budget = self._search, self._search.budget
        for _ in search.beginning():
            if budget.is_rest_due:
                yield
                budget.rested()
        self._applied = self._fleet.applied
        for anchor in self._anchors():
            if anchor is not None and self._stands(*anchor):
                yield from self._take(*anchor)
                if len(self.found) == self._wanted or budget.over:
                    break
            if budget.steps >= budget.pause_at:
                yield from self._rest()
        if self._changed:
            self.found = [each for each in self.found if self._is_there(each)]

    def _take(self, block: Block, row: int) -> Steps[None]:
        """Take the first candidates of an anchor."""
        most = min(self._wanted, len(self.found) + TREE_CANDIDATES_MAX)
        for candidate in self._search.open(block, row):
            if candidate is None:
                yield from self._rest()
            # After a change it may have been found before, where its tree was then.
            elif not (self._changed and candidate in self.found):
                self.found.append(candidate)
                if len(self.found) == most:
                    return

    def _rest(self) -> Steps[None]:
        """Let others work."""
        yield
        if self._fleet.applied != self._applied:
            self._applied = self._fleet.applied
            self._changed = True
            self._now.clear()
            self._search.again()
        self._search.budget.rested()

    def _stands(self, block: Block, row: int) -> bool:
        """Is a row an anchor still? Its block may have changed since it was looked into."""
        if not self._changed:
            return True
        rows = self._now.get(block.number)
        if rows is None:
            rows = self._now[block.number] = self._search.anchor_rows(block)
        return row in rows

    def _is_there(self, candidate: Candidate) -> bool:
        """Does everybody that a candidate names exist still?"""
        places = self._fleet.places
        return all(uuid in places for uuids in candidate.mappings.values() for uuid in uuids)

    def _anchors(self) -> Iterator[Anchor | None]:
        """Yield the anchors in the order in which they are tried; None: it may be time to rest."""
        most = self._search.prospects()
        if not most.any():
            return iter(())
        return self._by_chance(most) if self._order.preference == "random" else self._best(most)

    def _rows(self, number: int) -> Rows:
        """Look into a block, once."""
        rows = self._opened.get(number)
        if rows is None:
            rows = self._search.anchor_rows(self._fleet.blocks[number])
            self._opened[number] = rows
            self._seen += len(rows)
        return rows

    def _is_enough(self, most: int = BLOCKS_MAX) -> bool:
        """Were as many blocks looked into as one question may ask for?"""
        if len(self._fleet.blocks) <= WHOLE_MAX:
            return False
        more = 0 if self._seen >= self._wanted else self._wanted
        return len(self._opened) >= most + more

    def _by_chance(self, most: Counts) -> Iterator[Anchor | None]:
        """Draw rows that may be anchors; those that are none count for nothing.

        So every anchor is equally likely, however many there are in its block.
        """
        chance = np.random.Generator(np.random.PCG64(self._order.seed))
        numbers = _numbers(chance)
        ends = most.cumsum()
        total = int(ends[-1])
        blocks_wanted = min(BLOCKS_WANTED, -(-self._wanted // BLOCK_CANDIDATES))
        together = -(-self._wanted // blocks_wanted)
        tried: dict[int, set[int]] = {}
        for _ in range(DRAWS_MAX * self._wanted):
            draw = int(next(numbers) * total)
            number = int(ends.searchsorted(draw, side="right"))
            if number not in self._opened and self._is_enough(BLOCKS_WANTED):
                break
            rows = self._rows(number)
            if self._search.budget.is_rest_due:
                yield None
            place = int(ends[number]) - 1 - draw
            if place >= len(rows):
                continue
            mine = tried.setdefault(number, set())
            # Neighbours come along, so that a batch does not look into a block for each claim.
            others = [int(next(numbers) * len(rows)) for _ in range(together - 1)]
            for at in (place, *others):
                if at not in mine:
                    mine.add(at)
                    yield self._fleet.blocks[number], int(rows[at])
        yield from self._remaining(most, chance, tried)

    def _remaining(
        self, most: Counts, chance: np.random.Generator, tried: dict[int, set[int]]
    ) -> Iterator[Anchor | None]:
        """Yield what was not drawn: of blocks that were looked into, then of others."""
        left = [
            (number, row)
            for number, rows in self._opened.items()
            for at, row in enumerate(rows.tolist())
            if at not in tried.get(number, ())
        ]
        for place in chance.permutation(len(left)).tolist():
            number, row = left[place]
            yield self._fleet.blocks[number], row
        for number in chance.permutation(np.flatnonzero(most)).tolist():
            if number in self._opened:
                continue
            if self.found and self._is_enough(BLOCKS_WANTED):
                return
            for row in chance.permutation(self._rows(number)).tolist():
                yield self._fleet.blocks[number], row
            yield None

    def _best(self, most: Counts) -> Iterator[Anchor | None]:
        """Yield the anchors with the lowest scores first, looking into blocks by their bounds."""
        search = self._search
        roaming = {name for number in search.abroad() for name in search.terms[number].resources}
        scorer = Scorer(self._order, self._fleet.summaries, search.terms, roaming)
        bounds = np.where(most > 0, scorer.bounds(), np.inf)
        waiting: list[_Waiting] = []
        tightened = 0
        while True:
            # Of equals the lowest number is the first.
            number = int(bounds.argmin())
            bound = float(bounds[number])
            while waiting and (waiting[0][0] < (bound, number) or self._is_enough()):
                (_, at, row), later = heappop(waiting)
                _wait(waiting, later)
                yield self._fleet.blocks[at], row
            if bound == np.inf or (self.found and self._is_enough()):
                return
            block = self._fleet.blocks[number]
            if tightened < TIGHTENED_MAX and scorer.tightened(block):
                tightened += 1
                bounds[number] = scorer.bound(block)
                continue
            bounds[number] = np.inf
            _wait(waiting, _ordered(scorer, block, self._rows(number)))
            yield None


def _numbers(chance: np.random.Generator) -> Iterator[float]:
    """Yield numbers from 0 up to 1 for ever."""
    while True:
        yield from chance.random(64).tolist()


def _ordered(scorer: Scorer, block: Block, rows: Rows) -> Iterator[_Scored]:
    """Yield the anchors of a block, the best first."""
    scores = scorer.scores(block, rows)
    return chain.from_iterable(
        zip(scores[places].tolist(), repeat(block.number), rows[places].tolist(), strict=False)
        for places in best_first(scores)
    )


def _wait(waiting: list[_Waiting], anchors: Iterator[_Scored]) -> None:
    """Let the next anchor of a block wait for its turn."""
    first = next(anchors, None)
    if first is not None:
        heappush(waiting, (first, anchors))
