"""How long a request of each kind of client is held, and when it tries again.

No single answer suits all clients; the defaults were measured with unmodified ones, see decision
0029. An operator's own lines come first; each has a pattern for the header `User-Agent`:

    [[client]]
    user_agent = "my-installer/*"
    hold = 10                    # seconds for which a request waits for its unit, at most 55
    retry_after = 15             # seconds, "none", or "fitting": enough for the expected wait
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

HOLD_SECONDS = 20.0
HOLD_SECONDS_MAX = 55.0
"""Moorage waits at most 60 seconds for a grant."""

PATIENCE_SECONDS = 90.0
"""A ticket keeps its place for at least this long without a client."""

RETRY_AFTER_MAX = 300
RETRY_AFTER_UNKNOWN = 10
"""If there is no estimate: openstacksdk then waits 170 seconds altogether."""

TRIES, PAUSES = 6, 5
"""Requests of openstacksdk until it gives up, and its pauses between them."""

Fitting = Literal["none", "fitting"]


@dataclass(frozen=True)
class ClientPolicy:
    """How clients with a pattern of `User-Agent` wait.

    `hold` is how long a request is held, in seconds. `retry_after` is what a refusal tells them:
    seconds, `none`, or `fitting`: as long as they need to be patient enough.
    """

    pattern: str
    hold: float = HOLD_SECONDS
    retry_after: int | Fitting = "none"

    def matches(self, user_agent: str) -> bool:
        """Return whether it applies to a client."""
        return fnmatchcase(user_agent.lower(), self.pattern.lower())

    @property
    def patience(self) -> float:
        """How long a ticket keeps its place while no request of the client waits for it."""
        pause = {"none": 0, "fitting": RETRY_AFTER_MAX}.get(str(self.retry_after))
        longest = int(self.retry_after) if pause is None else pause
        return max(PATIENCE_SECONDS, 3 * (self.hold + longest))

    def pause_of(self, latest: float | None) -> int | None:
        """Return the value of `Retry-After`; None: no such header.

        Args:
            latest: seconds until the latest estimate of the grant; None: there is no estimate.
        """
        if self.retry_after == "none":
            return None
        if self.retry_after != "fitting":
            return int(self.retry_after)
        if latest is None:
            return RETRY_AFTER_UNKNOWN
        wanted = math.ceil((latest - TRIES * self.hold) / PAUSES)
        return min(RETRY_AFTER_MAX, max(1, wanted))


DEFAULTS: Final = (
    # The command names its own program first: `openstack` sends `python-ironicclient`.
    ClientPolicy("*ironicclient*"),
    ClientPolicy("*gophercloud*", hold=0.5),
    ClientPolicy("*openstacksdk*", retry_after="fitting"),
    ClientPolicy("*keystoneauth1*", retry_after="fitting"),
    ClientPolicy("*"),
)
"""python-ironicclient ends with a TypeError at any `Retry-After`. A request of the Bare Metal
Operator blocks one of its few workers."""


def policy_of(user_agent: str, own: Iterable[ClientPolicy] = ()) -> ClientPolicy:
    """Return the first policy that applies: of the operator's own, then of the defaults."""
    return next(one for one in (*own, *DEFAULTS) if one.matches(user_agent))


class ClientTable(Struct, forbid_unknown_fields=True):
    """A table [[client]] of a rules file."""

    user_agent: Annotated[str, Meta(min_length=1)]
    hold: Annotated[float, Meta(ge=0, le=HOLD_SECONDS_MAX)] = HOLD_SECONDS
    retry_after: Annotated[int, Meta(ge=1, le=RETRY_AFTER_MAX)] | Fitting = "none"

    def policy(self) -> ClientPolicy:
        """Return what it says."""
        return ClientPolicy(self.user_agent, self.hold, self.retry_after)
