"""Which hosts rest after an error: nothing works on them, and BMO looks at them again much later.

A host that has failed stays in the state of its work, such as `inspecting`, while BMO backs off:
between 1 and 2 minutes after the first error, then 2 to 4, up to eight hours, for ever. Meanwhile
it needs no unit. But its next try must wait for its turn, so our pause is stored before its units
are released. BMO stores its next state before it calls Ironic for a deployment, so a pause that
comes too late is refused there. For an inspection or a preparation it calls Ironic first. Our
pause would make its next write fail, and the busy node would be invisible. So the pause is not
stored while a try may begin. One case remains: another event, such as BMO's own start, makes BMO
read the host in the second in which the pause is stored. Then one node more than the limit may
work until this try ends. Only a gate before Ironic sees it.

Source: baremetal-operator 02aa505, `action_result.go`, `calculateBackoff`, and the actions in
`baremetalhost_controller.go`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from moorage.integrations.clock import monotonic
from moorage.integrations.metal3.failures import (
    cannot_start,
    error_kind_of,
    errors_of,
    has_rested_since_paused,
    looked_at,
)
from moorage.integrations.metal3.hosts import (
    OWN,
    BareMetalHost,
    Verb,
    has_failed,
    is_leaving,
    pause_of,
    state_of,
    uid_of,
    work_of,
)

STILL_SECONDS = 12.0
"""How long a failed host must not change until it rests: while BMO works on one, it stores
something at least each 10 seconds, also while the error is still there (`longRetryDelay`)."""

STUCK_SECONDS = 60.0
"""How long an idle host that cannot start keeps its units: people may mend it, BMO may be slow."""

UNSURE_SECONDS = 2_400.0
"""How long a host keeps its units with an error that says nothing of its node, or while BMO removes
it and nothing happens: Ironic ends its own work after 30 minutes (`inspect_wait_timeout`,
`deploy_callback_timeout`, `clean_callback_timeout`)."""

MARGIN_SECONDS = 10.0
"""The least time between our pause and the next try of BMO."""

GIVEN_UP_SECONDS = 60.0
"""Seconds after the latest time of BMO's next try, when it makes none: it is away."""

BACK_OFF_SECONDS, BACK_OFF_MAX = 60.0, 9
"""BMO's longest back-off, which each error doubles, up to this many times; the shortest one is its
half."""


@dataclass(frozen=True)
class _Seen:
    """The observations of a host. Times are those of a monotonic clock."""

    version: tuple[object, ...]
    """The host as BMO and people have stored it, without pauses."""
    error: tuple[object, ...]
    """Its state, whether it has an error, and what that says; which one it is may change."""
    pause: str | None
    since: float
    """When this version was seen first."""
    erring: float
    """When this error was seen first, in this state and with this pause."""
    paused: float
    """When this pause was seen first."""
    is_dated: bool
    """Whether an earlier version was seen before: so its age is known."""


class Resting:
    """Remembers how long hosts have been as they are."""

    def __init__(
        self, now: Callable[[], datetime] | None = None, stuck_seconds: float = STUCK_SECONDS
    ) -> None:
        """Begin with no hosts; `now` returns the time, which is compared with BMO's."""
        self._time = now
        self._stuck_seconds = stuck_seconds
        self._hosts: dict[str, _Seen] = {}
        self._clock = 0.0
        self._now: datetime | None = None

    def look(self, hosts: Mapping[str, BareMetalHost]) -> None:
        """Take note of all hosts, by UID, as they are now."""
        self._clock = monotonic()
        self._now = None if self._time is None else self._time()
        self._hosts = {
            uid: _seen(host, self._hosts.get(uid), self._clock) for uid, host in hosts.items()
        }

    def rests(self, host: BareMetalHost) -> bool:
        """Return whether nothing works on a host that has failed, also on its next try.

        A host that has changed since it was seen does not rest.
        """
        seen = self._same(host)
        if seen is None:
            return False
        erring = self._clock - seen.erring
        if is_leaving(host):
            return self._clock - seen.since >= UNSURE_SECONDS
        if work_of(host) is None:
            return cannot_start(host) and erring >= self._stuck_seconds
        if has_rested_since_paused(host):
            return True
        if has_failed(host):
            # BMO begins no try of a host with our pause.
            return pause_of(host) == OWN or self._clock - seen.since >= STILL_SECONDS
        return bool(error_kind_of(host)) and erring >= UNSURE_SECONDS

    def is_held(self, host: BareMetalHost) -> bool:
        """Return whether the next try of a host waits for us: its pause has taken effect."""
        seen = self._same(host)
        still = seen is not None and self._clock - seen.paused >= STILL_SECONDS
        return pause_of(host) is not None and (still or work_of(host) is None)

    def may_be_paused(self, host: BareMetalHost) -> bool:
        """Return whether BMO begins no try of a failed host while our pause is being stored."""
        seen = self._same(host)
        if seen is None:
            return False
        if work_of(host) not in (Verb.INSPECT, Verb.PREPARE):
            return True  # of its next state a pause cannot come too late
        latest = BACK_OFF_SECONDS * 2.0 ** min(errors_of(host), BACK_OFF_MAX)
        age = self._age(seen, host)
        return age + MARGIN_SECONDS < latest / 2 or age > latest + GIVEN_UP_SECONDS

    def _age(self, seen: _Seen, host: BareMetalHost) -> float:
        """Return how many seconds ago a host became what it is, by BMO's clock if need be."""
        age, looked = self._clock - seen.since, looked_at(host)
        if seen.is_dated or looked is None or self._now is None:
            return age
        return max(age, (self._now - looked).total_seconds())

    def _same(self, host: BareMetalHost) -> _Seen | None:
        """Return what was seen of a host, unless it was changed meanwhile."""
        seen = self._hosts.get(uid_of(host))
        if seen is None or seen.version != _version(host):
            return None
        pause = pause_of(host)
        if pause == seen.pause:
            return seen
        return replace(seen, pause=OWN, paused=self._clock) if pause == OWN else None


def _seen(host: BareMetalHost, before: _Seen | None, clock: float) -> _Seen:
    version, pause = _version(host), pause_of(host)
    error = (state_of(host), bool(error_kind_of(host)), has_failed(host) or cannot_start(host))
    if before is None:
        return _Seen(version, error, pause, clock, clock, clock, is_dated=False)
    let_go = before.pause is not None and pause != before.pause
    same, same_error = before.version == version, before.error == error
    return _Seen(
        version,
        error,
        pause,
        since=before.since if same and not let_go else clock,
        erring=before.erring if same_error and not let_go else clock,
        paused=before.paused if pause == before.pause else clock,
        is_dated=before.is_dated if same and not let_go else True,
    )


def _version(host: BareMetalHost) -> tuple[object, ...]:
    metadata, looked = host["metadata"], looked_at(host)
    return (
        str(metadata.get("generation")),
        bool(metadata.get("deletionTimestamp")),
        state_of(host),
        error_kind_of(host),
        errors_of(host),
        looked,
    )
