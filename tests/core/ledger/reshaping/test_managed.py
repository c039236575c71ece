"""Classes that agents manage: a plan may set their totals, but neither moves nor deletes them."""

from msgspec.structs import replace

from moorage.core.ids import AgentId
from moorage.core.ledger.facts import Changes, Facts
from moorage.core.ledger.model import Inventory
from moorage.core.ledger.reshaping.plan import Figures, ReshapePlan
from tests.core.ledger.build import C1
from tests.core.ledger.reshaping.worlds import (
    VF,
    VGPU,
    A,
    R,
    children,
    claim,
    codes,
    commit,
    host,
    image,
    move,
    planned,
    undo,
)

AGENT = AgentId("00000001-eeee-4eee-8eee-eeeeeeeeeeee")


def machine() -> Facts:
    """Return the node, of which an agent manages VGPU, and offers six of 24."""
    known = host()
    known.apply(Changes(providers={R: replace(known.providers[R], agent=AGENT)}))
    known.inventories[R][VGPU] = Inventory(24, offered=6)
    claim(known, C1, {R: {VGPU: 4, VF: 2}})
    return known


def test_new_totals_are_for_the_agent() -> None:
    """The agent follows a total of its class, of a new one, and of one that goes."""
    known = machine()
    given = {VGPU: Figures(total=20), "VCPU": None, "MEMORY_MB": Figures(total=512)}
    made = planned(known, ReshapePlan(inventories={R: given}))
    assert made.violations == ()
    assert made.changes.overwritten == {(R, VGPU): 20, (R, "VCPU"): 0, (R, "MEMORY_MB"): 512}
    after = made.changes.inventories
    assert after[R, VGPU] is not None
    assert after[R, VGPU].offered == 6
    assert after[R, "MEMORY_MB"] is not None
    assert after[R, "MEMORY_MB"].offered == 0


def test_what_the_agent_offers_does_not_limit_records() -> None:
    """Consumers that exist may use more than is offered now; a change of figures is undone."""
    known = machine()
    known.inventories[R][VGPU] = replace(known.inventories[R][VGPU], offered=1)
    before = image(known)
    undo(known, commit(known, ReshapePlan(inventories={R: {VGPU: Figures(max_unit=8)}})))
    assert image(known) == before


def test_other_classes_of_a_machine_move() -> None:
    """A class that no agent manages may leave a machine; the agent hears of the total."""
    known = machine()
    name = C1.replace("-", "_")
    wish = ReshapePlan(create=children(A), moves=(move((R, VF), (A, VF), None, **{name: {A: 2}}),))
    made = planned(known, wish)
    assert made.violations == ()
    assert made.changes.overwritten == {(R, VF): 0}
    moved = made.changes.inventories[A, VF]
    assert moved is not None
    assert moved.offered is None


def test_managed_units_do_not_move() -> None:
    """The agent would prepare its class where it is: what had moved would be sold twice."""
    known = machine()
    away = move((R, VGPU), (A, VGPU), 20)
    assert codes(planned(known, ReshapePlan(create=children(A), moves=(away,)))) == [
        "managed",
        "unassigned",
    ]
    back = move((R, VF), (R, VGPU), 1)
    assert "managed" in codes(planned(known, ReshapePlan(moves=(back,))))
