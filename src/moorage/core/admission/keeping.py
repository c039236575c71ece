"""Keeping a lease for inspection after its job, for example of a test that has failed.

The lease needs no renewals any more, because nobody runs who could send them, and its hold ends it.
So that nothing is kept for ever, there is always an end: that of `hold_max` of its pools, or of
`KEPT_SECONDS_MAX` from now where they set none. Operators may exceed both.
"""

from msgspec import structs

from moorage.core.admission import bounds
from moorage.core.admission.calendar import bookings
from moorage.core.admission.facts import Answer, Changes, Facts
from moorage.core.admission.model import Kept, Lease, Pool
from moorage.core.admission.owners import is_reserved
from moorage.core.admission.requests import Proof, check_duration, live_lease, pools_of
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.limits import KEPT_SECONDS_MAX
from moorage.core.service_time import Moment
from moorage.core.texts import check_reason


def keep(
    facts: Facts,
    moment: Moment,
    lease: LeaseId,
    proof: Proof,
    wanted: int,
    reason: str,
    *,
    at_most: bool = False,
) -> Answer:
    """Keep a lease for some time from now (microseconds); a repetition replaces end and reason.

    `at_most`: for less if the pools permit their users less, also for operators, or until a booking
    needs its units.

    Raises LEASE_NOT_FOUND, HOLDER_MISMATCH, TOKEN_STALE, LEASE_ENDED, HOLD_ABOVE_MAX, BOOKED;
    INVALID: it waits, its holder is asked to stop, or nobody could look at it.
    """
    found = live_lease(facts, lease, proof)
    if found.state == "waiting":
        raise Error(Code.INVALID, f"Lease '{lease}' is not granted yet, so it cannot be kept.")
    if is_reserved(found.owner):
        raise Error(
            Code.INVALID,
            f"Lease '{lease}' was made through Boskos, the lease proxy or a governor, which release"
            " it themselves, so it cannot be kept for inspection.",
        )
    if found.stop_until is not None:
        other = found.preempted_by or found.superseded_by
        raise Error(
            Code.INVALID,
            f"Lease '{lease}' ends soon for the request '{other}', so it cannot be kept.",
        )
    check_reason(reason)
    check_duration("The time that a lease is kept", wanted)
    pools = pools_of(facts, found.needs)
    if at_most:
        left = _most(pools, moment, found)
        if not left:
            raise Error(Code.HOLD_ABOVE_MAX, f"The pools of lease '{lease}' permit no longer hold.")
        wanted = min(wanted, left)
        needed_at = bookings.needed_at(facts, moment.at, found)
        if needed_at is not None:
            wanted = min(wanted, needed_at - moment.at)
    check_end(pools, moment, found, proof, wanted)
    bookings.check_extension(facts, moment.at, found, Instant(moment.at + wanted))
    before = found.kept
    kept = structs.replace(
        found,
        kept=Kept(reason, moment.at if before is None else before.since),
        hold=wanted,
        hold_until=Instant(moment.at + wanted),
        heard_until=None,
        confirm_by=None,
    )
    return Changes(leases={lease: kept}), lease


def check_end(
    pools: list[Pool], moment: Moment, lease: Lease, proof: Proof, wanted: int | None
) -> None:
    """Raise HOLD_ABOVE_MAX or INVALID if a kept lease may not last this long; None: for ever."""
    if wanted is None:
        raise Error(
            Code.INVALID,
            f"Lease '{lease.id}' is kept without renewals, so it needs an end: give a hold.",
        )
    bounds.check_hold(pools, moment, lease, proof, wanted)
    bounded = any(pool.spec.hold_max is not None for pool in pools)
    if proof.owner is not None and not bounded and wanted > KEPT_SECONDS_MAX * SECOND:
        raise Error(
            Code.HOLD_ABOVE_MAX,
            f"A lease may be kept for at most {KEPT_SECONDS_MAX} s from now in pools without"
            " hold_max; operators may keep it for longer.",
        )


def _most(pools: list[Pool], moment: Moment, lease: Lease) -> int:
    left = bounds.hold_left(pools, moment, lease)
    return KEPT_SECONDS_MAX * SECOND if left is None else left
