"""Leases and tickets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.wire.operations.operation import Operation, Types

if TYPE_CHECKING:
    from moorage.wire import admin, admission
else:
    admin, admission = map(Types, ("admin", "admission"))

CREATE_LEASE = Operation(
    "POST /v1/leases",
    role="user",
    scopes=("governor",),
    projects=True,
    body=admission.LeaseWanted,
    parameters=admission.LeaseAsked,
    answer=admission.Lease,
    status=201,
    also=(202, 200),
    summary="Ask for units of pools, all or none: a lease (201), or a ticket that waits (202).",
)

LIST_LEASES = Operation(
    "GET /v1/leases",
    role="reader",
    scopes=("janitor", "governor"),
    projects=True,
    parameters=admission.LeasesAsked,
    answer=admission.LeasePage,
    summary="List leases and tickets, oldest request first.",
)

VERIFY_LEASE = Operation(
    "GET /v1/leases/verify",
    role="reader",
    projects=True,
    parameters=admission.VerifyAsked,
    answer=admission.Verified,
    summary="Check whether a fencing token belongs to a lease that has units of a pool now.",
)

GET_LEASE = Operation(
    "GET /v1/leases/{id}",
    role="reader",
    scopes=("janitor", "governor"),
    projects=True,
    parameters=admission.LeaseLooked,
    answer=admission.Lease,
    summary="Get a lease or ticket; its owner may wait for the grant or for the end.",
)

RELEASE_LEASE = Operation(
    "DELETE /v1/leases/{id}",
    role="user",
    scopes=("janitor", "governor"),
    projects=True,
    parameters=admission.ReleaseWanted,
    answer=admission.Lease,
    summary="Release a lease, or withdraw a ticket; repeating it is harmless.",
)

PUT_LEASE_RECORD = Operation(
    "PUT /v1/leases/{id}/record",
    role="user",
    scopes=("governor",),
    projects=True,
    body=admission.RecordWanted,
    answer=admission.Lease,
    summary="Replace the record of a lease, unless it has another version.",
)

SET_LEASE_HOLD = Operation(
    "PATCH /v1/leases/{id}",
    role="user",
    projects=True,
    body=admission.HoldWanted,
    answer=admission.Lease,
    summary="Set when a lease ends by itself, in seconds from now, or that it does not.",
)

RENEW_LEASE = Operation(
    "POST /v1/leases/{id}/renew",
    role="user",
    scopes=("janitor", "governor"),
    projects=True,
    body=admission.HolderProof,
    answer=admission.Lease,
    summary="Renew a lease: its TTL starts again now.",
)

RETRY_LEASE = Operation(
    "POST /v1/leases/{id}/retry",
    role="user",
    scopes=("governor",),
    projects=True,
    body=admission.RetryWanted,
    answer=admission.Lease,
    status=201,
    also=(202, 200),
    summary="Release a lease and ask for the same again, in one step.",
)

REPORT_LEASE_OUTCOME = Operation(
    "POST /v1/leases/{id}/outcome",
    role="user",
    scopes=("governor",),
    projects=True,
    body=admission.OutcomeWanted,
    answer=admission.Lease,
    summary="Report the outcome of what was started, as evidence for choosing a limit.",
)

REVOKE_LEASE = Operation(
    "POST /v1/leases/{id}/revoke",
    role="operator",
    scopes=("janitor",),
    body=admission.RevokeWanted,
    answer=admission.Lease,
    summary="Revoke a lease or ticket.",
)

MOVE_LEASE = Operation(
    "POST /v1/leases/{id}/move",
    role="operator",
    body=admission.MoveWanted,
    answer=admission.Lease,
    summary="Give a ticket another priority, or make it the first in all its lines.",
)

FORCE_LEASE = Operation(
    "POST /v1/leases/{id}/force",
    role="operator",
    answer=admission.Lease,
    summary="Grant a waiting ticket at once, over the limit if necessary.",
)

REVOKE_OWNER_LEASE = Operation(
    "POST /v1/leases/revoke",
    role="user",
    projects=True,
    body=admin.OwnerRevokeWanted,
    answer=admin.OwnerRevoked,
    summary="End all tickets and leases of an owner; one's own, or as an operator.",
)
