"""What a pool lets its users ask: the rules, decided in batches."""

import pytest

from moorage.core.admission import leases
from moorage.core.admission.bounds import EXEMPT
from moorage.core.admission.model import Need
from moorage.core.admission.requests import Proof
from moorage.core.clock import SECOND
from moorage.core.errors import Code
from moorage.core.limits import ASKERS_MAX
from tests.core.admission.build import Refused, World, wish

OPERATORS = frozenset({"reader", "user", "service", EXEMPT})
USERS = frozenset({"reader", "user"})


@pytest.fixture
def world() -> World:
    """A world without pools."""
    return World()


def test_one_owner_fills_what_is_free_and_its_part_of_the_line(world: World) -> None:
    """Of a batch that asks before anybody is granted, those do not count for whom there is room."""
    world.pool("p", 3, queue_max_per_owner=2)
    for n in range(5):
        made, _ = leases.ask(world.facts, world.moment, wish(f"a{n}", {"p": 1}))
        world.facts.apply(made)
    with Refused(Code.OWNER_QUEUE_FULL) as refused:
        leases.ask(world.facts, world.moment, wish("a5", {"p": 1}))
    assert "'me' has 5 tickets in the line of pool 'p'" in refused.message
    made, _ = leases.ask(world.facts, world.moment, wish("b", {"p": 1}, owner="other"))
    world.facts.apply(made)
    world.sweep()
    states = {"a0": "g", "a1": "g", "a2": "g", "a3": "w", "a4": "w", "b": "w"}
    assert world.states() == states


def test_who_is_at_its_quota_does_not_start(world: World) -> None:
    """Free units are no reason to wait on if the owner may not hold more."""
    world.pool("p", 9, quota=1, queue_max_per_owner=2)
    for key in ("a", "b", "c"):
        world.ask(key)
    assert world.states() == {"a": "g", "b": "w", "c": "w"}
    with Refused(Code.OWNER_QUEUE_FULL):
        world.ask("d")
    world.release("a")
    world.ask("d")


def test_tickets_that_end_or_are_granted_do_not_count(world: World) -> None:
    """Whatever has become of them; of a lease of several pools it waits in each."""
    world.pool("p", 1, queue_max_per_owner=1)
    world.pool("q", 1, queue_max_per_owner=1)
    world.ask("holder", {"p": 1, "q": 1}, owner="other")
    world.ask("a", {"p": 1, "q": 1})
    for needs in ({"p": 1}, {"q": 1}):
        with Refused(Code.OWNER_QUEUE_FULL):
            world.ask("b", needs)
    world.release("a")
    world.ask("b")
    world.release("holder")
    assert world.states()["b"] == "g"
    world.ask("c")


def test_a_retry_takes_the_place_of_its_ticket(world: World) -> None:
    """It is one ticket as before; the retry of a lease gives back a unit for those who wait."""
    world.pool("p", 1, queue_max_per_owner=1, on_retry="requeue")
    world.ask("holder")
    world.ask("a")
    world.retry("a", wish("b", {"p": 1}))
    assert world.states()["b"] == "w"
    world.retry("holder", wish("c", {"p": 1}))
    assert (world.states()["b"], world.states()["c"]) == ("g", "w")


def test_operators_and_what_is_forced_are_not_bound(world: World) -> None:
    """By anything here; by the length of the whole line they are."""
    world.pool(
        "p",
        1,
        hold=10 * SECOND,
        hold_max=20 * SECOND,
        priority_max=0,
        askers=("role:user",),
        queue_max_per_owner=1,
        queue_max=3,
    )
    world.ask("a", roles=USERS)
    world.ask("b", roles=USERS)
    with Refused(Code.OWNER_QUEUE_FULL):
        world.ask("c", roles=USERS)
    world.ask("c", roles=OPERATORS, priority=5, hold=60 * SECOND)
    world.ask("d", roles=OPERATORS)
    with Refused(Code.QUEUE_FULL):
        world.ask("e", roles=OPERATORS)
    with Refused(Code.ASKER_REFUSED):
        world.ask("e", roles=frozenset({"reader"}))
    world.ask("e", roles=USERS, forced=True)


def test_a_hold_counts_from_the_grant(world: World) -> None:
    """What was held already counts; a ticket's hold has not begun."""
    world.pool("p", 1, hold=10 * SECOND, hold_max=60 * SECOND)
    mine = Proof("me")
    world.ask("a")
    world.ask("b")
    world.hold("b", 60 * SECOND, mine)
    world.now += 5 * SECOND
    with Refused(Code.HOLD_ABOVE_MAX) as refused:
        world.hold("a", 56 * SECOND, mine)
    assert "which leaves 55 s from now" in refused.message
    world.hold("a", 55 * SECOND, mine)
    for wanted in (61 * SECOND, None):
        with Refused(Code.HOLD_ABOVE_MAX):
            world.hold("b", wanted, mine)
    world.hold("a", None)


@pytest.mark.parametrize(
    ("askers", "words"),
    [
        (("a",) * (ASKERS_MAX + 1), f"askers may have at most {ASKERS_MAX} entries."),
        (("role:king",), "askers: there is no role 'king'; the roles are reader, "),
        (("a*b",), "askers: 'a*b' is not an owner, PROJECT/* or role:ROLE."),
    ],
)
def test_a_refusal_of_askers_names_the_field(
    world: World, askers: tuple[str, ...], words: str
) -> None:
    """As every refusal of a pool's fields does."""
    with Refused(Code.INVALID) as refused:
        world.pool("p", askers=askers)
    assert refused.message.startswith(words)


def test_a_role_is_no_owner(world: World) -> None:
    """Whoever is called like an entry of roles has no right by that."""
    world.pool("p", 9, askers=("role:service", "ci/*"))
    for owner in ("role:service", "service", "ci", "cix/a", "user"):
        with Refused(Code.ASKER_REFUSED):
            world.ask("a", owner=owner, roles=USERS)
    world.ask("a", owner="ci/a", roles=USERS)
    world.ask("b", owner="any", roles=frozenset({"reader", "user", "service"}))


def test_a_project_may_be_called_like_a_role(world: World) -> None:
    """An entry with a slash stands for the owners of a project, whatever that is called."""
    world.pool("p", 9, askers=("role:service/a", "role:user/*"))
    for owner in ("role:service/b", "role:user"):
        with Refused(Code.ASKER_REFUSED):
            world.ask("a", owner=owner, roles=OPERATORS - {EXEMPT})
    world.ask("a", owner="role:service/a")
    world.ask("b", owner="role:user/any")


def test_slots_that_nobody_waits_for_let_nobody_wait_on(world: World) -> None:
    """Dirty slots start nobody who waits for free ones; those do not count as starting."""
    world.slots("p", "held")
    world.slots("p", "d1", "d2", "d3", state="dirty")
    world.pool("p", None, queue_max=2, queue_max_per_owner=1)
    world.ask("holder")
    world.ask("a")
    with Refused(Code.OWNER_QUEUE_FULL):
        world.ask("b")
    world.ask("b", owner="other")
    with Refused(Code.QUEUE_FULL):
        world.ask("c", owner="third")
    janitors = (Need("p", 1, "dirty", "cleaning"),)
    world.release("a")
    world.ask("janitor", janitors, owner="third")
    assert world.states()["janitor"] == "g"


def test_a_retry_gives_back_what_its_owner_may_hold(world: World) -> None:
    """What is given back counts for the quota, too: the ticket that waits for it starts."""
    world.pool("p", 2, quota=1, queue_max_per_owner=1, on_retry="requeue")
    world.ask("holder")
    world.ask("a")
    world.retry("holder", wish("b", {"p": 1}))
    assert world.states() == {"holder": "retried", "a": "g", "b": "w"}


def test_the_retry_of_a_slot_gives_it_to_who_waits(world: World) -> None:
    """It is given back before its holder stands in line, where there is then room for one more."""
    world.slots("p", "s")
    world.pool("p", None, queue_max=1, on_retry="requeue")
    world.ask("holder")
    world.ask("a")
    world.retry("holder", wish("b", {"p": 1}))
    assert world.states() == {"holder": "retried", "a": "g", "b": "w"}


def test_a_project_is_none_that_its_name_begins_with(world: World) -> None:
    """`PROJECT/*` stands for the owners of this project: names of projects may have slashes."""
    world.pool("p", 9, askers=("a/*",))
    for owner in ("a", "a/b/c", "ab/c"):
        with Refused(Code.ASKER_REFUSED):
            world.ask("x", owner=owner, roles=USERS)
    world.ask("x", owner="a/c", roles=USERS)
    world.pool("p", 9, askers=("a/b/*",))
    for owner in ("a/c", "a/b"):
        with Refused(Code.ASKER_REFUSED):
            world.ask("y", owner=owner, roles=USERS)
    world.ask("y", owner="a/b/c", roles=USERS)
