"""The free slots of one pool during one scan of its line: which are left, and for whom.

A ticket gets the slot that the fewest other labels in the line ask for, and of those the one that
has been free longest. So a ticket that is content with any slot does not take the only one that
suits another ticket while there are others.
"""

from msgspec import Struct

from moorage.core.admission.facts import Facts
from moorage.core.admission.model import FREE, Need, Pool, Slot
from moorage.core.admission.slots import free
from moorage.core.admission.units import is_resting
from moorage.core.clock import Instant
from moorage.core.wishes import suits


class _Suited(Struct, frozen=True):
    """A free slot, and the labels in the line that it has."""

    slot: Slot
    wanted: tuple[str, ...]


class IdleSlots:
    """The free slots of a pool that this scan has neither granted nor set aside."""

    def __init__(self, facts: Facts, pool: Pool, at: Instant) -> None:
        self._slots = facts.slots.get(pool.name, {})
        self._at = at
        self._by_state: dict[str, list[Slot]] = {}
        """Free slots by state, the next to be granted last."""
        self._suited: dict[str, _Suited] = {}
        """By name, those that may be granted now; empty if no ticket asks for labels."""
        self._left: dict[str, int] = dict.fromkeys(pool.sought, 0)
        if self._left:
            for slot in self.of(FREE):
                if not is_resting(slot, at):
                    wanted = tuple(text for text in self._left if suits(slot.labels, text))
                    self._suited[slot.name] = _Suited(slot, wanted)
                    self._count(wanted, 1)

    @property
    def by_label(self) -> bool:
        """Does a ticket of the line ask for labels?"""
        return bool(self._left)

    def of(self, state: str) -> list[Slot]:
        """Return the free slots in a state, the next to be granted last."""
        found = self._by_state.get(state)
        if found is None:
            found = free(self._slots.values(), self._at, state)[::-1]
            self._by_state[state] = found
        return found

    def left(self, wanted: str) -> int:
        """Return how many slots with these labels may be granted now."""
        return self._left.get(wanted, 0)

    def fitting(self, need: Need) -> int:
        """Return how many free slots a need fits, those in cooldown included."""
        return sum(suits(slot.labels, need.wanted) for slot in self.of(need.state))

    def take(self, need: Need, units: int) -> list[Slot]:
        """Remove and return up to this many slots for a need, those not in cooldown first."""
        chosen = self._chosen(need, units)
        for slot in chosen:
            self.remove(slot)
        return chosen

    def remove(self, slot: Slot) -> None:
        """Remove one slot: it is granted, or set aside."""
        self.of(slot.state).remove(slot)
        known = self._suited.pop(slot.name, None)
        if known is not None:
            self._count(known.wanted, -1)

    def set_aside(self, need: Need, units: int) -> int:
        """Keep up to this many slots, none in cooldown, from later tickets; return how many.

        It matters which ones only if the line asks for labels; otherwise the caller counts.
        """
        if not self.by_label or need.state != FREE:
            return units
        kept = [slot for slot in self._chosen(need, units) if not is_resting(slot, self._at)]
        for slot in kept:
            self.remove(slot)
        return len(kept)

    def _chosen(self, need: Need, units: int) -> list[Slot]:
        if not self.by_label or need.state != FREE:
            return self.of(need.state)[-units:][::-1]
        fitting = [slot for slot in reversed(self.of(FREE)) if suits(slot.labels, need.wanted)]
        fitting.sort(key=lambda slot: (is_resting(slot, self._at), self._others(slot, need)))
        return fitting[:units]

    def _others(self, slot: Slot, need: Need) -> int:
        """Return how many other wishes a slot suits."""
        known = self._suited.get(slot.name)
        return 0 if known is None else sum(text != need.wanted for text in known.wanted)

    def _count(self, wanted: tuple[str, ...], sign: int) -> None:
        for text in wanted:
            self._left[text] += sign
