"""Granting: in order, gangs as a whole, and no unit stays free that could be granted."""

import pytest

from moorage.core.admission.model import Need, Pacing
from moorage.core.clock import SECOND
from tests.core.admission.build import START, World


@pytest.fixture
def world() -> World:
    """Return a world with pool p of two units."""
    made = World()
    made.pool("p", 2)
    return made


def test_a_free_unit_is_granted_at_once(world: World) -> None:
    """The ticket becomes a lease in the batch of its request."""
    world.ask("a", ttl=10 * SECOND, hold=20 * SECOND)
    lease = world.lease("a")
    assert (lease.state, lease.granted_at) == ("granted", START)
    assert (lease.heard_until, lease.hold_until) == (START + 10 * SECOND, START + 20 * SECOND)
    assert str(lease.token) == "1.2.0"
    assert (world.facts.pools["p"].occupied, world.facts.pools["p"].waiting) == (1, 0)


def test_two_gangs_of_two_on_a_pool_of_two(world: World) -> None:
    """One gang gets all its units, then the other; never a part of each."""
    world.ask("a", {"p": 2})
    world.ask("b", {"p": 2})
    assert world.states() == {"a": "g", "b": "w"}
    world.release("a")
    assert world.states() == {"a": "released", "b": "g"}


def test_two_gangs_over_crossed_pools() -> None:
    """Gangs over x and y, and over y and x, do not deadlock."""
    world = World()
    world.pool("x")
    world.pool("y")
    world.ask("a", {"x": 1, "y": 1})
    world.ask("b", {"y": 1, "x": 1})
    assert world.states() == {"a": "g", "b": "w"}
    world.release("a")
    assert world.states()["b"] == "g"


def test_units_for_a_gang_are_set_aside(world: World) -> None:
    """Later tickets get only units that are not set aside for the gang."""
    world.pool("q", 1)
    world.ask("holder", {"q": 1})
    world.ask("gang", {"p": 1, "q": 1})
    world.ask("late", {"p": 1})
    world.ask("later", {"p": 1})
    assert world.states() == {"holder": "g", "gang": "w", "late": "g", "later": "w"}
    world.release("holder")
    assert world.states()["gang"] == "g"
    assert world.states()["later"] == "w"


def test_a_large_ticket_is_not_starved(world: World) -> None:
    """A freed unit is set aside for a ticket that needs two, although a later one needs one."""
    world.ask("a")
    world.ask("b")
    world.ask("two", {"p": 2})
    world.ask("one")
    world.release("a")
    assert world.states() == {"a": "released", "b": "g", "two": "w", "one": "w"}
    world.release("b")
    assert world.states()["two"] == "g"


def test_priority_goes_before_arrival(world: World) -> None:
    """A higher priority is granted first, and among equals the earlier arrival."""
    world.ask("full", {"p": 2})
    for key, priority in (("low", -1), ("one", 0), ("two", 0), ("high", 5)):
        world.ask(key, priority=priority)
    world.release("full")
    assert set(world.holders()) == {"high", "one"}
    world.release("high")
    assert set(world.holders()) == {"one", "two"}


def test_a_lowered_limit_revokes_nothing_and_passes_over_larger_tickets(world: World) -> None:
    """A pool over its limit grants nothing; a ticket above the limit is passed over."""
    world.ask("both", {"p": 2})
    world.ask("wide", {"p": 2})
    world.ask("narrow")
    world.pool("p", 1)
    assert world.states() == {"both": "g", "wide": "w", "narrow": "w"}
    assert world.facts.pools["p"].occupied == 2
    world.release("both")
    assert world.states() == {"both": "released", "wide": "w", "narrow": "g"}
    world.pool("p", 3)
    assert world.states()["wide"] == "g"


def test_a_raised_limit_grants(world: World) -> None:
    """Tickets that fit below the new limit are granted in the same batch."""
    world.ask("a", {"p": 2})
    world.ask("b", {"p": 2})
    world.pool("p", 4)
    assert world.states() == {"a": "g", "b": "g"}


def test_a_paused_pool_grants_nothing_and_delays_no_other_pool(world: World) -> None:
    """A gang that needs a paused pool sets nothing aside elsewhere; resuming grants by rank."""
    world.pool("q", 1)
    world.pause("p")
    world.ask("gang", {"p": 1, "q": 1})
    world.ask("a")
    world.ask("b", {"q": 1})
    assert world.states() == {"gang": "w", "a": "w", "b": "g"}
    world.pause("p", paused=False)
    assert world.states() == {"gang": "w", "a": "g", "b": "g"}
    world.ask("c")
    assert world.states()["c"] == "w", "the other unit is set aside for the gang now"
    world.release("b")
    assert world.states()["gang"] == "g"


def test_quota_is_per_owner_and_delays_no_other_owner() -> None:
    """A ticket of an owner at its quota is passed over until the owner releases a unit."""
    world = World()
    world.pool("p", 3, quota=1)
    world.ask("a1", owner="a")
    world.ask("a2", owner="a")
    world.ask("b1", owner="b")
    assert world.states() == {"a1": "g", "a2": "w", "b1": "g"}
    world.release("a1")
    assert world.states()["a2"] == "g"


def test_a_lowered_quota_is_like_a_lowered_limit() -> None:
    """A lowered quota revokes nothing; the owner gets nothing until it is below the quota."""
    world = World()
    world.pool("p", 3, quota=2)
    world.ask("a1")
    world.ask("a2")
    world.pool("p", 3, quota=1)
    world.ask("a3")
    world.release("a1")
    assert world.states() == {"a1": "released", "a2": "g", "a3": "w"}
    world.release("a2")
    assert world.states()["a3"] == "g"


def test_a_quota_is_kept_within_one_scan(world: World) -> None:
    """Grants of a scan count towards the quota of later tickets in the same scan."""
    world.pool("p", 2, quota=1)
    world.pause("p")
    world.ask("a1", owner="a")
    world.ask("a2", owner="a")
    world.ask("b1", owner="b")
    world.pause("p", paused=False)
    assert set(world.holders()) == {"a1", "b1"}


def test_forced_tickets_ignore_all_bounds() -> None:
    """Forced tickets ignore limit, pause, pacing and quota, but count as occupied."""
    world = World()
    world.pool("p", 1, quota=1, pacing=Pacing(30 * SECOND))
    world.ask("a")
    world.pause("p")
    world.ask("f", {"p": 2}, forced=True)
    assert world.states() == {"a": "g", "f": "g"}
    assert world.facts.pools["p"].occupied == 3
    world.pause("p", paused=False)
    world.wait(30)
    world.ask("b", owner="b")
    world.release("a")
    assert world.states()["b"] == "w"
    world.release("f")
    assert world.states()["b"] == "g", "a forced grant does not pay for pacing"


def test_a_forced_gang_over_slots_and_units(world: World) -> None:
    """Forced tickets get existing slots before all waiting tickets."""
    world.slots("s", "one")
    world.ask("full", {"p": 2})
    world.ask("gang", {"s": 1, "p": 1})
    world.ask("f", {"s": 1, "p": 1}, forced=True)
    assert world.states() == {"full": "g", "gang": "w", "f": "g"}
    assert world.lease("f").slots == {"s": ("one",)}


def test_cooldown_delays_a_freed_unit() -> None:
    """A freed unit is granted when its cooldown is over, by a sweep and not before."""
    world = World()
    world.pool("p", 1, cooldown=10 * SECOND)
    world.ask("a")
    world.ask("b")
    world.release("a")
    assert world.states()["b"] == "w"
    assert world.facts.pools["p"].wake_at == START + 10 * SECOND
    world.wait(9.9)
    assert world.states()["b"] == "w"
    world.wait(0.1)
    assert world.states()["b"] == "g"
    assert world.facts.pools["p"].wake_at is None


def test_a_pull_ticket_of_boskos_is_granted_only_in_its_own_poll(world: World) -> None:
    """Until its poll, units are set aside for a pull ticket."""
    world.ask("full", {"p": 2})
    until = world.moment.alive + 30 * SECOND
    world.ask("pull", owner="boskos:x", pull=True, patience=30 * SECOND, heard_until=until)
    world.ask("a")
    world.ask("b")
    world.release("full")
    assert world.states() == {"full": "released", "pull": "w", "a": "g", "b": "w"}
    world.poll("pull")
    assert world.states()["pull"] == "g"


def test_a_silent_pull_ticket_of_boskos_is_passed_over(world: World) -> None:
    """Ten seconds after its last poll a pull ticket is passed over, but keeps its rank."""
    world.ask("full", {"p": 2})
    until = world.moment.alive + 30 * SECOND
    world.ask("pull", {"p": 2}, owner="boskos:x", pull=True, heard_until=until)
    world.ask("a")
    world.release("full")
    assert world.states()["a"] == "w"
    assert world.facts.pools["p"].wake_at == START + 10 * SECOND + 1
    world.wait(9)
    assert world.states()["a"] == "w"
    world.wait(1.1)
    assert world.states() == {"full": "released", "pull": "w", "a": "g"}
    world.wait(20)
    assert world.states()["pull"] == "unheard"


def test_a_misfit_sets_nothing_aside(world: World) -> None:
    """A ticket that does not fit keeps the reason as its detail, and is tried again in its turn."""
    room = {"left": 0}

    def claim(ticket: object) -> str | None:
        if room["left"] < 1:
            return "no VCPU is left"
        room["left"] -= 1
        return None

    world.claim = claim
    world.ask("big", {"p": 2}, allocations="{}")
    world.ask("small", {"p": 1})
    assert world.states() == {"big": "w", "small": "g"}
    assert world.lease("big").detail == "no VCPU is left"
    world.release("small")
    assert world.states()["big"] == "w"
    room["left"] = 1
    world.sweep()
    world.pool("p", 3)
    assert world.states()["big"] == "g"
    assert (world.lease("big").detail, room["left"]) == ("", 0)


def test_allocations_without_a_ledger_are_an_error(world: World) -> None:
    """Tickets with allocations are not granted if the ledger cannot be asked."""
    with pytest.raises(ValueError, match="must be a way to claim"):
        world.ask("a", allocations="{}")


def test_slots_are_granted_by_state_the_longest_free_first(world: World) -> None:
    """A granted slot gets an owner; a released one is granted after all slots freed before."""
    world.slots("s", "b", "a", "c")
    world.slots("s", "x", state="dirty")
    world.ask("one", {"s": 1})
    assert world.lease("one").slots == {"s": ("b",)}
    slot = world.facts.slots["s"]["b"]
    assert (slot.owner, slot.lease, slot.state) == ("me", "one", "leased")
    world.ask("two", {"s": 2})
    assert world.lease("two").slots == {"s": ("a", "c")}
    world.ask("three", {"s": 1})
    assert world.states()["three"] == "w", "a dirty slot is not granted as a free one"
    world.ask("wash", (Need("s", 1, "dirty", "cleaning"),))
    assert world.facts.slots["s"]["x"].state == "cleaning"
    world.release("two", states={"s": "dirty"})
    assert world.facts.slots["s"]["a"].state == "dirty"
    assert world.states()["three"] == "w"
    world.release("one")
    assert world.lease("three").slots == {"s": ("b",)}


def test_only_free_slots_have_a_cooldown(world: World) -> None:
    """A slot that is released as free has a cooldown; a dirty one may be cleaned at once."""
    world.pool("s", None, cooldown=10 * SECOND)
    world.slots("s", "a")
    world.ask("one", {"s": 1})
    world.release("one", states={"s": "dirty"})
    world.ask("wash", (Need("s", 1, "dirty", "cleaning"),))
    assert world.states()["wash"] == "g"
    world.ask("two", {"s": 1})
    world.release("wash")
    assert world.states()["two"] == "w"
    world.wait(10)
    assert world.states()["two"] == "g"


def test_a_line_is_not_read_without_free_units(world: World) -> None:
    """Without free units a line is not read for new requests or withdrawals."""
    world.ask("full", {"p": 2})
    for n in range(20):
        world.ask(f"w{n}")
    world.release("w7")
    assert world.loads == 0


def test_a_line_is_not_read_for_slots_in_other_states() -> None:
    """Unowned dirty slots do not cause reads of a line that waits for free slots."""
    world = World()
    world.slots("s", "a")
    world.slots("s", "b", "c", state="dirty")
    world.ask("holder", {"s": 1})
    for n in range(20):
        world.ask(f"w{n}", {"s": 1})
    assert world.facts.pools["s"].awaited == {"free": 20}
    world.ask("wash", (Need("s", 1, "dirty", "cleaning"),))
    assert world.states()["wash"] == "g"
    before = world.loads
    world.release("w3")
    assert world.loads == before
    world.release("wash")
    assert world.states()["w0"] == "g"
    assert world.facts.pools["s"].awaited == {"free": 18}


def test_lines_are_read_as_far_as_needed(world: World) -> None:
    """A line is read past the tickets that are passed over, up to those that are granted."""
    world.ask("full", {"p": 2})
    world.pool("p", 4)
    world.ask("more", {"p": 2})
    for n in range(5):
        world.ask(f"wide{n}", {"p": 3})
    world.ask("narrow", {"p": 2})
    world.pool("p", 2)
    world.release("full")
    assert world.loads == 0, "the pool has nothing free"
    world.release("more")
    assert world.states()["narrow"] == "g"
    assert world.loads == 6


def test_a_gang_deep_in_a_line_is_seen_in_its_turn() -> None:
    """A gang behind many tickets of one pool has its unit of the other pool set aside."""
    world = World()
    world.pool("x", 1)
    world.pool("y", 2)
    world.ask("hx", {"x": 1})
    world.ask("hy", {"y": 2})
    for n in range(3):
        world.ask(f"x{n}", {"x": 1})
    world.ask("gang", {"x": 1, "y": 1})
    world.ask("y0", {"y": 1})
    world.ask("y1", {"y": 1})
    world.release("hy")
    assert world.states()["y0"] == "g"
    assert world.states()["y1"] == "w", "one unit of y is set aside for the gang"
    for key in ("hx", "x0", "x1", "x2"):
        assert world.states()["gang"] == "w"
        world.release(key)
    assert world.states()["gang"] == "g"


def test_granting_twice_grants_once(world: World) -> None:
    """A second scan after a batch grants nothing more."""
    for n in range(5):
        world.ask(f"t{n}")
    before = world.states()
    revision = world.revision
    world.sweep()
    assert (world.states(), world.revision) == (before, revision)


def test_tokens_rise_within_a_batch(world: World) -> None:
    """Fencing tokens of one batch differ in N, in the order of granting."""
    world.ask("full", {"p": 2})
    world.ask("a")
    world.ask("b")
    world.release("full")
    tokens = [world.lease(key).token for key in ("full", "a", "b")]
    assert [str(token) for token in tokens] == ["1.2.0", "1.5.0", "1.5.1"]


@pytest.mark.parametrize("quota", [2, 3])
def test_what_a_gang_has_set_aside_is_free_once_its_owner_has_no_quota_left(quota: int) -> None:
    """A later ticket of its owner takes the rest of the quota in the scan that sets units aside.

    The control, a larger quota: the gang may get its units, so nobody looks again.
    """
    world = World()
    world.pool("p", 3, quota=quota)
    world.pool("q", 2)
    world.ask("holder", {"q": 1}, owner="b")
    world.pause("p")
    world.ask("gang", {"p": 2, "q": 2}, owner="a")
    world.ask("small", {"p": 1}, owner="a")
    world.ask("other", {"p": 2}, owner="b")
    world.pause("p", paused=False)
    assert world.states() == {"holder": "g", "gang": "w", "small": "g", "other": "w"}
    # Whichever process looks at it.
    assert world.facts.pools["p"].wake_at == (world.now if quota == 2 else None)
    world.sweep()
    assert world.states()["other"] == ("g" if quota == 2 else "w")
    assert world.facts.pools["p"].wake_at is None
