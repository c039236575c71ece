"""The walk over all combinations at one anchor: depth first, lazy, with a look-ahead.

A branch is left as soon as nothing below it can be valid, so products of groups and providers are
never enumerated. After the first dead end, the walk looks ahead (`look_ahead.py`) before it goes
deeper: if parts exclude one another from providers, as with `isolate` or with providers of one
unit, the next candidate is then a polynomial number of steps away, or there is none. After a few
dead ends it remembers them (`dead_ends.py`), so that it visits none again with equal providers.
"""

from collections.abc import Iterator

from moorage.core.ledger.requests import Pick
from moorage.core.ledger.search.budget import Budget
from moorage.core.ledger.search.combine.choices import (
    Choice,
    Conditions,
    Merged,
    Node,
    Seat,
    State,
    Sums,
)
from moorage.core.ledger.search.combine.dead_ends import DeadEnds, Remainder
from moorage.core.ledger.search.combine.look_ahead import LookAhead
from moorage.core.ledger.search.steps import Steps

WIDE = 16
"""Copying this many parts of a combination costs as much as a step."""

FORGIVEN = 8
"""Dead ends after which the walk remembers them."""


class Walk:
    """The walk over the choices of one anchor.

    Args:
        conditions: Of the query.
        choices: In the order of the walk.
        seats: All seats of the anchor.
        tops: By same_subtree condition: the seats that may be the top of the others.
        sums: Of amounts on one provider.
        merged: The candidates of other anchors.
        budget: Of the search.
    """

    def __init__(
        self,
        conditions: Conditions,
        choices: list[Choice],
        seats: list[Seat],
        tops: list[int],
        sums: Sums,
        merged: Merged,
        budget: Budget,
    ) -> None:
        self._conditions = conditions
        self._choices = choices
        self._seats = seats
        self._tops = tops
        self._sums = sums
        self._merged = merged
        self._budget = budget
        self._look_ahead = LookAhead(conditions, choices, seats, sums, budget)
        self._dead_ends: DeadEnds | None = None
        self._failed = 0
        """Dead ends so far."""

    def run(self) -> Iterator[Pick | None]:
        """Yield the candidates one by one, and None wherever a pause is due.

        It ends early if the steps are used up; the budget then shows this.
        """
        budget, choices, merged = self._budget, self._choices, self._merged
        last, patience, whole = len(choices) - 1, self._patience(), budget.whole
        numbers = [choice.number for choice in choices]
        places = sorted(range(len(choices)), key=numbers.__getitem__)
        # No seat is chosen yet: all possible tops count as above.
        lines = tuple((tops, 0) for tops in self._tops)
        root: Node = ({}, (), 0, State(0, lines, 0), True)
        if not (yield from self._look_ahead.completable(0, root)):
            return
        end = min(budget.steps + patience, whole)
        levels, found, before = [self._level(0, root)], 0, [0]
        remainders: list[Remainder | None] = [None]
        while levels:
            if budget.steps > end:
                budget.cut = True
                return
            depth = len(levels)
            for node in levels[-1]:
                if node is None:
                    yield None
                    if budget.steps > end:
                        break
                elif depth > last:
                    found += 1
                    chosen = node[1]
                    pick = tuple([chosen[place] for place in places])
                    if (node[4] or merged.altered) and not self._is_fresh(pick):
                        if budget.steps > end:
                            break
                        if budget.steps >= budget.pause_at:
                            yield None
                        continue
                    yield pick
                    end = min(budget.steps + patience, whole)
                else:
                    remainder = None
                    if self._failed and depth < last:
                        hopeful, remainder = yield from self._ahead(depth, node)
                        if not hopeful:
                            if budget.steps > end:
                                break
                            continue
                    budget.steps += depth // WIDE
                    levels.append(self._level(depth, node))
                    before.append(found)
                    remainders.append(remainder)
                    break
            else:
                levels.pop()
                self._close(remainders.pop(), failed=before.pop() == found)

    def _patience(self) -> int:
        """Return how many steps the next candidate may take."""
        # A direct path down, without dead ends, must always be within the bound.
        patience = self._budget.anchor
        for depth, choice in enumerate(self._choices):
            patience += len(choice.seats) * (1 + len(choice.lines) + depth // WIDE)
        return patience

    def _is_fresh(self, pick: Pick) -> bool:
        """Is a candidate new? Other anchors may have given it."""
        self._budget.steps += 1
        return self._merged.fresh(pick)

    def _ahead(self, depth: int, node: Node) -> Steps[tuple[bool, Remainder | None]]:
        """May a node be completed? Also return its remainder, if dead ends are remembered."""
        ends, remainder = self._dead_ends, None
        if ends is None and self._failed > FORGIVEN:
            ends = DeadEnds(self._conditions, self._choices, self._seats, self._budget)
            self._dead_ends = ends
        if ends is not None:
            remainder = yield from ends.remainder(depth, node)
            if remainder in ends:
                return False, None
        return (yield from self._look_ahead.completable(depth, node)), remainder

    def _close(self, remainder: Remainder | None, failed: bool) -> None:
        """Note that everything below a node was visited; `failed`: it gave nothing."""
        if not failed:
            return
        self._failed += 1
        if self._dead_ends is not None and remainder is not None:
            self._dead_ends.note(remainder)

    def _level(self, depth: int, node: Node) -> Iterator[Node | None]:
        """Yield the node with every possible seat for the term at `depth`; None: pause."""
        choice, sums, special = self._choices[depth], self._sums, self._conditions.special
        contends, budget, cost = choice.contends, self._budget, 1 + len(choice.lines)
        held, chosen, taken, state, roams = node
        for seat, claims in choice.seats:
            budget.steps += cost
            if budget.steps >= budget.pause_at:
                yield None
            if claims & taken:
                continue
            after = self._after(state, choice, seat) if special else state
            if after is None:
                continue
            holding = held
            if contends:
                uuid = seat.uuid
                before = held.get(uuid)
                given = contends if before is None else sums.together(seat, before, contends)
                if given is None:
                    continue
                holding = held.copy()
                holding[uuid] = given
            yield holding, (*chosen, seat.uuid), taken | claims, after, roams and seat.roams

    def _after(self, state: State, choice: Choice, seat: Seat) -> State | None:
        """Return the state after a choice; None: no later choice can make it valid."""
        given, allocated = state.given, state.allocated
        if not choice.term.is_suffixed:
            given |= seat.gives
        if given | choice.gives_later != self._conditions.needs:
            return None
        lines = state.lines
        if choice.lines:
            changed = list(lines)
            for number in choice.lines:
                above, chosen = lines[number][0] & seat.lineage, lines[number][1] | seat.bit
                if not above & (chosen | choice.seats_later[number]):
                    return None
                changed[number] = (above, chosen)
            lines = tuple(changed)
        if self._conditions.one_per_tree and choice.term.resources:
            if allocated & seat.kin:
                return None
            allocated |= seat.bit
        return State(given, lines, allocated)
