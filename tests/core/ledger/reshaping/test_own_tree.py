"""The plan of a machine: what its agent manages may move within the machine, and nowhere else."""

from msgspec.structs import replace

from moorage.core.ids import AgentId
from moorage.core.ledger.facts import Changes, Facts
from moorage.core.ledger.model import SHARING_TRAIT, Inventory, Tags
from moorage.core.ledger.reshaping import plan as plans
from moorage.core.ledger.reshaping.own_tree import Machine, uuid_for
from moorage.core.ledger.reshaping.plan import NewProvider, ReshapePlan
from moorage.core.ledger.reshaping.planning import Planned, plan_reshape
from moorage.core.ledger.reshaping.satisfied import is_satisfied
from moorage.core.limits import MACHINE_PROVIDERS_MAX
from tests.core.ledger.build import C1, NOW, add_provider
from tests.core.ledger.reshaping.worlds import (
    VF,
    VGPU,
    B,
    D,
    R,
    claim,
    codes,
    done,
    hold,
    host,
    loaded,
    move,
)

AGENT, OTHER = (AgentId(f"{n:08d}-eeee-4eee-8eee-eeeeeeeeeeee") for n in (1, 2))
NAME = C1.replace("-", "_")
CHILD = uuid_for(R, "compute-1_gpu0")


def machine(agent: AgentId = AGENT) -> Facts:
    """Return the node with a part B, of which an agent manages VGPU; a guest has some of it."""
    known = host()
    add_provider(known, B, name="compute-1_numa0", parent=R, offer={VGPU: Inventory(6, offered=6)})
    known.apply(Changes(providers={B: replace(known.providers[B], agent=agent)}))
    claim(known, C1, {B: {VGPU: 4}})
    return known


def by_machine(known: Facts, wish: ReshapePlan) -> Planned:
    """Plan as the agent of the node."""
    return plan_reshape(loaded(known, plans.keys_for(wish)), NOW, wish, author=Machine(AGENT, R))


def away() -> ReshapePlan:
    """Return the plan that moves what is managed to a new child."""
    child = NewProvider(CHILD, "compute-1_gpu0", R)
    return ReshapePlan(
        create=(child,), moves=(move((B, VGPU), (CHILD, VGPU), None, **{NAME: {CHILD: 4}}),)
    )


def test_an_agent_moves_what_it_manages_itself() -> None:
    """What is desired of the part then follows; an operator's plan may not do that."""
    made = by_machine(machine(), away())
    assert made.violations == ()
    assert made.changes.overwritten == {(B, VGPU): 0}
    known = machine()
    assert codes(plan_reshape(loaded(known, plans.keys_for(away())), NOW, away())) == ["managed"]


def test_what_another_agent_manages_is_not_its() -> None:
    """Not even below its own root; and who is there is not shown."""
    assert codes(by_machine(machine(OTHER), away())) == ["not_own", "consumer_unknown"]


def test_nothing_is_shown_of_what_is_not_its() -> None:
    """Neither figures nor consumers of the provider, nor whether there is one."""
    known = machine()
    add_provider(known, D, name="elsewhere", offer={VGPU: Inventory(9)})
    hold(known)
    wish = replace(away(), moves=(*away().moves, move((D, VGPU), (R, VGPU), 1)))
    made = by_machine(known, wish)
    assert codes(made) == ["not_own"]
    assert (made.effects, made.summary.providers, made.summary.places) == ((), (), ())
    assert not made.generations.providers
    known = machine()
    assert by_machine(known, wish).violations == made.violations


def test_a_child_below_a_new_child() -> None:
    """The UUID of each follows from its parent and its name."""
    name = "compute-1_gpu0_vf"
    below = NewProvider(uuid_for(CHILD, name), name, CHILD)
    wish = replace(away(), create=(*away().create, below))
    assert by_machine(machine(), wish).violations == ()
    wrong = replace(below, uuid=uuid_for(R, name))
    assert codes(by_machine(machine(), replace(wish, create=(*away().create, wrong)))) == [
        "not_own"
    ]


def test_a_satisfied_plan_has_nothing_left_to_do() -> None:
    """Also if the guest has gone; not before, and not if something is otherwise."""
    known, wish, author = machine(), away(), Machine(AGENT, R)

    def satisfied() -> bool:
        return is_satisfied(loaded(known, plans.keys_for(wish)), NOW, wish, author)

    assert not satisfied()
    done(known, by_machine(known, wish))
    assert satisfied()
    claim(known, C1, {})
    assert satisfied()
    wish = replace(wish, moves=(*wish.moves, move((R, VF), (CHILD, VF), 1)))
    assert not satisfied()
    wish = replace(away(), create=(replace(away().create[0], name="compute-1_gpu1"),))
    assert not satisfied()


def test_a_machine_does_not_grow_without_an_end() -> None:
    """Children count with those that are there; a plan that adds none is not about that."""
    known, names = machine(), [f"compute-1_{n}" for n in range(MACHINE_PROVIDERS_MAX)]
    new = tuple(NewProvider(uuid_for(R, name), name, R) for name in names)
    assert codes(by_machine(known, ReshapePlan(create=new[2:]))) == []
    assert codes(by_machine(known, ReshapePlan(create=new[1:]))) == ["too_large"]
    done(known, by_machine(known, ReshapePlan(create=new[2:])))
    assert codes(by_machine(known, ReshapePlan(create=new[:1]))) == ["too_large"]
    assert codes(by_machine(known, ReshapePlan(rename={new[2].uuid: "compute-1_x"}))) == []
    some = replace(ReshapePlan(create=new[:1]), delete=frozenset({new[2].uuid}))
    assert codes(by_machine(known, some)) == []


def test_a_machine_does_not_share_what_it_has_with_others() -> None:
    """Those of an aggregate would get units of it; what an operator has shared stays so."""
    known, shared = machine(), frozenset({SHARING_TRAIT})
    wish = ReshapePlan(traits={B: shared})
    assert codes(by_machine(known, wish)) == ["operators_only"]
    known.tags[B] = Tags(shared, frozenset())
    assert codes(by_machine(known, wish)) == []
