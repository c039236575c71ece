"""No agent gets a provider as root that no operator has given it, or that another one manages."""

from itertools import product

import pytest

from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code
from moorage.core.fleet import policy, registering
from moorage.core.fleet.model import Policy
from moorage.core.fleet.policy import NOT_ACCEPTED
from moorage.core.ids import AgentId, ProviderId
from tests.core.fleet.build import A1, A2, A3, ROOT, Refused, World

ABOVE = ProviderId("00000002-aaaa-4aaa-8aaa-aaaaaaaaaaaa")
BELOW = ProviderId("00000003-aaaa-4aaa-8aaa-aaaaaaaaaaaa")
OWN = ProviderId(A1)


@pytest.fixture
def world() -> World:
    """Return a world with two agents that have not registered."""
    made = World()
    for uuid in (A1, A2):
        made.create(uuid)
    return made


def enrolled(uuid: AgentId = A1) -> World:
    """Return a world with an agent that no operator has accepted."""
    world = World()
    world.do(registering.enroll(world.facts, world.now, uuid, "edge", {}, "robot"))
    return world


@pytest.mark.parametrize(("is_enrolled", "is_given", "own"), [*product((True, False), repeat=3)])
def test_who_may_take_which_provider(is_enrolled: bool, is_given: bool, own: bool) -> None:
    """An accepted agent may take the provider with its UUID, and the one that it was given."""
    world = enrolled() if is_enrolled else World()
    if not is_enrolled:
        world.create()
    root = OWN if own else ROOT
    if is_given:
        world.give(root)
    if not is_enrolled and (is_given or own):
        world.register(root=root, around={root: None})
        assert (world.agent().root, world.agent().owns_root) == (root, False)
        return
    before = world.agent()
    with Refused(Code.NOT_ACCEPTED) as refusal:
        world.register(root=root, around={root: None})
    assert ("moorage agent root" in refusal.message) != (is_given or own)
    assert world.agent() == before


def test_a_given_root_is_no_other(world: World) -> None:
    """An agent that was given one provider gets no other, and none from the server."""
    world.give()
    for root in (ABOVE, None):
        with Refused(Code.NOT_ACCEPTED if root else Code.INVALID):
            world.register(root=root)
    assert world.agent().root is None


@pytest.mark.parametrize("place", [ROOT, ABOVE, BELOW])
@pytest.mark.parametrize("as_root", [True, False])
def test_what_another_agent_manages(world: World, place: ProviderId, as_root: bool) -> None:
    """It is refused for ever, given or not, and also what contains it, or is within it."""
    if as_root:
        world.give(place, A2)
        world.register(uuid=A2, parts=[], root=place)
    around = {ABOVE: None, ROOT: None, BELOW: None} | ({} if as_root else {place: A2})
    if place != ROOT or not as_root:
        world.give(ROOT)
    else:
        with Refused(Code.ROOT_TAKEN):
            world.give(ROOT)
    with Refused(Code.ROOT_TAKEN) as refusal:
        world.register(root=ROOT, around=around)
    assert A2 in refusal.message
    world.decommission(A2)
    if place == ROOT and as_root:
        world.give(ROOT)
    world.register(root=ROOT, around=around)


def test_the_provider_with_the_id_of_another_agent(world: World) -> None:
    """It is the root of that one, whether it has registered or not."""
    world.create(A3)
    for other in (A2, A3):
        with Refused(Code.ROOT_TAKEN):
            world.give(ProviderId(other))
    world.create(A3, wanted=Policy.EXPUNGED)
    world.decommission(A3)
    world.give(ProviderId(A3))


def test_a_root_that_exists_already(world: World) -> None:
    """An agent may take it later with its own UUID, if the server has not created it."""
    world.register()
    with Refused(Code.INVALID):
        world.register(root=OWN, around={OWN: A1})
    with Refused(Code.INVALID):
        world.register(root=OWN)
    world.register(root=OWN, around={OWN: None})
    assert not world.agent().owns_root


def test_giving_it_again_changes_nothing(world: World) -> None:
    """A machine that has registered keeps its root."""
    assert world.give()
    assert not world.give()
    world.register(root=ROOT)
    assert not world.give()
    with Refused(Code.INVALID):
        world.give(ABOVE)
    with Refused(Code.INVALID):
        world.give(ProviderId("x"), A2)
    world.decommission(A2)
    with Refused(Code.DECOMMISSIONED):
        world.give(BELOW, A2)


def test_create_gives_a_root() -> None:
    """The same rule, in one request; without a root it stays."""
    world = World()
    world.create(root=ROOT)
    assert world.agent().given_root == ROOT
    assert not world.create()
    world.create(root=ABOVE)
    assert world.agent().given_root == ABOVE


def test_only_operators_accept() -> None:
    """The end of a drain does not, and another reason does not hide that nobody has."""
    world = enrolled()
    world.drain(until=Instant(world.now + SECOND), reason="looking at it")
    assert not world.agent().accepted
    world.do(policy.drain_over(world.agent(), world.now))
    agent = world.agent()
    assert (agent.policy, agent.policy_reason) == (Policy.NO_PROVISION, NOT_ACCEPTED)
    assert not agent.accepted
    world.do(policy.resume(world.facts, world.now, A1, "", "ann"))
    assert world.agent().accepted
    world.drain()
    assert world.agent().accepted
    world.drain(until=Instant(world.now + SECOND))
    world.do(policy.drain_over(world.agent(), world.now))
    assert world.agent().policy is Policy.IN_SERVICE
