"""Finds the lease that a request is about."""

from moorage.core.admission.facts import Facts
from moorage.core.admission.model import Lease
from moorage.core.admission.requests import Ask, Proof, check_proof
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.limits import LEASES_KEPT_HOURS


def lease_of(facts: Facts, lease: LeaseId) -> Lease:
    """Return a lease or ticket, which may have ended. Raises LEASE_NOT_FOUND."""
    found = facts.leases.get(lease)
    if found is None:
        raise Error(Code.LEASE_NOT_FOUND, unknown_message(lease))
    return found


def live_lease(facts: Facts, lease: LeaseId, proof: Proof) -> Lease:
    """Return a live lease or ticket. Raises LEASE_NOT_FOUND, LEASE_ENDED and as `check_proof`."""
    found = lease_of(facts, lease)
    check_proof(found, proof)
    if found.state == "ended":
        raise Error(Code.LEASE_ENDED, ended_message(found))
    return found


def known_to(facts: Facts, wish: Ask) -> LeaseId | None:
    """Return the lease that the same request made before. Raises KEY_REUSED."""
    known = facts.asked.get((wish.owner, wish.key))
    if known is not None and facts.leases[known].digest != wish.digest:
        raise Error(
            Code.KEY_REUSED,
            f"Key '{wish.key}' was used for another request: a new attempt needs a new key.",
        )
    return known


def ended_message(lease: Lease) -> str:
    """Return the message that a lease has ended, and why."""
    why = (lease.cause or "").replace("_", " ")
    more = f" ({lease.detail})" if lease.detail else ""
    return f"Lease '{lease.id}' has ended: {why}{more}."


def unknown_message(lease: LeaseId) -> str:
    """Return the message that no lease with this id is remembered."""
    return (
        f"There is no lease '{lease}': it never existed here,"
        f" or it ended more than {LEASES_KEPT_HOURS} hours ago."
    )
