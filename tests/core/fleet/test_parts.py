"""Which parts a machine may register, and what becomes of those that it no longer has."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from moorage.core.errors import Code
from moorage.core.fleet.model import Goal
from moorage.core.fleet.parts import ClassSpec, PartSpec, part_id
from moorage.core.ids import ProviderId
from moorage.core.limits import MAX_INT
from tests.core.fleet.build import A1, A2, BIG, N0, N1, ROOT, SMALL, Refused, World, part, ready


@pytest.fixture
def world() -> World:
    """Return a world with one agent that has not registered."""
    made = World()
    made.create()
    return made


def test_the_uuid_of_a_part() -> None:
    """It is the version 5 UUID of the name in the namespace of the agent."""
    agent = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"  # the DNS namespace of RFC 9562
    assert part_id(agent, "www.example.com") == "2ed6657d-e927-568b-95e1-2665a8aea6a2"


def test_parents_come_first(world: World) -> None:
    """Parts may be listed in any order; they are kept with parents before children."""
    listed = [part("c", "b"), part("d"), part("b", "a"), part("a")]
    world.register(parts=listed)
    stored = world.agent().parts
    names = [one.name for one in stored.values()]
    assert names.index("a") < names.index("b") < names.index("c")
    assert stored[part_id(A1, "a")].parent == world.agent().root
    assert stored[part_id(A1, "c")].parent == part_id(A1, "b")


def test_the_root_may_be_named_as_parent(world: World) -> None:
    """A parent that is the root is the same as none."""
    world.register(parts=[part()])
    assert not world.register(parts=[replace(part(), parent=ProviderId(A1))])


def test_an_own_root_is_a_part(world: World) -> None:
    """The root that the server created may have classes, but no parent."""
    own = PartSpec(ProviderId(A1), "any name", {SMALL: ClassSpec(5)})
    world.register(parts=[part(), own])
    stored = world.agent().parts[ProviderId(A1)]
    assert (stored.parent, stored.name, stored.classes[SMALL].eligible) == (None, "", 5)
    with Refused(Code.INVALID):
        world.register(parts=[part(), replace(own, parent=N0)])


@pytest.mark.parametrize(
    ("listed", "code"),
    [
        ([replace(part(), provider=part_id(A2, "numa0"))], Code.INVALID),
        ([replace(part(), provider=ROOT)], Code.INVALID),
        ([part(), part()], Code.INVALID),
        ([part("")], Code.INVALID),
        ([part("x" * 64)], Code.INVALID),
        ([part("a\n")], Code.INVALID),
        ([part("numa0", "numa1")], Code.PARENT_UNKNOWN),
        ([part("numa0", "numa0")], Code.TREE_LOOP),
        ([part("a", "b"), part("b", "a"), part("c")], Code.TREE_LOOP),
        ([part(f"numa{n}") for n in range(65)], Code.LIMIT_EXCEEDED),
        ([part(**{f"CUSTOM_{n}": 1 for n in range(9)})], Code.LIMIT_EXCEEDED),
        ([part(**{"": 1})], Code.INVALID),
        ([part(**{"pages": 1})], Code.INVALID),
        ([part(**{"CUSTOM_" + "X" * 249: 1})], Code.INVALID),
        ([part(**{SMALL: -1})], Code.INVALID),
        ([part(**{SMALL: MAX_INT + 1})], Code.INVALID),
        ([part(**{SMALL: ClassSpec(1, step_size=0)})], Code.INVALID),
        ([part(**{SMALL: ClassSpec(1, step_size=MAX_INT + 1)})], Code.INVALID),
        ([part(**{SMALL: ClassSpec(1, max_unit=0)})], Code.INVALID),
        ([part(**{SMALL: ClassSpec(1, max_unit=MAX_INT + 1)})], Code.INVALID),
    ],
)
def test_invalid_parts(world: World, listed: Sequence[PartSpec], code: Code) -> None:
    """A register with an invalid part is refused."""
    with Refused(code):
        world.register(parts=listed)


def test_the_largest_machine(world: World) -> None:
    """64 parts with 8 classes each are accepted, in one chain and in any order."""
    classes = {f"CUSTOM_{n}": MAX_INT for n in range(8)}
    chain = [part(f"p{n}", f"p{n - 1}" if n else None, **classes) for n in range(64)]
    world.register(parts=chain[::-1])
    assert len(world.agent().parts) == 64


def test_a_vanished_part_has_nothing() -> None:
    """A part that is no longer listed stays with its goal, has nothing, and is not asked for."""
    world = ready()
    generation = world.agent().desired_generation
    world.register(parts=[part("numa1")])
    stored = world.agent().parts[N0]
    assert (stored.present, stored.classes[SMALL].present) == (False, False)
    assert (world.small().actual, world.small().desired) == (0, 50)
    assert world.agent().desired_generation == generation
    world.report({N1: {SMALL: 0}})
    world.register(parts=[part("numa0"), part("numa1")])
    assert (world.small().present, world.small().actual) == (True, 0)
    assert world.small().goal == Goal(amount=50)


def test_a_vanished_class_has_nothing(world: World) -> None:
    """A class that is no longer listed stays like a vanished part, and is no longer reported."""
    world.register(parts=[part(**{SMALL: 100, BIG: ClassSpec(4, volatile=False)})])
    world.report({N0: {SMALL: 5, BIG: 4}})
    world.register(parts=[part()])
    gone = world.agent().parts[N0].classes[BIG]
    assert (gone.present, gone.actual, world.small().actual) == (False, 0, 5)
    assert world.report(6)
    world.register("boot-2", [part(**{SMALL: 100, BIG: ClassSpec(4, volatile=False)})])
    assert world.agent().parts[N0].classes[BIG].actual == 0


def test_former_parts_and_classes_count(world: World) -> None:
    """The limits bound what is stored, so former parts and classes count."""
    world.register(parts=[part(f"numa{n}") for n in range(64)])
    world.register(parts=[part()])
    with Refused(Code.LIMIT_EXCEEDED):
        world.register(parts=[part("numa64")])
    world.register(parts=[part(**{f"CUSTOM_{n}": 1 for n in range(7)})])
    with Refused(Code.LIMIT_EXCEEDED):
        world.register(parts=[part(**{"CUSTOM_7": 1})])


def test_a_part_does_not_move(world: World) -> None:
    """The parent of a part is fixed, even after it has vanished."""
    world.register(parts=[part("a"), part("b", "a")])
    with Refused(Code.INVALID):
        world.register(parts=[part("a"), part("b")])
    world.register(parts=[part("a")])
    with Refused(Code.INVALID):
        world.register(parts=[part("a"), part("b")])


def test_a_part_is_born_with_the_boot(world: World) -> None:
    """A part keeps the generation of its provider at the first register of the boot."""
    world.register(born={})
    assert world.agent().parts[N0].born == 0
    world.register(parts=[part("numa0"), part("numa1")], born={N0: 7, N1: 3})
    assert [world.agent().parts[one].born for one in (N0, N1)] == [0, 3]
    world.register("boot-2", [part("numa0")], born={N0: 9, N1: 5})
    assert [world.agent().parts[one].born for one in (N0, N1)] == [9, 5]
    world.register("boot-2", [part("numa0"), part("numa1")], born={N0: 19, N1: 15})
    assert [world.agent().parts[one].born for one in (N0, N1)] == [9, 5]
