"""The choice for a claim: a few candidates, those of the preferred trees first.

It opens only a few chunks: with `random` those of the rows that it draws, otherwise those with the
best bounds.

Trees are preferred by their fullness. It is computed for the anchors of an opened chunk; for other
chunks the summaries give bounds.
"""

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from itertools import chain, repeat

import numpy as np
from numpy.typing import NDArray

from moorage.core.ledger.requests import Candidate, CandidateAnswer, CandidateOrder, CandidateQuery
from moorage.core.ledger.search.anchors import Search
from moorage.core.ledger.search.budget import Budget
from moorage.core.ledger.search.catalog.catalog import Catalog
from moorage.core.ledger.search.catalog.chunk import Chunk
from moorage.core.ledger.search.catalog.summaries import Counts, Summaries
from moorage.core.ledger.search.groups import GroupPart
from moorage.core.ledger.search.steps import Steps
from moorage.core.limits import CANDIDATE_STEPS_MAX

Rows = NDArray[np.intp]
Scores = NDArray[np.float64]
"""One number per anchor, or per chunk; the lowest is preferred."""


TOGETHER = 16
"""Scores that are returned together. The lowest are sorted first, the others on demand."""


class Scorer:
    """Scores anchors by fullness, and bounds the scores of whole chunks."""

    def __init__(
        self,
        order: CandidateOrder,
        summaries: Summaries,
        terms: Sequence[GroupPart],
        roaming: set[str],
    ) -> None:
        """Prepare the scores of one query.

        `roaming`: the classes that sharing providers can serve for other trees.
        """
        self._packs = order.preference == "pack"
        self._summaries = summaries
        # A tree must be able to give the largest amount of a class in one piece, unless a sharing
        # provider may give it. The order is fixed, because sums of floats depend on it.
        reached: dict[str, int] = {}
        for term in terms:
            for name, amount in term.resources.items():
                reached[name] = max(reached.get(name, 0), amount)
        self._reached = {name: 0 if name in roaming else reached[name] for name in sorted(reached)}
        self._roaming = roaming

    def scores(self, chunk: Chunk, anchors: Rows) -> Scores:
        """Return the scores of some anchors of a chunk."""
        full: Scores | None = None
        for name in self._reached:
            column = chunk.columns.get(name)
            if column is not None:
                # For all rows: selecting rows from each column would take longer.
                full = column.fullness() if full is None else full + column.fullness()
        if full is None:
            return np.zeros(len(anchors))
        picked = full.take(anchors)
        return -picked if self._packs else picked

    def bounds(self) -> Scores:
        """Return a lower bound of the anchors' scores for each chunk."""
        size = self._summaries.size
        full = np.zeros(size)
        for name, amount in self._reached.items():
            gauge = self._summaries.classes.get(name)
            if gauge is None:
                continue
            bound = gauge.bounds(amount, size, self._packs)
            # If a guest provides the class, the tree itself may have none of it.
            if self._packs or name not in self._roaming:
                full += bound
        return -full if self._packs else full

    def tightened(self, chunk: Chunk) -> bool:
        """Make the bound of one chunk exact, class by class; False: it already is."""
        columns = (chunk.columns.get(name) for name in self._reached)
        loose = [each for each in columns if each is not None and each.is_loose(self._packs)]
        for column in loose:
            column.tighten(self._packs)
        return bool(loose)

    def bound(self, chunk: Chunk) -> float:
        """Return the bound of one chunk, computed as in `bounds`."""
        full = 0.0
        for name, amount in self._reached.items():
            column = chunk.columns.get(name)
            if column is not None and (self._packs or name not in self._roaming):
                full += column.bound(amount, self._packs)
        return -full if self._packs else full


def best_first(scores: Scores) -> Iterator[Rows]:
    """Yield the indexes of the scores in ascending order, `TOGETHER` at a time.

    Equal scores keep their order.
    """
    low = np.ones(len(scores), dtype=np.bool_)
    if len(scores) > TOGETHER:
        # For most chunks only the first few are needed.
        low = scores <= np.partition(scores, TOGETHER)[TOGETHER]
    for part in (low, ~low):
        places = part.nonzero()[0]
        places = places[scores[places].argsort(kind="stable")]
        for at in range(0, len(places), TOGETHER):
            yield places[at : at + TOGETHER]


TREE_CANDIDATES_MAX = 4
"""The most candidates of one tree among those of a claim."""

CHUNKS_WANTED, CHUNK_CANDIDATES = 8, 8
"""Chunks of random candidates: one for every eight candidates wanted, but at most eight."""

WHOLE_MAX = 16
"""In a catalog of at most this many chunks, one query may open all of them."""

CHUNKS_MAX = 2
"""Chunks of a larger catalog that one query opens to pack or to spread if they have enough anchors,
otherwise one more for each candidate wanted. It opens more only while nothing is found."""

TIGHTENED_MAX = 64
"""Chunks whose bounds one query tightens, so that it does not pay for all earlier changes; the next
query tightens more. The other chunks keep their wider bounds."""

PASSES_MAX = 3
"""How many times a search runs if it finds nothing while the catalog changes."""

DRAWS_MAX = 16
"""Random draws per candidate wanted, before the search takes the remaining rows."""

Anchor = tuple[Chunk, int]

_Scored = tuple[float, int, int]
"""The score of an anchor, the number of its chunk, its row."""

_Waiting = tuple[_Scored, Iterator[_Scored]]
"""An anchor that waits for its turn, and the later ones of its chunk."""


def preferring(
    catalog: Catalog,
    query: CandidateQuery,
    order: CandidateOrder,
    wanted: int,
    steps_max: int = CANDIDATE_STEPS_MAX,
) -> Steps[CandidateAnswer]:
    """Find up to `wanted` candidates, the preferred trees first, without summaries, in pieces.

    A tree gives at most `TREE_CANDIDATES_MAX`, because they often compete for the same inventories.
    The answer is empty only if there is no candidate at all, or if it is not `exhausted`; it may
    have fewer than wanted if the others are in chunks beyond `CHUNKS_MAX`. The query's own limit is
    ignored.

    With `random`, every anchor is equally likely to be the first, unless nearly all rows that the
    summaries allow turn out not to fit. With `pack` and `spread` the order is exact in catalogs of
    up to `WHOLE_MAX` chunks, and wherever the bounds show that no other chunk can have a better
    tree; otherwise it is exact within the chunks with the best bounds.

    The catalog may change between two pieces. Each candidate was right at some time during the
    search, and all its providers exist at the end. The order is as of the time when a chunk was
    opened. If nothing is found while the catalog changes, the search starts again, up to
    `PASSES_MAX` times in total; after that the answer is not `exhausted`. If nothing is found
    because trees took too many steps, they are tried again with more, in an order by `seed`.
    """
    budget = Budget(steps_max)
    budget.rested()
    passes = 0
    while passes < PASSES_MAX:
        search, began = Search(catalog, query, budget), catalog.applied
        choice = _Choice(catalog, search, order, wanted)
        yield from choice.run()
        if not choice.found and budget.must_try_harder:
            budget.try_harder(order.seed)
        elif choice.found or budget.over or catalog.applied == began:
            return CandidateAnswer(choice.found, [], budget.complete)
        else:
            passes += 1
    return CandidateAnswer([], [], exhausted=False)


class _Choice:
    """Tries the anchors for one query, one after another: drive `run`."""

    def __init__(
        self, catalog: Catalog, search: Search, order: CandidateOrder, wanted: int
    ) -> None:
        self._catalog = catalog
        self._search = search
        self._order = order
        self._wanted = wanted
        self.found: list[Candidate] = []
        self._opened: dict[int, Rows] = {}
        """The anchors of the opened chunks, as of the time of opening."""
        self._seen = 0
        """The number of these anchors."""
        self._applied = catalog.applied
        self._changed = False
        self._now: dict[int, Rows] = {}
        """The anchors of chunks since the last change, as far as they were needed."""

    def run(self) -> Steps[None]:
        """Open anchors until there are enough candidates; yield where a pause is allowed."""
        search, budget = self._search, self._search.budget
        for _ in search.beginning():
            if budget.is_rest_due:
                yield
                budget.rested()
        self._applied = self._catalog.applied
        for anchor in self._anchors():
            if anchor is not None and self._stands(*anchor):
                yield from self._take(*anchor)
                if len(self.found) == self._wanted or budget.over:
                    break
            if budget.steps >= budget.pause_at:
                yield from self._rest()
        if self._changed:
            self.found = [each for each in self.found if self._is_there(each)]

    def _take(self, chunk: Chunk, row: int) -> Steps[None]:
        """Take the first candidates of an anchor."""
        most = min(self._wanted, len(self.found) + TREE_CANDIDATES_MAX)
        for candidate in self._search.open(chunk, row):
            if candidate is None:
                yield from self._rest()
            # After a change it may have been found before, at its tree's old place.
            elif not (self._changed and candidate in self.found):
                self.found.append(candidate)
                if len(self.found) == most:
                    return

    def _rest(self) -> Steps[None]:
        """Pause for other work."""
        yield
        if self._catalog.applied != self._applied:
            self._applied = self._catalog.applied
            self._changed = True
            self._now.clear()
            self._search.again()
        self._search.budget.rested()

    def _stands(self, chunk: Chunk, row: int) -> bool:
        """Is a row still an anchor? Its chunk may have changed since it was opened."""
        if not self._changed:
            return True
        rows = self._now.get(chunk.number)
        if rows is None:
            rows = self._now[chunk.number] = self._search.anchor_rows(chunk)
        return row in rows

    def _is_there(self, candidate: Candidate) -> bool:
        """Do all providers of a candidate still exist?"""
        places = self._catalog.places
        return all(uuid in places for uuids in candidate.mappings.values() for uuid in uuids)

    def _anchors(self) -> Iterator[Anchor | None]:
        """Yield the anchors in the order in which they are tried; None: a pause may be due."""
        most = self._search.prospects()
        if not most.any():
            return iter(())
        return self._by_chance(most) if self._order.preference == "random" else self._best(most)

    def _rows(self, number: int) -> Rows:
        """Return the anchors of a chunk, which is opened only once."""
        rows = self._opened.get(number)
        if rows is None:
            rows = self._search.anchor_rows(self._catalog.chunks[number])
            self._opened[number] = rows
            self._seen += len(rows)
        return rows

    def _is_enough(self, most: int = CHUNKS_MAX) -> bool:
        """Were as many chunks opened as one query may open?"""
        if len(self._catalog.chunks) <= WHOLE_MAX:
            return False
        more = 0 if self._seen >= self._wanted else self._wanted
        return len(self._opened) >= most + more

    def _by_chance(self, most: Counts) -> Iterator[Anchor | None]:
        """Draw rows that may be anchors, and discard those that are not.

        So every anchor is equally likely, independent of the other anchors in its chunk.
        """
        chance = np.random.Generator(np.random.PCG64(self._order.seed))
        numbers = _numbers(chance)
        ends = most.cumsum()
        total = int(ends[-1])
        chunks_wanted = min(CHUNKS_WANTED, -(-self._wanted // CHUNK_CANDIDATES))
        together = -(-self._wanted // chunks_wanted)
        tried: dict[int, set[int]] = {}
        for _ in range(DRAWS_MAX * self._wanted):
            draw = int(next(numbers) * total)
            number = int(ends.searchsorted(draw, side="right"))
            if number not in self._opened and self._is_enough(CHUNKS_WANTED):
                break
            rows = self._rows(number)
            if self._search.budget.is_rest_due:
                yield None
            place = int(ends[number]) - 1 - draw
            if place >= len(rows):
                continue
            mine = tried.setdefault(number, set())
            # Take others from the same chunk, so that a batch does not open a chunk per claim.
            others = [int(next(numbers) * len(rows)) for _ in range(together - 1)]
            for at in (place, *others):
                if at not in mine:
                    mine.add(at)
                    yield self._catalog.chunks[number], int(rows[at])
        yield from self._remaining(most, chance, tried)

    def _remaining(
        self, most: Counts, chance: np.random.Generator, tried: dict[int, set[int]]
    ) -> Iterator[Anchor | None]:
        """Yield the anchors that were not drawn: of opened chunks, then of others."""
        left = [
            (number, row)
            for number, rows in self._opened.items()
            for at, row in enumerate(rows.tolist())
            if at not in tried.get(number, ())
        ]
        for place in chance.permutation(len(left)).tolist():
            number, row = left[place]
            yield self._catalog.chunks[number], row
        for number in chance.permutation(np.flatnonzero(most)).tolist():
            if number in self._opened:
                continue
            if self.found and self._is_enough(CHUNKS_WANTED):
                return
            for row in chance.permutation(self._rows(number)).tolist():
                yield self._catalog.chunks[number], row
            yield None

    def _best(self, most: Counts) -> Iterator[Anchor | None]:
        """Yield the anchors with the lowest scores first, opening chunks by their bounds."""
        search = self._search
        roaming = {name for number in search.abroad() for name in search.terms[number].resources}
        scorer = Scorer(self._order, self._catalog.summaries, search.terms, roaming)
        bounds = np.where(most > 0, scorer.bounds(), np.inf)
        waiting: list[_Waiting] = []
        tightened = 0
        while True:
            # Among equal bounds, the lowest number is first.
            number = int(bounds.argmin())
            bound = float(bounds[number])
            while waiting and (waiting[0][0] < (bound, number) or self._is_enough()):
                (_, at, row), later = heappop(waiting)
                _wait(waiting, later)
                yield self._catalog.chunks[at], row
            if bound == np.inf or (self.found and self._is_enough()):
                return
            chunk = self._catalog.chunks[number]
            if tightened < TIGHTENED_MAX and scorer.tightened(chunk):
                tightened += 1
                bounds[number] = scorer.bound(chunk)
                continue
            bounds[number] = np.inf
            _wait(waiting, _ordered(scorer, chunk, self._rows(number)))
            yield None


def _numbers(chance: np.random.Generator) -> Iterator[float]:
    """Yield random numbers from 0 up to 1 without end."""
    while True:
        yield from chance.random(64).tolist()


def _ordered(scorer: Scorer, chunk: Chunk, rows: Rows) -> Iterator[_Scored]:
    """Yield the anchors of a chunk, the best first."""
    scores = scorer.scores(chunk, rows)
    return chain.from_iterable(
        zip(scores[places].tolist(), repeat(chunk.number), rows[places].tolist(), strict=False)
        for places in best_first(scores)
    )


def _wait(waiting: list[_Waiting], anchors: Iterator[_Scored]) -> None:
    """Add the next anchor of a chunk to the waiting ones."""
    first = next(anchors, None)
    if first is not None:
        heappush(waiting, (first, anchors))
