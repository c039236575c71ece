"""How long a request of each kind of client is held, and when it tries again.

No single answer suits all clients; the defaults were measured with unmodified ones, see decision
0029. An operator's own lines come first; each has a pattern for the header `User-Agent`:

    [[client]]
    user_agent = "my-installer/*"
    hold = 10                    # seconds for which a request waits for its unit, at most 3600
    retry_after = 15             # seconds, "none", or "fitting": enough for the expected wait
    tries = 13                   # requests until it gives up, if that is known
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, Literal

HOLD_SECONDS = 20.0
HOLD_SECONDS_MAX = 3_600.0
"""Proxies between client and gate, and clients themselves, may give up much earlier."""

PATIENCE_SECONDS = 90.0
PATIENCE_SECONDS_MAX = 3_600.0
"""A ticket keeps its place for this long without a client, at least and at most."""

RETRY_AFTER_MAX = 300
RETRY_AFTER_UNKNOWN = 10
"""If the node has no place in line: the gate cannot reach Moorage, or has not seen all nodes."""

TRIES_MAX = 1_000_000

SHARE = 0.75
"""A pause is this part of the estimate, which is renewed at each try. So a client that has five
pauses comes in time, and the last ones are short; also if the work lasts half as long again."""

Fitting = Literal["none", "fitting"]

WAYS: Final = (
    "To wait longer, let Moorage start the node: set extra.moorage_want on the node"
    " (moorage ironic govern), or run moorage ironic rollout"
)
"""The advice in the answer to a client that would give up before its turn."""


@dataclass(frozen=True)
class ClientPolicy:
    """How clients with a pattern of `User-Agent` wait.

    `hold` is how long a request is held, in seconds. `retry_after` is what a refusal tells them:
    seconds, `none`, or `fitting`: as long as they need to be patient enough. `tries` is how many
    requests they make until they give up; None: no end of them is known. `pause` is how long they
    pause by themselves, in seconds. `more`: what to set so that they try more often.
    """

    pattern: str
    hold: float = HOLD_SECONDS
    retry_after: int | Fitting = "none"
    tries: int | None = None
    pause: float = 0.0
    more: str = ""

    def matches(self, user_agent: str) -> bool:
        """Return whether it applies to a client."""
        return fnmatchcase(user_agent.lower(), self.pattern.lower())

    @property
    def patience(self) -> float:
        """How long a ticket keeps its place while no request of the client waits for it."""
        pause = {"none": 0, "fitting": RETRY_AFTER_MAX}.get(str(self.retry_after))
        longest = int(self.retry_after) if pause is None else pause
        return min(PATIENCE_SECONDS_MAX, max(PATIENCE_SECONDS, 3 * (self.hold + longest)))

    @property
    def longest_wait(self) -> float | None:
        """How long such a client waits for its turn at most, in seconds; None: no end is known."""
        if self.tries is None:
            return None
        told = {"none": self.pause, "fitting": RETRY_AFTER_MAX}.get(str(self.retry_after))
        pause = float(self.retry_after) if told is None else told
        return self.tries * self.hold + (self.tries - 1) * pause

    def pause_of(self, latest: float | None, *, waits: bool = False) -> int | None:
        """Return the value of `Retry-After`; None: no such header.

        Args:
            latest: seconds until the latest estimate of the grant; None: there is no estimate.
            waits: it has a place in line, so without an estimate it waits as long as it can.
        """
        if self.retry_after == "none":
            return None
        if self.retry_after != "fitting":
            return int(self.retry_after)
        if latest is None:
            return RETRY_AFTER_MAX if waits else RETRY_AFTER_UNKNOWN
        if latest <= self.hold:
            return 1  # its next request is held until then, so no unit waits for it
        return min(RETRY_AFTER_MAX, max(1, math.ceil(SHARE * latest)))

    def advice(self, latest: float | None) -> str:
        """Return what to tell a client that may give up before its turn; empty: it will not.

        `latest` is the latest estimate of its turn, in seconds; None: there is none.
        """
        longest = self.longest_wait
        if longest is None or (latest is not None and latest <= longest):
            return ""
        more = f" unless {self.more}" if self.more else ""
        if self.tries == 1:
            return f". A client that asks once gives up now{more}. {WAYS}"
        return f". This client gives up after about {longest:.0f} s{more}. {WAYS}"


DEFAULTS: Final = (
    # The command names its own program first: `openstack` sends `python-ironicclient`.
    ClientPolicy("*ironicclient*", tries=6, pause=2.0, more="the gate's rules give it a long hold"),
    ClientPolicy("*gophercloud*", hold=0.5),
    ClientPolicy(
        "*openstacksdk*",
        retry_after="fitting",
        tries=6,
        more="baremetal_status_code_retries is set",
    ),
    ClientPolicy(
        "*keystoneauth1*", retry_after="fitting", tries=1, more="status_code_retries is set"
    ),
    ClientPolicy("*", tries=1),
)
"""python-ironicclient ends with a TypeError at any `Retry-After`. A request of the Bare Metal
Operator blocks one of its few workers, and it never gives up. How often the others try is their
default; who sets more waits longer. Of unknown clients it is not known that they try again."""


def policy_of(user_agent: str, own: Iterable[ClientPolicy] = ()) -> ClientPolicy:
    """Return the first policy that applies: of the operator's own, then of the defaults."""
    return next(one for one in (*own, *DEFAULTS) if one.matches(user_agent))
