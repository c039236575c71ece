"""The values of reporters: their groups and members. All are immutable.

A group of reporters shares some nodes; it is not a group of agents. Source: decision 0030.
"""

from msgspec import Struct

from moorage.core.clock import Instant


class Pass(Struct, frozen=True):
    """A reporter's summary of its last pass over its nodes. No decision depends on it.

    `at` is alive time. `refused` is the number of refused nodes by code.
    """

    at: Instant
    nodes: int
    refused: dict[str, int]


class Member(Struct, frozen=True):
    """A reporter of a group, as of its newest instance.

    `heard_until` is alive time: it is live until then, unless the service is down meanwhile. `ttl`
    is in microseconds, `joined_at` the time of the instance. `token` must accompany its reports.
    `past` are earlier instances, which are fenced. `last_pass` is of this instance.
    """

    group: str
    name: str
    instance: str
    token: str
    ttl: int
    heard_until: Instant
    joined_at: Instant
    updated_at: Instant
    past: tuple[str, ...] = ()
    last_pass: Pass | None = None


class ReporterGroup(Struct, frozen=True):
    """A group of reporters.

    `tokens` counts the tokens so far. `pins_generation` rises with every change of its pins.
    `observed` are members that somebody else reports, as of `seen_at` by the observer's clock;
    `observer_error` is what the observer said was wrong then.
    """

    name: str
    created_at: Instant
    updated_at: Instant
    tokens: int = 0
    pins_generation: int = 0
    observed: tuple[str, ...] = ()
    seen_at: Instant | None = None
    observer_error: str = ""
    generation: int = 0


class DeletedGroup(Struct, frozen=True):
    """The traces of a group of reporters that was deleted at `deleted_at`, in service time.

    Until it is `cleared`, some of its pins and marks on providers are left. The next group of this
    name continues its `tokens` and `pins_generation`; the `instances` of its members may not join.
    """

    name: str
    deleted_at: Instant
    tokens: int
    pins_generation: int
    instances: tuple[str, ...] = ()
    cleared: bool = False
