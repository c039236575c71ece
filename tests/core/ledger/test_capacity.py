"""The capacity rule is exact, and equal for plain numbers and for columns."""

from fractions import Fraction

import numpy
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.core.ledger import capacity
from moorage.core.ledger.model import Inventory
from moorage.core.limits import ALLOCATION_RATIO_MAX, MAX_INT

AMOUNTS = st.integers(0, MAX_INT)
UNITS = st.integers(1, MAX_INT)
RATIOS = st.floats(0.0, ALLOCATION_RATIO_MAX, allow_nan=False) | st.sampled_from(
    [0.1, 1.0, 1.5, 16.0, ALLOCATION_RATIO_MAX]
)
INVENTORIES = st.builds(
    Inventory,
    total=st.integers(1, MAX_INT),
    reserved=AMOUNTS,
    min_unit=UNITS,
    max_unit=UNITS,
    step_size=UNITS,
    allocation_ratio=RATIOS,
    used=st.integers(0, 2**50),
)
SMALL = st.builds(
    Inventory,
    total=st.integers(1, 20),
    reserved=st.integers(0, 20),
    min_unit=st.integers(1, 4),
    max_unit=st.integers(1, 20),
    step_size=st.integers(1, 4),
    allocation_ratio=st.sampled_from([0.1, 0.5, 1.0, 1.5, 4.0]),
    used=st.integers(0, 80),
)


@given(st.lists(st.tuples(INVENTORIES | SMALL, AMOUNTS | st.integers(0, 80)), max_size=20))
def test_columns_agree_with_numbers(rows: list[tuple[Inventory, int]]) -> None:
    """The results for columns are, row by row, those for single inventories."""

    def column(name: str, kind: type) -> numpy.ndarray:
        return numpy.array([getattr(held, name) for held, _ in rows], dtype=kind)

    amounts = numpy.array([amount for _, amount in rows], dtype=numpy.int64)
    units = capacity.units_ok(
        column("min_unit", numpy.int64),
        column("max_unit", numpy.int64),
        column("step_size", numpy.int64),
        amounts,
    )
    assert units.tolist() == [capacity.admits(held, amount) for held, amount in rows]


@given(SMALL, st.integers(1, 40))
def test_agrees_with_exact_arithmetic(held: Inventory, amount: int) -> None:
    """For ratios that are exact in binary, the rule agrees with exact fractions."""
    if held.allocation_ratio == 0.1:
        held = replace(held, allocation_ratio=0.5)
    exact = (held.total - held.reserved) * Fraction(held.allocation_ratio)
    assert capacity.has_room(held, amount) == (held.used + amount <= exact)
    assert capacity.may_record(held, amount) == (held.used + amount <= exact)
    assert capacity.shown_capacity(held) == int(exact)


@given(SMALL, st.integers(0, 25), st.booleans(), st.integers(1, 40))
def test_what_is_not_offered_is_no_capacity(
    held: Inventory, offered: int, withheld: bool, amount: int
) -> None:
    """An offer lowers the total, to 0 at the least; a withheld provider has no capacity."""
    if held.allocation_ratio == 0.1:
        held = replace(held, allocation_ratio=0.5)
    offer = replace(held, offered=offered, withheld=withheld)
    given = 0 if withheld else max(0, min(held.total, offered) - held.reserved)
    exact = given * Fraction(held.allocation_ratio)
    assert capacity.has_room(offer, amount) == (held.used + amount <= exact)
    assert capacity.shown_capacity(offer) == int(exact)
    assert capacity.may_record(offer, amount) == capacity.may_record(held, amount)


@given(INVENTORIES)
def test_the_last_unit(held: Inventory) -> None:
    """The shown capacity can be used up, but not exceeded, as long as floats are exact."""
    shown = capacity.shown_capacity(held)
    if not 0 < shown < 2**52:
        return
    empty = Inventory(held.total, held.reserved, allocation_ratio=held.allocation_ratio)
    assert capacity.has_room(empty, shown)
    assert not capacity.has_room(empty, shown + 1)


def test_the_largest_values() -> None:
    """The largest ratio times the largest total is finite; negative capacity has no room."""
    held = Inventory(MAX_INT, allocation_ratio=ALLOCATION_RATIO_MAX, used=2**62)
    assert capacity.has_room(held, MAX_INT)
    assert capacity.shown_capacity(held) == int(MAX_INT * ALLOCATION_RATIO_MAX)
    assert not capacity.has_room(Inventory(1, reserved=MAX_INT, allocation_ratio=1e38), 1)


@given(UNITS, UNITS, UNITS, AMOUNTS)
def test_unit_sizes_follow_their_definition(least: int, most: int, step: int, amount: int) -> None:
    """Units are right from min_unit to max_unit, in multiples of step_size."""
    expected = not (amount < least or amount > most or amount % step)
    assert bool(capacity.units_ok(least, most, step, amount)) is expected


@given(st.integers(0, 2**50), st.integers(0, 1_000), RATIOS)
def test_the_smallest_total_has_room_and_one_unit_less_has_none(
    used: int, reserved: int, ratio: float
) -> None:
    """It is exact by the capacity rule itself, and there is none if no total has room."""
    total = capacity.total_for(used, reserved, ratio)
    if total is None:
        assert ratio == 0 or capacity.capacity(MAX_INT, 0, ratio) < used * (1 + 1e-9)
        return
    assert capacity.capacity(total, reserved, ratio) >= used
    assert total == reserved or capacity.capacity(total - 1, reserved, ratio) < used
