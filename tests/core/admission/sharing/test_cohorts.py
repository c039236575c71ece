"""Cohorts: pools lend each other units, never beyond the sum of their limits, lenders first."""

import random

import pytest

from moorage.core.admission.model import Lease, PoolSpec
from moorage.core.clock import SECOND
from moorage.core.errors import Code
from moorage.core.limits import COHORT_POOLS_MAX
from moorage.core.service_time import Moment
from tests.core.admission.build import OPERATOR, Refused, World, make_ask
from tests.core.admission.sums import sums_differ

HOUR = 3_600 * SECOND


def member(world: World, name: str, limit: int, **more: object) -> None:
    """Create or change a pool of cohort `c`."""
    world.pool(name, limit, **({"cohort": "c", "ttl": HOUR} | more))


def states(world: World, *names: str) -> str:
    """Return the states of some leases, as one word."""
    return "".join(world.states()[name] for name in names)


def test_a_pool_borrows_what_others_do_not_use() -> None:
    """It goes beyond its limit by its `borrowing`, and no further."""
    world = World()
    member(world, "a", 2, borrowing=2)
    member(world, "b", 3)
    for n in range(6):
        world.ask(f"a{n}", {"a": 1})
    assert states(world, *(f"a{n}" for n in range(6))) == "ggggww"
    for n in range(3):
        world.ask(f"b{n}", {"b": 1})
    assert states(world, "b0", "b1", "b2") == "gww"


def test_without_borrowing_a_limit_stays_a_limit() -> None:
    """The control: a pool of a cohort with `borrowing` 0, and a pool of another cohort."""
    world = World()
    member(world, "a", 2)
    member(world, "b", 3)
    member(world, "d", 1, cohort="other", borrowing=5)
    for n in range(3):
        world.ask(f"a{n}", {"a": 1})
        world.ask(f"d{n}", {"d": 1})
    assert states(world, "a0", "a1", "a2", "d0", "d1", "d2") == "ggwgww"


def test_a_pool_lends_no_more_than_it_wants() -> None:
    """`lending` keeps the rest of its units for itself."""
    world = World()
    member(world, "a", 1, borrowing=9)
    member(world, "b", 3, lending=1)
    for n in range(4):
        world.ask(f"a{n}", {"a": 1})
    assert states(world, "a0", "a1", "a2", "a3") == "ggww"
    world.ask("b", {"b": 2})
    assert states(world, "b") == "g"


def test_borrowers_give_back_to_the_lender_first() -> None:
    """A ticket within its limit waits for units that are lent, and gets them before a borrower."""
    world = World()
    member(world, "a", 1, borrowing=3)
    member(world, "b", 2)
    for n in range(5):
        world.ask(f"a{n}", {"a": 1}, priority=5)
    assert states(world, *(f"a{n}" for n in range(5))) == "gggww"
    world.ask("b", {"b": 2})
    assert states(world, "b") == "w"
    world.release("a0")
    assert states(world, "b", "a3") == "ww"
    world.release("a1")
    assert states(world, "b", "a3", "a4") == "gww"


def test_who_stays_within_the_limit_goes_before_who_borrows() -> None:
    """In one batch: a ticket of low priority within its limit, and one of high priority beyond."""
    world = World()
    member(world, "a", 1, borrowing=2)
    member(world, "b", 2)
    world.ask("a0", {"a": 1})
    world.pause("a")
    world.pause("b")
    world.ask("a1", {"a": 1}, priority=9)
    world.ask("b0", {"b": 2})
    for name in ("a", "b"):  # what is paused lends nothing, so a1 waits for b
        world.pause(name, False)
    assert states(world, "a1", "b0") == "wg"


def test_the_order_of_a_line_stays() -> None:
    """A large ticket that would borrow is not overtaken by a small one behind it."""
    world = World()
    member(world, "a", 2, borrowing=2)
    member(world, "b", 2)
    world.ask("a0", {"a": 1})
    world.ask("b0", {"b": 1})
    world.ask("a1", {"a": 3})
    world.ask("a2", {"a": 1})
    assert states(world, "a1", "a2") == "ww"
    world.release("b0")
    assert states(world, "a1", "a2") == "gw"


def test_a_request_for_more_than_can_be_borrowed_is_refused() -> None:
    """The most is the limit and the `borrowing` of its pool."""
    world = World()
    member(world, "a", 2, borrowing=2)
    member(world, "b", 9)
    with Refused(Code.UNITS_ABOVE_LIMIT):
        world.ask("x", {"a": 5})
    world.ask("y", {"a": 4})
    assert states(world, "y") == "g"


def test_two_tickets_above_the_limits_of_their_pools_do_not_wait_for_each_other() -> None:
    """Each needs the other pool's unit: the one that asked first gets both."""
    world = World()
    for name in "ab":
        member(world, name, 1, borrowing=1)
        world.ask(f"{name}0", {name: 1})
    world.ask("b1", {"b": 2})
    world.ask("a1", {"a": 2})
    world.release("a0")
    assert states(world, "b1", "a1") == "ww"
    world.release("b0")
    assert states(world, "b1", "a1") == "gw"
    world.release("b1")
    assert states(world, "a1") == "g"


def test_a_ticket_above_the_limit_of_its_pool_lends_also_while_it_can_borrow_nothing() -> None:
    """One that goes before it gets the units, though all that it could borrow is in use."""
    world = World()
    member(world, "a", 1, borrowing=1)
    member(world, "b", 2, borrowing=1)
    world.ask("a0", {"a": 1})
    world.ask("b0", {"b": 3})
    world.ask("a1", {"a": 1})
    assert states(world, "b0", "a1") == "ww"
    world.ask("a2", {"a": 1}, priority=1)
    assert states(world, "b0", "a1", "a2") == "wwg"
    for name in ("a0", "a2"):
        world.release(name)
    assert states(world, "b0", "a1") == "wg"
    world.release("a1")
    assert states(world, "b0") == "g"


def test_a_ticket_with_allocations_does_not_borrow_and_holds_nobody_up() -> None:
    """What it can never get is refused; after a lower limit it is passed over."""
    world = World()
    world.claim = lambda _: None
    member(world, "a", 1, borrowing=2)
    member(world, "b", 2)
    with Refused(Code.UNITS_ABOVE_LIMIT):
        world.ask("x", {"a": 2}, allocations="1")
    member(world, "a", 2, borrowing=2)
    world.ask("a0", {"a": 1})
    world.ask("a1", {"a": 2}, allocations="1")
    assert states(world, "a0", "a1") == "gw"
    member(world, "a", 1, borrowing=2)
    world.release("a0")
    world.ask("a2", {"a": 1})
    world.ask("a3", {"a": 1})
    assert states(world, "a1", "a2", "a3") == "wgg"


def test_a_pull_ticket_that_nobody_waits_for_borrows_when_it_is_polled() -> None:
    """It sets nothing aside, but takes what is there; one in the limit goes before it."""
    world = World()
    member(world, "a", 1, borrowing=1)
    member(world, "b", 1)
    until = world.moment.alive + 30 * SECOND
    world.ask("b0", {"b": 1})
    world.ask("a0", {"a": 2}, pull=True, patience=30 * SECOND, heard_until=until)
    assert states(world, "a0") == "w"
    world.release("b0")
    assert states(world, "a0") == "w"
    world.poll("a0", 30)
    assert states(world, "a0") == "g"


def test_a_paused_pool_lends_nothing_new() -> None:
    """What it has lent stays lent, and the others keep what is theirs."""
    world = World()
    member(world, "a", 1, borrowing=2)
    member(world, "b", 2)
    member(world, "d", 1)
    world.ask("a0", {"a": 2})
    world.pause("b")
    world.ask("a1", {"a": 1})
    world.ask("d0", {"d": 1})
    assert states(world, "a0", "a1", "d0") == "gwg"
    world.ask("b0", {"b": 1})
    world.pause("b", False)
    assert states(world, "a1", "b0") == "wg"


def test_a_lowered_limit_of_a_lender_ends_nothing() -> None:
    """Nothing is granted that would keep the sum above; reclaim is by not granting."""
    world = World()
    member(world, "a", 1, borrowing=3)
    member(world, "b", 3)
    world.ask("a0", {"a": 4})
    member(world, "b", 1)
    world.ask("b0", {"b": 1})
    assert states(world, "a0", "b0") == "gw"
    world.release("a0")
    assert states(world, "b0") == "g"


def test_a_cooldown_of_a_lender_wakes_those_who_would_borrow() -> None:
    """The lender has no line of its own, but its units are waited for."""
    world = World()
    member(world, "a", 1, borrowing=1)
    member(world, "b", 1, cooldown=10 * SECOND)
    world.ask("a0", {"a": 1})
    world.ask("b0", {"b": 1})
    world.ask("a1", {"a": 1})
    world.release("b0")
    assert states(world, "a1") == "w"
    world.wait(11)
    assert states(world, "a1") == "g"


def test_a_retry_of_what_was_borrowed_waits() -> None:
    """It gives its unit back first, so a lender's ticket is not kept waiting by retries."""
    world = World()
    member(world, "a", 1, borrowing=1)
    member(world, "b", 1)
    world.ask("a0", {"a": 1})
    world.ask("a1", {"a": 1})
    world.ask("b0", {"b": 1})
    world.retry("a1", make_ask("r", {"a": 1}), OPERATOR)
    assert states(world, "r", "b0") == "wg"


@pytest.mark.parametrize(
    "more",
    [
        {"cohort": "Not A Path"},
        {"cohort": None, "borrowing": 1},
        {"cohort": None, "lending": 1},
        {"borrowing": -1},
        {"lending": -1},
        {"per_member": 2, "member_group": "g"},
    ],
    ids=str,
)
def test_invalid_cohorts_are_refused(more: dict[str, object]) -> None:
    """Units per member cannot be lent, and nothing can without a cohort."""
    with Refused(Code.INVALID):
        member(World(), "a", 1, **more)


def test_slots_cannot_be_lent() -> None:
    """They have names, which belong to one pool."""
    world = World()
    world.slots("s", "s1")
    with Refused(Code.INVALID):
        world.pool("s", None, cohort="c")


def test_gangs_and_cohorts_exclude_each_other() -> None:
    """A request names no other pool; a pool with a gang in its line cannot join; 32 pools may."""
    world = World()
    world.pool("p", 1)
    world.pool("q", 1)
    world.ask("x", {"p": 1})
    world.ask("g", {"p": 1, "q": 1})
    with Refused(Code.INVALID):
        member(world, "p", 1)
    member(world, "a", 1)
    with Refused(Code.INVALID):
        world.ask("h", {"a": 1, "q": 1})
    for n in range(1, COHORT_POOLS_MAX):
        member(world, f"a{n}", 1)
    with Refused(Code.INVALID):
        member(world, "more", 1)
    member(world, "a", 2)


class Check:
    """Random commands on three pools of a cohort, with a naive check of the rule after each."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.world = World(page=self.random.choice([1, 4]))
        self.count = 0
        for name in "abc":
            self.put(name)

    def put(self, name: str) -> None:
        draw = self.random.choice
        member(
            self.world,
            name,
            draw([0, 1, 2, 4]),
            borrowing=draw([0, 1, 3, 9]),
            lending=draw([None, None, 0, 1, 2]),
            cooldown=draw([0, 0, 5 * SECOND]),
        )

    def run(self) -> None:
        for _ in range(100):
            before = {key for key, state in self.world.states().items() if state == "g"}
            self.act()
            self.check(before)

    def act(self) -> None:
        draw = self.random.choice
        what = draw(["ask"] * 5 + ["end"] * 4 + ["wait"] * 2 + ["put", "pause"])
        live = [key for key, state in self.world.states().items() if state in "wg"]
        if what == "ask":
            self.count += 1
            need = {draw("abc"): draw([1, 1, 1, 2, 3])}
            try:
                self.world.ask(f"t{self.count}", need, priority=draw([0, 0, 1]))
            except Exception as refusal:
                assert getattr(refusal, "code", None) == Code.UNITS_ABOVE_LIMIT
        elif what == "end" and live:
            self.world.release(draw(live))
        elif what == "wait":
            self.world.wait(draw([1, 6]))
        elif what == "put":
            self.put(draw("abc"))
        elif what == "pause":
            self.world.pause(draw("abc"), draw([True, False, False]))

    def check(self, held: set[str]) -> None:
        facts, at = self.world.facts, self.world.moment
        assert sums_differ(facts) == []
        used = {name: self._used(name, at) for name in "abc"}
        specs: dict[str, PoolSpec] = {name: facts.pools[name].spec for name in "abc"}
        limits = {name: spec.limit or 0 for name, spec in specs.items()}
        borrowed = {name: max(0, used[name] - limits[name]) for name in "abc"}
        unused = {name: max(0, limits[name] - used[name]) for name in "abc"}
        lent = sum(borrowed.values())
        states = self.world.states()
        fresh = [x for key, x in facts.leases.items() if states[key] == "g" and key not in held]
        if sum(used.values()) > sum(limits.values()):  # a limit was lowered
            assert not any(borrowed[x.needs[0].pool] for x in fresh), "the sum of the limits"
        lends = {
            name: min(unused[name], unused[name] if spec.lending is None else spec.lending)
            for name, spec in specs.items()
        }
        for lease in fresh:
            name = lease.needs[0].pool
            if borrowed[name]:
                assert borrowed[name] <= specs[name].borrowing, "its borrowing"
                assert lent <= sum(lends.values()), "more is borrowed than is lent"
        self._must(states, limits, unused, lends, lent, fresh, borrowed)

    def _must(
        self,
        states: dict[str, str],
        limits: dict[str, int],
        unused: dict[str, int],
        lends: dict[str, int],
        lent: int,
        fresh: list[Lease],
        borrowed: dict[str, int],
    ) -> None:
        """The first in line within its limit starts; nobody borrows what it waits for."""
        facts = self.world.facts
        for name in "abc":
            line = [x for x in facts.leases.values() if x.state == "waiting"]
            line = [x for x in line if x.needs[0].pool == name]
            if not line or facts.pools[name].paused:
                continue
            spec = facts.pools[name].spec
            line = [x for x in line if x.needs[0].units <= limits[name] + spec.borrowing]
            if not line:
                continue
            first = min(line, key=lambda x: (-x.priority, x.arrival))
            units = first.needs[0].units
            cover = sum(lends.values()) - lent
            own = unused[name] - lends[name] + max(0, min(lends[name], cover))
            assert units > own, f"{first.id} fits within the limit of {name} and waits"
            if units <= unused[name] and fresh:
                taken = [x for x in fresh if borrowed[x.needs[0].pool]]
                assert not taken, f"{taken} borrow what {first.id} waits for"

    def _used(self, name: str, at: Moment) -> int:
        pool = self.world.facts.pools[name]
        return pool.occupied + sum(rest.units for rest in pool.resting if rest.until > at.at)


@pytest.mark.parametrize("seed", range(60))
def test_random_commands(seed: int) -> None:
    """No sum is exceeded, no unit idles that the first in line may have, lenders go first."""
    Check(seed).run()


def test_units_of_a_paused_pool_are_waited_for_until_they_have_rested() -> None:
    """They cover what others have borrowed before, so a pool within its limit gets its own."""
    world = World()
    member(world, "a", 5)
    member(world, "b", 5, cooldown=10 * SECOND)
    member(world, "c", 1, borrowing=5)
    world.ask("c0", {"c": 6})
    world.ask("b0", {"b": 5})
    world.ask("a0", {"a": 1})
    assert states(world, "c0", "b0", "a0") == "ggw"
    world.pause("b")
    world.release("b0")
    assert states(world, "a0") == "w"
    assert world.facts.pools["b"].wake_at == world.now + 10 * SECOND
    world.wait(10)
    assert states(world, "a0") == "g"
    assert world.facts.pools["b"].wake_at is None


def test_who_has_no_quota_left_by_borrowing_holds_up_nobody() -> None:
    """The units that its next ticket was to borrow are others': the pool is due at once."""
    world = World()
    member(world, "a", 2, borrowing=2, quota=3)
    member(world, "b", 2)
    world.ask("first", {"a": 1}, owner="y")
    world.pause("a")
    world.ask("x1", {"a": 2}, owner="x")
    world.ask("x2", {"a": 2}, owner="x")
    world.ask("y", {"a": 1}, owner="y")
    world.pause("a", paused=False)
    assert states(world, "first", "x1", "x2", "y") == "ggww"
    assert world.facts.pools["a"].wake_at == world.now  # whichever process looks at it
    world.sweep()
    assert states(world, "first", "x1", "x2", "y") == "ggwg"
    assert world.facts.pools["a"].wake_at is None


def test_who_has_borrowed_its_last_units_is_looked_at_once() -> None:
    """The control: it has got what was set aside for it, so nothing is left for another batch."""
    world = World()
    member(world, "a", 2, borrowing=2, quota=3)
    member(world, "b", 2)
    world.ask("first", {"a": 1}, owner="y")
    world.ask("x1", {"a": 2}, owner="x")
    assert states(world, "first", "x1") == "gg"
    assert world.facts.pools["a"].wake_at is None
