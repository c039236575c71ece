"""The record of a lease: what its holder has written for others who hold it with it.

The server never reads it. A write names the version that it replaces, so two writers cannot
overwrite each other. Source: docs/decisions/0028-governors-share-a-lease.md.
"""

from msgspec import structs

from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.lookups import live_lease
from moorage.core.admission.model import Lease
from moorage.core.admission.requests import Proof
from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.limits import MAX_INT, RECORD_BYTES_MAX
from moorage.core.service_time import Moment


def write(
    facts: Facts, moment: Moment, lease: LeaseId, proof: Proof, record: str, version: int
) -> tuple[Changes, LeaseId]:
    """Replace the record of a granted lease.

    If exactly this write was made before, nothing changes: its answer may have been lost.

    Args:
        facts: with the lease.
        moment: now.
        lease: whose record it is.
        proof: of the caller's right.
        record: a JSON object, always spelled alike.
        version: that it replaces; the first record replaces 0.

    Raises LEASE_NOT_FOUND, HOLDER_MISMATCH, TOKEN_STALE, LEASE_ENDED, RECORD_CHANGED; INVALID: the
    lease is not granted yet, or the record is too long.
    """
    found = live_lease(facts, lease, proof)
    if found.state == "waiting":
        raise Error(Code.INVALID, f"Lease '{lease}' is not granted yet, so it has no record.")
    if not 0 <= version < MAX_INT:
        raise Error(Code.INVALID, f"version must be from 0 to {MAX_INT - 1}.")
    size = len(record.encode("utf-8", "surrogatepass"))
    if size > RECORD_BYTES_MAX:
        raise Error(
            Code.INVALID, f"A record must have at most {RECORD_BYTES_MAX} bytes, not {size}."
        )
    if (found.record_version, found.record) == (version + 1, record):
        return Changes(), lease
    check_version(found, version)
    written = structs.replace(
        found, record=record, record_version=version + 1, recorded_at=moment.at
    )
    return Changes(leases={lease: written}), lease


def check_version(lease: Lease, version: int | None) -> None:
    """Raise RECORD_CHANGED unless a lease's record has this version; None: any will do."""
    if version is not None and version != lease.record_version:
        raise Error(
            Code.RECORD_CHANGED,
            f"The record of lease '{lease.id}' has version {lease.record_version}, not {version}:"
            " read it again.",
        )


def age_of(lease: Lease, at: Instant) -> int | None:
    """Return how long ago (service time) a lease was recorded, or else granted; None: neither."""
    since = lease.granted_at if lease.recorded_at is None else lease.recorded_at
    return None if since is None else max(0, at - since)
