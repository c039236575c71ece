"""Leases and tickets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.wire.operations.operation import Access, Content, Operation, Types

if TYPE_CHECKING:
    from moorage.wire import admin, admission
    from moorage.wire.pools import lease_changes
else:
    admin, admission, lease_changes = map(Types, ("admin", "admission", "pools.lease_changes"))

CREATE_LEASE = Operation(
    Access("POST /v1/leases", "user", "governor", projects=True),
    Content(
        body=admission.LeaseWanted,
        parameters=admission.LeaseAsked,
        answer=admission.Lease,
        status=201,
        also=(202, 200),
    ),
    "Ask for units of pools, all or none: a lease (201), or a ticket that waits (202).",
)
LIST_LEASES = Operation(
    Access("GET /v1/leases", "reader", "janitor", "governor", projects=True),
    Content(parameters=admission.LeasesAsked, answer=admission.LeasePage),
    "List leases and tickets, oldest request first.",
)
VERIFY_LEASE = Operation(
    Access("GET /v1/leases/verify", "reader", projects=True),
    Content(parameters=lease_changes.VerifyAsked, answer=lease_changes.Verified),
    "Check whether a fencing token belongs to a lease that has units of a pool now.",
)
GET_LEASE = Operation(
    Access("GET /v1/leases/{id}", "reader", "janitor", "governor", projects=True),
    Content(parameters=admission.LeaseLooked, answer=admission.Lease),
    "Get a lease or ticket; its owner may wait for the grant or for the end.",
)
RELEASE_LEASE = Operation(
    Access("DELETE /v1/leases/{id}", "user", "janitor", "governor", projects=True),
    Content(parameters=lease_changes.ReleaseWanted, answer=admission.Lease),
    "Release a lease, or withdraw a ticket; repeating it is harmless.",
)
PUT_LEASE_RECORD = Operation(
    Access("PUT /v1/leases/{id}/record", "user", "governor", projects=True),
    Content(body=lease_changes.RecordWanted, answer=admission.Lease),
    "Replace the record of a lease, unless it has another version.",
)
SET_LEASE_HOLD = Operation(
    Access("PATCH /v1/leases/{id}", "user", projects=True),
    Content(body=lease_changes.HoldWanted, answer=admission.Lease),
    "Set when a lease ends by itself, in seconds from now, or that it does not.",
)
KEEP_LEASE = Operation(
    Access("POST /v1/leases/{id}/keep", "user", projects=True),
    Content(body=lease_changes.KeepWanted, answer=admission.Lease),
    "Keep a lease for inspection after its job: it needs no renewals, and ends by itself.",
)
OFFER_LEASE = Operation(
    Access("POST /v1/leases/{id}/offer", "user", projects=True),
    Content(body=lease_changes.OfferWanted, answer=admission.Lease),
    "Offer a lease to another owner, who may accept it.",
)
WITHDRAW_LEASE_OFFER = Operation(
    Access("DELETE /v1/leases/{id}/offer", "user", projects=True),
    Content(parameters=lease_changes.HolderProof, answer=admission.Lease),
    "Take the offer of a lease back.",
)
ACCEPT_LEASE = Operation(
    Access("POST /v1/leases/{id}/accept", "user", projects=True),
    Content(body=lease_changes.AcceptWanted, answer=admission.Lease, status=201, also=(200,)),
    "Take over a lease that is offered to the caller: the answer is the caller's new lease.",
)
DECLINE_LEASE = Operation(
    Access("POST /v1/leases/{id}/decline", "user", projects=True),
    Content(answer=admission.Lease),
    "Decline a lease that is offered to the caller.",
)
RENEW_LEASE = Operation(
    Access("POST /v1/leases/{id}/renew", "user", "janitor", "governor", projects=True),
    Content(body=lease_changes.HolderProof, answer=admission.Lease),
    "Renew a lease: its TTL starts again now.",
)
RETRY_LEASE = Operation(
    Access("POST /v1/leases/{id}/retry", "user", "governor", projects=True),
    Content(body=lease_changes.RetryWanted, answer=admission.Lease, status=201, also=(202, 200)),
    "Release a lease and ask for its units again, in one step.",
)
REPORT_LEASE_OUTCOME = Operation(
    Access("POST /v1/leases/{id}/outcome", "user", "governor", projects=True),
    Content(body=lease_changes.OutcomeWanted, answer=admission.Lease),
    "Report the outcome of a start, as evidence for choosing a limit.",
)
REVOKE_LEASE = Operation(
    Access("POST /v1/leases/{id}/revoke", "operator", "janitor"),
    Content(body=lease_changes.RevokeWanted, answer=admission.Lease),
    "Revoke a lease or ticket.",
)
MOVE_LEASE = Operation(
    Access("POST /v1/leases/{id}/move", "operator"),
    Content(body=lease_changes.MoveWanted, answer=admission.Lease),
    "Give a ticket another priority, or make it the first in all its lines.",
)
FORCE_LEASE = Operation(
    Access("POST /v1/leases/{id}/force", "operator"),
    Content(answer=admission.Lease),
    "Grant a waiting ticket at once, over the limit if necessary.",
)
REVOKE_OWNER_LEASE = Operation(
    Access("POST /v1/leases/revoke", "user", projects=True),
    Content(body=admin.OwnerRevokeWanted, answer=admin.OwnerRevoked),
    "End all tickets and leases of an owner; one's own, or as an operator.",
)
