"""What has become of a wave."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

from moorage.integrations.ironic.rollout.wave import WAVE, Member, Phase
from moorage.wire.admission import Lease


@dataclass(frozen=True)
class Times:
    """Seconds; None: no node has got so far."""

    median: float | None
    p90: float | None


@dataclass(frozen=True)
class RolloutReport:
    """What has become of each node. `stopped`: nodes were left out, and why; empty: none."""

    wave: str
    target: str
    done: list[str]
    failed: dict[str, str]
    never_started: list[str]
    working: list[str]
    """Only if the wave was left while Ironic worked."""
    stopped: str
    waiting_seconds: Times
    working_seconds: Times

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)


def report_of(
    wave: str,
    target: str,
    members: Sequence[Member],
    past: Mapping[str, Collection[Lease]],
    stopped: str,
) -> RolloutReport:
    """Sum up a wave; `past` are leases that have ended."""
    own = [
        lease
        for member in members
        for lease in past.get(member.uuid, ())
        if lease.labels.get(WAVE) == wave and lease.outcome is not None
    ]
    waited = [(one.granted_at - one.asked_at).total_seconds() for one in own if one.granted_at]
    worked = [
        (one.ended_at - one.granted_at).total_seconds()
        for one in own
        if one.granted_at and one.ended_at
    ]
    names = {phase: [one.name for one in members if one.phase is phase] for phase in Phase}
    return RolloutReport(
        wave=wave,
        target=target,
        done=names[Phase.DONE],
        failed={one.name: one.detail for one in members if one.phase is Phase.FAILED},
        never_started=names[Phase.NEW] + names[Phase.WAITING],
        working=names[Phase.WORKING],
        stopped=stopped,
        waiting_seconds=times_of(waited),
        working_seconds=times_of(worked),
    )


def times_of(seconds: Collection[float]) -> Times:
    """Return the median and the 90th percentile, each a measured value (nearest rank)."""
    ranked = sorted(seconds)
    if not ranked:
        return Times(None, None)
    at = [ranked[max(0, ceil(share * len(ranked)) - 1)] for share in (0.5, 0.9)]
    return Times(*at)
