"""What the OpenAPI document says beyond the types: descriptions of parameters and of values."""

from typing import Any

from moorage.wire import enums

ENUMS: dict[str, Any] = {
    "AgentPolicy": enums.Policy,
    "AgentState": enums.AgentState,
    "Directive": enums.Directive,
    "Expire": enums.Expire,
    "LeaseCause": enums.Cause,
    "LeaseResult": enums.Result,
    "LeaseState": enums.State,
    "Liveness": enums.Liveness,
    "MovePolicy": enums.MovePolicy,
    "OnRetry": enums.OnRetry,
    "PoolOrder": enums.Order,
    "Phase": enums.Phase,
    "Readiness": enums.Readiness,
    "Until": enums.Until,
}
"""The names of schemas of values that are one of a few."""

ENUM_DESCRIPTIONS = {
    "AgentPolicy": "What operators want of a machine: use it, place nothing new on it, or never"
    " use it again.",
    "AgentState": "A decommissioned agent never returns.",
    "Directive": "What an agent must do now; inert: stop all work permanently.",
    "Expire": "Whether a lease that is not renewed in time frees its units or keeps them.",
    "LeaseCause": "Why a lease has ended, or a ticket without a grant.",
    "LeaseResult": "The outcome of what was started with a lease.",
    "LeaseState": "A waiting ticket becomes a lease when it is granted; both can end.",
    "Liveness": "Whether an agent was heard of in time, by the clock of the server.",
    "MovePolicy": "What happens to consumers on the source of a move that no other member places.",
    "OnRetry": "Whether a retry keeps its place, or goes to the end of the line.",
    "PoolOrder": "Which of the tickets with one priority goes first.",
    "Phase": "Whether an agent has finished its first full pass since it registered.",
    "Readiness": "What the reports of an agent say of its machine since it booted.",
    "Until": "What to wait for: the grant of a ticket, or the end of a ticket or lease;"
    " asked_to_stop: that end, or that the holder is asked to stop.",
}

VARIABLES = {
    "id": "The UUID of the object.",
    "name": "The name of the object.",
    "member": "The name of a member of the group.",
    "consumer": "The UUID of a consumer.",
    "slot": "The name of the slot.",
}
"""Variables in paths."""

PARAMETERS = {
    "action": "Only this action, such as `pool.pause`, or all actions of a noun: `pool`.",
    "after": "A cursor, EPOCH.REVISION or EPOCH.REVISION.N; without it only changes from now on."
    " Of rows: the name or UUID after which they begin.",
    "between": "From when until when, as START/END; null: in the next seven days.",
    "boot_id": "The boot of the machine; required.",
    "by": "What each line sums up. Of capacity: class: all providers with a resource class; of"
    " usages: user: those of one project.",
    "candidates": "The question as the query string of Placement's `GET /allocation_candidates`.",
    "consumer": "Only leases with allocations of the consumer with this UUID.",
    "cursor": "The `next` of the page before; null: the first page.",
    "duration": "For how long the units must be free, in seconds.",
    "ends": "How many of the fullest and of the emptiest providers each line names; at most 10.",
    "group": "Only agents, or leases, of this group.",
    "id_prefix": "Only entries whose id begins with this; at least 8 characters.",
    "instance": "Leave only if the member still has this instance.",
    "key_prefix": "Only leases whose key begins with this; needs `owner`.",
    "kind": "The kind of rows.",
    "kinds": "Kinds of changes, separated by commas; null: all.",
    "label": "Only entries with this label, NAME=VALUE; for agents also NAME.",
    "points": "The number of equal parts of the time, at most 1000.",
    "leases": "The most leases that are returned, at most 1000.",
    "tickets": "The most tickets that are returned, at most 1000.",
    "limit": "The most entries to return; at most 1000.",
    "liveness": "Only agents with this liveness.",
    "mine": "Only leases or bookings of the caller.",
    "name": "Only the provider with exactly this name.",
    "needs": "POOL or POOL=UNITS; may be repeated: all of them at once.",
    "offered": "Only agents whose machines are offered, or are not.",
    "older": "Only leases that have been in their state, or consumers that are there, for at least"
    " this many seconds.",
    "format": "ics: all bookings at once, as a calendar file (RFC 5545).",
    "over": "Also bookings that are over or cancelled.",
    "owner": "Only leases or bookings of this owner.",
    "policy": "Only agents with this policy.",
    "pool": "The name of a pool.",
    "project": "Only consumers of this project.",
    "provider": "Only consumers with allocations of the provider with this UUID.",
    "query": "The question, as JSON.",
    "readiness": "Only agents with this readiness.",
    "reason": "The reason, for the audit log.",
    "record_version": "Release only if the record of the lease has this version.",
    "resource_class": "Only this resource class.",
    "since": "Of pools: how long ago leases may have ended, in seconds. Of the audit log: the time"
    " of the oldest entry.",
    "state": "Only entries in this state.",
    "target": "Only entries about this object: the name of a pool, or the id of a lease, a token"
    " or an agent.",
    "token": "The fencing token of the lease.",
    "machine": "Only leases of the machine that any of these names or UUIDs mean.",
    "tree": "Only what is in, or holds something of, or has changed, the tree of this provider.",
    "type": "Only consumers of this type; unknown: those without a type.",
    "text": "A part of a name, of a label or of an owner, or the first 8 characters of an id.",
    "until": "Of a lease: what to wait for. Of the audit log: the time of the newest entry.",
    "who": "Only entries of this actor.",
    "gave_up": "Whether the longest wait of the ticket's client is over: its cause then says so.",
    "revoke_leases": "Whether the leases of the token end, too, not only its tickets.",
    "user": "Only consumers of this user.",
    "wait": "How long to wait, in seconds; at most 60.",
    "writer": "The name of the program that writes the rows, as at the beginning.",
}
"""Query parameters, for all routes that have them."""
