"""What an action returns (`action_result.go`): whether the status is saved, and when to go on."""

from dataclasses import dataclass
from random import Random

MOST_BACK_OFF = 9
MINUTE = 60.0


@dataclass(frozen=True)
class Result:
    """The result of an action. `dirty`: the status is saved. `again`: the host is queued again.

    `after`: in this many seconds; 0: with the back-off of the queue. `complete`: the host goes to
    its next state. `failed`: the action has recorded an error.
    """

    dirty: bool = False
    again: bool = True
    after: float = 0.0
    complete: bool = False
    failed: bool = False


UPDATE = Result(dirty=True)
COMPLETE = Result(dirty=True, complete=True)
GONE = Result(again=False)
"""The host was deleted."""


def going_on(after: float, *, dirty: bool = False) -> Result:
    """The action is in progress: `actionContinue`, or `actionUpdate` if it is dirty."""
    return Result(dirty=dirty, after=after)


def failure(errors: int, random: Random) -> Result:
    """The action failed, for the `errors`th time in a row: `actionFailed`."""
    return Result(dirty=True, after=back_off(errors, random), failed=True)


def delayed(random: Random) -> Result:
    """There is no capacity: `actionDelayed`."""
    return Result(dirty=True, after=back_off(1, random))


def back_off(errors: int, random: Random) -> float:
    """Return how long a host waits after an error: `calculateBackoff`."""
    base = 2.0 ** min(errors, MOST_BACK_OFF)
    return MINUTE * (base - random.random() * base * 0.5)
