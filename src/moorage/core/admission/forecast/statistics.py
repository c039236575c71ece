"""Statistics of a pool's history, recorded or simulated: percentiles, starts per minute.

`moorage pool report`, `moorage simulate` and the estimates of waiting times all use these.
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from moorage.core.clock import MINUTE

T = TypeVar("T")

Steps = list[tuple[int, int]]
"""(time, count from then on), by time."""


def percentile(ordered: Sequence[T], percent: int) -> T:
    """Return the smallest of these values that at least `percent` % of them do not exceed.

    Source: the nearest-rank method, which is `percentile_disc` in SQL.

    Args:
        ordered: values in ascending order, at least one.
        percent: from 0 to 100; 0 and 100 return the first and the last value.
    """
    rank = -(-percent * len(ordered) // 100)
    return ordered[max(0, rank - 1)]


def percentiles(durations: Iterable[int]) -> tuple[int, int, int] | None:
    """Return the median, the 90th and the 99th percentile; None: there are no durations."""
    ordered = sorted(durations)
    if not ordered:
        return None
    return percentile(ordered, 50), percentile(ordered, 90), percentile(ordered, 99)


def starts_per_minute(starts: Iterable[tuple[int, int]]) -> Steps:
    """Return, for every time, how many units were granted within the 60 seconds up to then.

    A grant counts from its own time until just before 60 seconds later. So the count at a grant is
    the rate that its start meets, and the greatest count is that of any 60 seconds.

    Args:
        starts: (time, units) of each grant, in any order.
    """
    steps: Steps = []
    for at, units in starts:
        steps += [(at, units), (at + MINUTE, -units)]
    return summed(steps)


def summed(steps: Iterable[tuple[int, int]]) -> Steps:
    """Add up changes of a count, given as (time, change) in any order."""
    changes: dict[int, int] = {}
    for at, change in steps:
        changes[at] = changes.get(at, 0) + change
    count, found = 0, []
    for at in sorted(changes):
        count += changes[at]
        found.append((at, count))
    return found


def greatest(steps: Steps) -> int:
    """Return the greatest count; 0 if there is none."""
    return max((count for _, count in steps), default=0)
