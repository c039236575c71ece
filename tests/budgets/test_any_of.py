"""A scan of long lines costs at most twice as much if three of ten tickets have alternatives."""

import sys
from collections.abc import Callable

import pytest

from bench.any_of import AT, MOMENT, SCENES, SHARE, world
from moorage.core.admission.admit import admit

CALLS_MAX = {
    "a free unit in each pool": 1.2,
    "the quota is used up": 2.0,
    "all are granted": 2.0,
}
"""By scene: calls of Python functions, as a multiple of those of a scan without alternatives."""


def calls_of(action: Callable[[], object]) -> int:
    """Count the calls of Python functions."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("scene", SCENES)
def test_a_scan(scene: str) -> None:
    """Of 10,000 tickets in 200 pools; 3,000 of them name three pools each."""
    plain, some = (world(SCENES[scene], share) for share in (0, SHARE))
    ratio = calls_of(lambda: admit(some, MOMENT, AT)) / calls_of(lambda: admit(plain, MOMENT, AT))
    assert ratio <= CALLS_MAX[scene], f"{ratio:.2f} times as many calls"
