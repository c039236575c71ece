"""The bounds of a pool on what its users may ask for."""

import pytest

from moorage.core.admission import leases
from moorage.core.admission.bounds import EXEMPT
from moorage.core.admission.model import Need
from moorage.core.admission.requests import Proof
from moorage.core.clock import SECOND
from moorage.core.errors import Code
from moorage.core.limits import ASKERS_MAX
from tests.core.admission.build import Refused, World, make_ask

OPERATORS = frozenset({"reader", "user", "service", EXEMPT})
USERS = frozenset({"reader", "user"})


@pytest.fixture
def world() -> World:
    """Return a world without pools."""
    return World()


def test_an_owner_fills_free_units_and_its_part_of_the_line(world: World) -> None:
    """Tickets of one batch for which units are free do not count against the owner's part."""
    world.pool("p", 3, queue_max_per_owner=2)
    for n in range(5):
        made, _ = leases.acquire(world.facts, world.moment, make_ask(f"a{n}", {"p": 1}))
        world.facts.apply(made)
    with Refused(Code.OWNER_QUEUE_FULL) as refused:
        leases.acquire(world.facts, world.moment, make_ask("a5", {"p": 1}))
    assert "'me' has 5 tickets in the line of pool 'p'" in refused.message
    made, _ = leases.acquire(world.facts, world.moment, make_ask("b", {"p": 1}, owner="other"))
    world.facts.apply(made)
    world.sweep()
    states = {"a0": "g", "a1": "g", "a2": "g", "a3": "w", "a4": "w", "b": "w"}
    assert world.states() == states


def test_an_owner_at_its_quota_gets_no_room_for_free_units(world: World) -> None:
    """Free units do not make room in the line if the owner's quota is used up."""
    world.pool("p", 9, quota=1, queue_max_per_owner=2)
    for key in ("a", "b", "c"):
        world.ask(key)
    assert world.states() == {"a": "g", "b": "w", "c": "w"}
    with Refused(Code.OWNER_QUEUE_FULL):
        world.ask("d")
    world.release("a")
    world.ask("d")


def test_tickets_that_end_or_are_granted_do_not_count(world: World) -> None:
    """Ended and granted tickets do not count; a gang counts in the line of each of its pools."""
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
    """A retry of a ticket still counts once; that of a lease first frees a unit for the line."""
    world.pool("p", 1, queue_max_per_owner=1, on_retry="requeue")
    world.ask("holder")
    world.ask("a")
    world.retry("a", make_ask("b", {"p": 1}))
    assert world.states()["b"] == "w"
    world.retry("holder", make_ask("c", {"p": 1}))
    assert (world.states()["b"], world.states()["c"]) == ("g", "w")


def test_operators_and_forced_tickets_are_exempt(world: World) -> None:
    """Operators and forced tickets are exempt from all bounds but the length of the whole line."""
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
    """`hold_max` includes the time since the grant; the hold of a ticket has not begun."""
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
    """An owner whose name equals a `role:` entry gets no right from it."""
    world.pool("p", 9, askers=("role:service", "ci/*"))
    for owner in ("role:service", "service", "ci", "cix/a", "user"):
        with Refused(Code.ASKER_REFUSED):
            world.ask("a", owner=owner, roles=USERS)
    world.ask("a", owner="ci/a", roles=USERS)
    world.ask("b", owner="any", roles=frozenset({"reader", "user", "service"}))


def test_a_project_may_be_named_like_a_role(world: World) -> None:
    """An entry with a slash matches the owners of a project, even if it begins with `role:`."""
    world.pool("p", 9, askers=("role:service/a", "role:user/*"))
    for owner in ("role:service/b", "role:user"):
        with Refused(Code.ASKER_REFUSED):
            world.ask("a", owner=owner, roles=OPERATORS - {EXEMPT})
    world.ask("a", owner="role:service/a")
    world.ask("b", owner="role:user/any")


def test_slots_in_other_states_make_no_room_in_the_line(world: World) -> None:
    """Tickets for free slots count as waiting even if there are unowned dirty slots."""
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


def test_a_retry_frees_its_owners_quota(world: World) -> None:
    """The released unit no longer counts for the quota, so the ticket that waits for it starts."""
    world.pool("p", 2, quota=1, queue_max_per_owner=1, on_retry="requeue")
    world.ask("holder")
    world.ask("a")
    world.retry("holder", make_ask("b", {"p": 1}))
    assert world.states() == {"holder": "retried", "a": "g", "b": "w"}


def test_a_retry_of_a_slot_serves_the_waiting_ticket(world: World) -> None:
    """The slot is released before its holder joins the line, which then has room again."""
    world.slots("p", "s")
    world.pool("p", None, queue_max=1, on_retry="requeue")
    world.ask("holder")
    world.ask("a")
    world.retry("holder", make_ask("b", {"p": 1}))
    assert world.states() == {"holder": "retried", "a": "g", "b": "w"}


def test_a_project_does_not_match_others_with_its_prefix(world: World) -> None:
    """`PROJECT/*` matches the owners of exactly this project: project names may have slashes."""
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


def test_one_owner_never_fills_a_line(world: World) -> None:
    """By default an owner may have a tenth of a line; operators are exempt."""
    world.pool("p", 0, queue_max=120, per_member=1, member_group="g")
    for n in range(12):
        world.ask(f"a{n}", roles=USERS)
    with Refused(Code.OWNER_QUEUE_FULL) as refused:
        world.ask("a12", roles=USERS)
    assert "12, a tenth of queue_max" in refused.message
    world.ask("b", owner="other", roles=USERS)
    for n in range(5):
        world.ask(f"o{n}", roles=frozenset({"operator"}))


@pytest.mark.parametrize(("queue_max", "most"), [(1, 1), (2, 2), (10, 10), (11, 10), (99, 10)])
def test_one_owner_may_use_a_short_line(world: World, queue_max: int, most: int) -> None:
    """Ten tickets, or all of a line that is shorter: a program of its own has but one owner."""
    world.pool("p", 0, queue_max=queue_max, per_member=1, member_group="g")
    for n in range(most):
        world.ask(f"a{n}", owner=f"ci/team/token-{n % 2}", roles=USERS)
    full = most == queue_max
    with Refused(Code.QUEUE_FULL if full else Code.OWNER_QUEUE_FULL) as refused:
        world.ask("more", owner="ci/team/token-0", roles=USERS)
    assert full or "project 'ci/team' have 10 tickets" in refused.message
    world.pool("q", 0, queue_max=queue_max, per_member=1, member_group="g")
    for n in range(most):
        world.ask(f"b{n}", {"q": 1}, roles=USERS)
    with Refused(Code.QUEUE_FULL if full else Code.OWNER_QUEUE_FULL) as refused:
        world.ask("b", {"q": 1}, roles=USERS)
    assert full or "10, the default for a short line" in refused.message


def test_a_project_with_many_tokens_fills_no_line(world: World) -> None:
    """Its owners share what one owner may have; a project below it in name is another one."""
    world.pool("p", 0, queue_max=120, per_member=1, member_group="g")
    for n in range(12):
        world.ask(f"a{n}", owner=f"ci/team/token-{n}", roles=USERS)
    with Refused(Code.OWNER_QUEUE_FULL) as refused:
        world.ask("a12", owner="ci/team/token-12", roles=USERS)
    assert "project 'ci/team' have 12 tickets" in refused.message
    for n, owner in enumerate(("ci/token", "ci/team2/token", "ci", "ci/team/x/token")):
        world.ask(f"b{n}", owner=owner, roles=USERS)
    world.release("a0")
    world.ask("a13", owner="ci/team/token-4", roles=USERS)
    retried = make_ask("a14", {"p": 1}, owner="ci/team/token-4", roles=USERS)
    world.retry("a13", retried, Proof("ci/team/token-4"))
    world.pool("q", 0, queue_max=120, queue_max_per_owner=15, per_member=1, member_group="g")
    for n in range(15):
        world.ask(f"q{n}", {"q": 1}, owner=f"ci/team/token-{n}", roles=USERS)
    with Refused(Code.OWNER_QUEUE_FULL):
        world.ask("q15", {"q": 1}, owner="ci/team/token-5", roles=USERS)


@pytest.mark.parametrize("owner", ["lease-proxy", "boskos:ci", "governor:hosts"])
def test_owners_that_stand_for_many_are_not_bounded_by_default(world: World, owner: str) -> None:
    """Many clients have this one name. A value that an operator chose bounds them, as before."""
    world.pool("p", 0, queue_max=30, per_member=1, member_group="g")
    for n in range(20):
        world.ask(f"{n}", owner=owner, roles=frozenset())
    world.pool("q", 0, queue_max=30, queue_max_per_owner=1, per_member=1, member_group="g")
    world.ask("a", {"q": 1}, owner=owner, roles=frozenset())
    with Refused(Code.OWNER_QUEUE_FULL):
        world.ask("b", {"q": 1}, owner=owner, roles=frozenset())
