"""What must be so, by books of its own: a naive model of each agent, and who holds what.

The numbers in the messages are those of the invariants: F1 only what is there is offered, F2 a boot
empties what is volatile, F3 only the current boot reports, F4 reports count once and in order, I5
amounts rise only by reports, F6 decommissioned agents are refused, F7 expunged machines are
recorded, not offered, F8 less than is used may be there, F9 failures are kept, F13 claims are
checked against what is there now, F14 nothing starts before its pages are there, F15 silence
changes no number, F16 only the service's own time counts, F17 restarts make nobody late, I18
actions follow their table, F21 silence closes the whole tree where the group says so, and what
others offer there is as before afterwards, brake: a cut network loses nobody.
"""

from dataclasses import dataclass, field

from moorage.core.clock import SECOND
from moorage.core.fleet.model import Agent
from moorage.core.ids import ConsumerId
from moorage.core.ledger.capacity import capacity_of
from moorage.core.ledger.model import Inventory
from tests.core.fleet.model import Held, Key, Model, Sent
from tests.service.fleet.machines import PAGES
from tests.simulation.fleet.machine import ELIGIBLE, Machine, Message

TTL = 10 * SECOND
LATE_MAX = 2 * TTL + 2 * SECOND
"""The service's own time after which a silent agent is late at the latest."""

KILL_LOSES = 6 * SECOND
"""Service time that a killed process may not have written down."""

SOON = 3 * TTL
"""A process that ends this soon after another one: agents may still be in their grace period."""

KEY: Key = ("numa0", PAGES)

OTHERS, OTHERS_TOTAL = "VCPU", 40
"""What others say that a root has which they created."""


class Violation(AssertionError):
    """Something that must be so is not."""


def check(is_so: bool, invariant: str, what: str) -> None:
    """Raise Violation unless something is so."""
    if not is_so:
        raise Violation(f"{invariant}: {what}")


@dataclass
class Book:
    """What is known of an agent: the model, and when it was heard of last."""

    group: str
    model: Model = field(default_factory=Model)
    heard_at: int = 0
    """True time."""
    unheard: int = 0
    """The service's own time since then."""
    kills: int = 0
    """Processes that were killed since then."""
    blind: bool = False
    """Whether it may be late too early: a process was killed since then, soon after another, or
    after somebody had set the wall clock back. Nothing says then what was heard after the last row,
    and a second grace period would let repeated restarts postpone it for ever."""


@dataclass
class Place:
    """What a consumer holds on a machine; places are numbered in the order of their claims."""

    machine: int
    pages: int
    order: int


class Auditor:
    """The books of a simulated fleet."""

    def __init__(self) -> None:
        self.books: dict[int, Book] = {}
        self.places: dict[ConsumerId, Place] = {}
        self.others: dict[ConsumerId, int] = {}
        """The machine of which each consumer has a unit of `OTHERS`."""
        self.suspect: set[str] = set()
        self.orders = 0
        self.starts = 0
        self.ended_at = 0
        """When the last process ended."""
        self.losses = 0

    def created(self, number: int, group: str, *, given: bool) -> None:
        """Note a new agent; `given`: others created its root."""
        self.books[number] = Book(group, Model(given=given))

    def settled(self, group: str, silence: str) -> None:
        """Note what the silence of the agents of a group closes."""
        for book in self.books.values():
            if book.group == group and book.model.state == "active":
                book.model.silence = silence

    # What is expected of a request.

    def message(self, machine: Machine, sent: Message) -> str:
        """Return the outcome that a message must have; note it as executed."""
        model = self.books[machine.number].model
        if sent.kind == "register":
            return model.register(sent.boot, {KEY: Held(ELIGIBLE, volatile=True, step=1)})
        if sent.kind == "alive":
            return model.alive(sent.boot, sent.generation)
        consumers = None if sent.consumers is None else frozenset(map(str, sent.consumers))
        there = {KEY: sent.pages}
        report = Sent(sent.boot, sent.generation, sent.done, sent.failed, there, consumers)
        return model.report(report)

    def heard(self, number: int, now: int) -> None:
        """Note that an agent was heard of, and answered."""
        book = self.books[number]
        book.heard_at, book.unheard, book.kills, book.blind = now, 0, 0, False
        book.model.liveness = "fresh"

    def fits(self, number: int, pages: int) -> bool:
        """Return whether pages must be given to a new consumer."""
        book = self.books[number]
        return KEY in book.model.held and self.used(number) + pages <= book.model.offer(KEY)

    def used(self, number: int) -> int:
        """Return the pages that consumers hold on a machine."""
        return sum(one.pages for one in self.places.values() if one.machine == number)

    def others_of(self, number: int) -> int:
        """Return the units of `OTHERS` that consumers hold on a machine."""
        return [*self.others.values()].count(number)

    def fits_others(self, number: int) -> bool:
        """Return whether a unit of `OTHERS` must be given to a new consumer."""
        model = self.books[number].model
        open_ = model.is_open() or KEY not in model.held
        return open_ and self.others_of(number) < OTHERS_TOTAL

    def claimed(self, consumer: ConsumerId, number: int, pages: int) -> None:
        """Note a claim."""
        self.orders += 1
        self.places[consumer] = Place(number, pages, self.orders)

    # What is checked.

    def started(self, machine: Machine, consumer: ConsumerId, there: bool) -> None:
        """Check the answer whether a consumer may start; note a start."""
        place, model = self.places[consumer], self.books[machine.number].model
        ahead = [
            one.pages
            for one in self.places.values()
            if one.machine == machine.number and one.order < place.order
        ]
        actual = model.held[KEY].actual
        expected = sum(ahead) + place.pages <= actual
        if consumer not in model.confirmed and model.readiness not in ("ready", "degraded"):
            allowed = (False, expected)  # if its place is from before this boot, it must wait
        else:
            allowed = (expected, expected)
        check(there in allowed, "F14", f"{consumer} may start: {there}, expected {allowed}")
        if there and consumer not in machine.started:
            others = sum(machine.started.values())
            check(others + place.pages <= max(machine.pages, actual), "F14", "too few pages")
            machine.started[consumer] = place.pages
            self.starts += 1

    def passed(self, microseconds: int) -> None:
        """Let the service's own time pass."""
        for book in self.books.values():
            book.unheard += microseconds

    def killed(self, now: int, *, set_back: bool) -> None:
        """Note that the process was killed, perhaps after the wall clock was set back."""
        soon = now - self.ended_at < SOON
        self.ended_at = now
        for book in self.books.values():
            book.kills += 1
            book.blind |= set_back or soon

    def stopped(self, now: int) -> None:
        """Note that the process was stopped."""
        self.ended_at = now

    def silenced(self, found: dict[int, str], suspect: set[str], now: int) -> None:
        """Check what a sweep has made of silent agents; confirmed groups have no brake."""
        before = {number: book.model.liveness for number, book in self.books.items()}
        for number, liveness in found.items():
            book = self.books[number]
            silent = 4 * TTL if book.blind else now - book.heard_at
            if liveness == before[number]:
                continue
            change = f"agent {number} {before[number]} -> {liveness} after {silent / SECOND} s"
            check(liveness != "fresh", "F16", change)
            if liveness == "late":
                check(before[number] == "fresh" and silent > TTL, "F17", change)
            else:
                check(before[number] == "late" and silent > 3 * TTL, "F17", change)
                self._check_brake(book, before)
                self.losses += 1
        for number, liveness in found.items():
            self.books[number].model.liveness = liveness
        self.suspect = suspect
        self._check_not_forgotten()

    def _check_brake(self, lost: Book, before: dict[int, str]) -> None:
        """An agent in service is lost only if few members of its group are silent."""
        if lost.model.policy != "in_service":
            return
        members = [
            before[number]
            for number, book in self.books.items()
            if book.group == lost.group
            and book.model.policy == "in_service"
            and book.model.state == "active"
            and book.model.boots
        ]
        late, all_but_lost = members.count("late"), len(members) - members.count("lost")
        threshold = max(3, -(-30 * all_but_lost // 100))
        check(late < threshold, "brake", f"{late} of {all_but_lost} are silent, and one is lost")
        check(lost.group not in self.suspect, "brake", "its group is suspect")

    def _check_not_forgotten(self) -> None:
        for number, book in self.books.items():
            sure = book.unheard - book.kills * KILL_LOSES
            if book.model.state == "active" and book.model.boots and sure > LATE_MAX:
                late = f"agent {number} is fresh after {book.unheard / SECOND} s"
                check(book.model.liveness != "fresh", "F17", late)

    def agent(self, number: int, agent: Agent, inventory: Inventory | None) -> None:
        """Compare an agent and what is offered of its machine with the books."""
        model = self.books[number].model
        seen = (agent.policy.value, agent.state.value, agent.readiness.value, agent.liveness.value)
        kept = (model.policy, model.state, model.readiness, model.liveness)
        check(seen == kept, "F18", f"agent {number} is {seen}, expected {kept}")
        check(agent.report_generation == model.generation, "F4", f"agent {number}: its reports")
        failed = model.last is not None and model.last.failed
        check((agent.failure is not None) == failed, "F9", f"agent {number}: its failure")
        if KEY not in model.held:
            check(inventory is None, "F1", f"agent {number} has an inventory before it registers")
            return
        (part,) = agent.parts.values()
        held = part.classes[PAGES]
        figures = (held.actual, held.desired)
        expected = (model.held[KEY].actual, model.desired(KEY))
        check(figures == expected, "F5", f"agent {number} has {figures}, expected {expected}")
        self._check_inventory(number, inventory)

    def tree(self, number: int, root: dict[str, Inventory], part: dict[str, Inventory]) -> None:
        """Compare all that the tree of a machine offers with the books."""
        model = self.books[number].model
        if KEY not in model.held:
            return  # it has not registered: nobody knows yet which root is its own
        if model.liveness != "fresh" and model.silence == "all":
            offered = [name for held in (root, part) for name in held if capacity_of(held[name])]
            check(not offered, "F21", f"agent {number} is silent, and its tree offers {offered}")
        if model.given:
            found = (root[OTHERS].used, capacity_of(root[OTHERS]))
            expected = (self.others_of(number), OTHERS_TOTAL if model.is_open() else 0)
            check(found == expected, "F21", f"root of {number}: {found}, expected {expected}")

    def _check_inventory(self, number: int, inventory: Inventory | None) -> None:
        model, used = self.books[number].model, self.used(number)
        if inventory is None:
            check(not used and not model.desired(KEY), "F15", f"agent {number}: no inventory")
            return
        check(inventory.used == used, "F15", f"agent {number}: {inventory.used} used, not {used}")
        offer, capacity = model.offer(KEY), capacity_of(inventory)
        check(capacity == offer, "F1", f"agent {number} offers {capacity}, expected {offer}")
        if model.desired(KEY):
            check(inventory.total == model.desired(KEY), "F15", f"agent {number}: its total")
