"""Tickets that ask for slots by label: who gets which slot, who waits, and why."""

from msgspec import structs

from moorage.core.admission.facts import Changes
from moorage.core.admission.forecast import why
from moorage.core.admission.forecast.eta import Waiter, queue_of
from moorage.core.admission.forecast.holders import SlotHolder
from moorage.core.admission.model import Lease, Need
from moorage.core.clock import HOUR, MINUTE
from moorage.core.errors import Code
from moorage.core.limits import WISHES_MAX
from moorage.core.wishes import wanted_of
from moorage.wire.labels import Naming
from tests.core.admission.build import Refused, World


def labelled(world: World, pool: str, **regions: str) -> None:
    """Add slots with a label `region` each."""
    world.slots(pool, *regions)
    slots = world.facts.slots[pool]
    changes = Changes()
    for name, region in regions.items():
        changes.slots[pool, name] = structs.replace(slots[name], labels={"region": region})
    world.do((changes, None))


def in_region(region: str, units: int = 1, pool: str = "p") -> tuple[Need, ...]:
    """Return the need of slots with this label."""
    return (Need(pool, units, wanted=wanted_of({"region": region})),)


def names(world: World, key: str) -> tuple[str, ...]:
    """Return the slots of a lease in pool `p`; empty: it waits."""
    return world.lease(key).slots.get("p", ())


def standing(world: World, ticket: Lease, *holders: SlotHolder) -> why.Standing:
    """Return the standing of a ticket of pool `p`; `holders`: the leases that are known."""
    pool = world.facts.pools["p"]
    line = [one for one in world.facts.leases.values() if one.state == "waiting"]
    waiters = [Waiter(one.id, one.needs[0].units, one.owner, lease=one) for one in line]
    queue = queue_of(world.facts, world.moment, pool, waiters)
    view = why.view_of(world.facts, pool, why.Evidence(slotted=holders, line=queue.line))
    place = {"p": queue.place_of(ticket, "p")}
    return why.standing(world.facts, world.moment, ticket, place, {"p": view})


def test_a_slot_with_the_label_is_granted() -> None:
    """A request by label gets a slot that has it, even if another slot has been free longer."""
    world = World()
    labelled(world, "p", us1="us", eu1="eu")
    world.ask("a", in_region("eu"))
    assert names(world, "a") == ("eu1",)


def test_who_waits_for_a_label_blocks_nobody_else() -> None:
    """While no slot of the label is free, later tickets get the others; it comes first for its."""
    world = World()
    labelled(world, "p", us1="us", us2="us", eu1="eu")
    world.ask("holder", in_region("eu"))
    world.ask("first", in_region("eu"))
    world.ask("other", in_region("us"))
    world.ask("any")
    assert (names(world, "first"), names(world, "other"), names(world, "any")) == (
        (),
        ("us1",),
        ("us2",),
    )
    world.ask("later", in_region("eu"))
    world.ask("last")
    world.release("holder")
    assert names(world, "first") == ("eu1",)
    assert names(world, "later") == names(world, "last") == ()


def test_who_takes_any_slot_leaves_the_rare_one() -> None:
    """A ticket without labels gets a slot that no ticket of the line asks for by label."""
    world = World()
    labelled(world, "p", eu1="eu", us1="us", us2="us")
    world.pause("p")
    world.ask("any")
    world.ask("rare", in_region("eu"))
    world.pause("p", paused=False)
    assert names(world, "rare") == ("eu1",)
    assert names(world, "any") == ("us1",)


def test_a_gang_sets_only_fitting_slots_aside() -> None:
    """What waits for another pool keeps a slot with its label; tickets for other labels go on."""
    world = World()
    world.pool("q", 1)
    labelled(world, "p", eu1="eu", us1="us")
    world.ask("busy", {"q": 1})
    world.ask("gang", (*in_region("eu"), Need("q", 1)))
    world.ask("eu", in_region("eu"))
    world.ask("us", in_region("us"))
    assert (names(world, "gang"), names(world, "eu"), names(world, "us")) == ((), (), ("us1",))
    world.release("busy")
    assert names(world, "gang") == ("eu1",)


def test_impossible_labels_are_refused() -> None:
    """A request that the pool's slots can never serve is refused, and says how many there are."""
    world = World()
    labelled(world, "p", eu1="eu", us1="us")
    with Refused(Code.UNITS_ABOVE_LIMIT) as refused:
        world.ask("a", in_region("eu", 2))
    assert "2 slots with region=eu of pool 'p'" in refused.message
    assert "only 1" in refused.message


def test_labels_need_named_slots() -> None:
    """A pool with a number as its limit has no slots, so none with labels."""
    world = World()
    world.pool("p", 3)
    with Refused(Code.INVALID):
        world.ask("a", in_region("eu"))


def test_the_reason_names_the_labels_and_their_holders() -> None:
    """The reason counts slots with the labels only, and names who holds them."""
    world = World()
    labelled(world, "p", us1="us", eu1="eu")
    world.ask("a", in_region("eu"), owner="ann")
    world.ask("b", in_region("eu"))
    found = standing(world, world.lease("b"))
    assert found.code == "limit"
    assert found.reason == "first in line; limit: 1 of 1 slot of p with region=eu is held by ann"


def test_the_reason_names_the_jobs_that_hold_slots_with_the_label() -> None:
    """It names holders by their labels, with units and times, and nobody who has other slots."""
    world = World()
    labelled(world, "p", us1="us", eu1="eu", eu2="eu", eu3="eu")
    for key, needs in (("a", in_region("eu", 2)), ("b", in_region("us")), ("c", in_region("eu"))):
        world.ask(key, needs, owner="ci", ttl=HOUR)
    names = (("a", Naming("ci", job="4711", host="runner-7")), ("b", Naming("ci", job="12")))
    holders = [SlotHolder(world.lease(key).id, world.moment.at, naming) for key, naming in names]
    world.now += 7 * MINUTE
    world.ask("d", in_region("eu"))
    assert standing(world, world.lease("d"), *holders).reason == (
        "first in line; limit: 3 of 3 slots of p with region=eu are held by"
        " job 4711 on runner-7 (ci) (2) for 7m, ci"
    )


def test_a_label_that_went_is_passed_over() -> None:
    """A ticket whose slots have lost the label is passed over, and says so, until they return."""
    world = World()
    labelled(world, "p", us1="us", eu1="eu")
    world.ask("a", in_region("eu"))
    world.ask("b", in_region("eu"))
    world.ask("any0")
    world.ask("any1")
    assert standing(world, world.lease("any1")).position == 2
    slot = structs.replace(world.facts.slots["p"]["eu1"], labels={"region": "us"})
    world.do((Changes(slots={("p", "eu1"): slot}), None))
    assert standing(world, world.lease("any1")).position == 1
    found = standing(world, world.lease("b"))
    assert found.code == "labels"
    assert "region=eu, but it has 0 now" in found.reason
    assert found.eta_seconds is None


def test_different_labels_of_a_line_are_bounded() -> None:
    """A line asks for a bounded number of different labels: each costs time in every grant."""
    world = World()
    regions = {f"s{n}": f"r{n}" for n in range(WISHES_MAX + 1)}
    labelled(world, "p", **regions)
    for n in range(WISHES_MAX + 1):
        world.ask(f"holder{n}", in_region(f"r{n}"))
    for n in range(WISHES_MAX):
        world.ask(f"t{n}", in_region(f"r{n}"))
    with Refused(Code.QUEUE_FULL):
        world.ask("one-more", in_region(f"r{WISHES_MAX}"))
    world.ask("known", in_region("r0"))
