"""What the OpenAPI document says beyond the types: descriptions of parameters, examples."""

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
    "Phase": "Whether an agent has finished its first full pass since it registered.",
    "Readiness": "What the reports of an agent say of its machine since it booted.",
    "Until": "What to wait for: the grant of a ticket, or the end of a ticket or lease.",
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
    "boot_id": "The boot of the machine; required.",
    "by": "What each line sums up. Of capacity: class: all providers with a resource class; of"
    " usages: user: those of one project.",
    "candidates": "The question as the query string of Placement's `GET /allocation_candidates`.",
    "consumer": "Only leases with allocations of the consumer with this UUID.",
    "cursor": "The `next` of the page before; null: the first page.",
    "ends": "How many of the fullest and of the emptiest providers each line names; at most 10.",
    "group": "Only agents of this group.",
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
    "mine": "Only leases of the caller.",
    "name": "Only the provider with exactly this name.",
    "offered": "Only agents whose machines are offered, or are not.",
    "older": "Only leases that have been in their state, or consumers that are there, for at least"
    " this many seconds.",
    "owner": "Only leases of this owner.",
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

_AGENT_BOOT = "2f1c9c0e-5d0b-4d62-a7d9-0c1b6f6f9a11"
_NODE = "6e0f3c52-0000-4000-8000-000000000001"
_INSTANCE = "5d4c1b1e-7f0a-4a63-9f0e-2f7c6b1d8a55"
_QUESTION = {
    "groups": [{"resources": {"VCPU": 4, "MEMORY_MB": 8192}, "required": ["HW_CPU_X86_AVX2"]}]
}
_GOLD = {"CUSTOM_GOLD": {"total": 1}}
_GPU = "6e0f3c52-0000-4000-8000-0000000000a1"
_GUEST = "c0000000-0000-4000-8000-000000000001"
_SPLIT = {
    "create": [{"uuid": _GPU, "name": "node-1_gpu0", "parent": _NODE}],
    "moves": [
        {
            "from": {"provider": _NODE, "class": "VGPU"},
            "to": {"provider": _GPU, "class": "VGPU"},
            "amount": 8,
            "assign": {_GUEST: {_GPU: 2}},
        }
    ],
    "traits": {_GPU: ["HW_GPU_API_VULKAN"]},
}
_PAGES = {_NODE: {"CUSTOM_HUGEPAGES_2MB": 1024}}

BODIES: dict[str, dict[str, Any]] = {
    "ActionWanted": {"action": "pool.tune", "target": "install/azure", "limit": 12},
    "AgentWanted": {"group": "compute", "labels": {"rack": "7"}},
    "AliveRequest": {"boot_id": _AGENT_BOOT, "report_generation": 3},
    "BackupWanted": {"name": "monday.sqlite"},
    "ClaimWanted": {**_QUESTION, "project_id": "shop", "user_id": "alice", "choose": "pack"},
    "AgentRootRequest": {"root": "9f1c3c52-5d0f-4a0e-8a55-3f0d0b9e7c11"},
    "DesiredRequest": {"resource_class": "CUSTOM_HUGEPAGES_2MB", "amount": 1024},
    "DrainWanted": {"keep": True, "reason": "disk fails"},
    "EnrollRequest": {"group": "compute"},
    "GroupWaitRequest": {"seconds": 3600.0},
    "GroupWanted": {"desired": {"CUSTOM_HUGEPAGES_2MB": {"percent": 50.0}}},
    "HoldWanted": {"hold": 1200.0},
    "HolderProof": {"token": "1.17.0"},
    "LeaseWanted": {
        "needs": [{"pool": "install/azure", "units": 1}],
        "key": "build-4711",
        "hold": 1200.0,
        "labels": {"job": "4711"},
    },
    "BoskosResourcesWanted": {
        "resources": [
            {
                "name": "project-1",
                "state": "busy",
                "owner": "job-4711",
                "updated_at": "2026-11-21T01:45:30Z",
            }
        ]
    },
    "MemberWanted": {"instance": _INSTANCE, "ttl": 30.0},
    "MoveWanted": {"first": True},
    "ObservedWanted": {"members": ["compute-1"], "seen_at": "2026-11-21T01:45:30Z"},
    "OutcomeWanted": {"result": "throttled", "detail": "HTTP 429 from the cloud"},
    "OwnerRevokeWanted": {"owner": "shop/ci", "state": "waiting", "reason": "a runaway job"},
    "PauseWanted": {"reason": "rack 7 is being repaired"},
    "PinsWanted": {"nodes": [_NODE], "member": "reporter-1"},
    "DrainRequest": {"reason": "new disks"},
    "PolicyRequest": {"reason": "broken disk"},
    "PoolWanted": {"limit": 10, "hold": 3600.0},
    "RehearsalWanted": {"scenes": [{"limit": 30}, {"limit": 50, "pacing": None}]},
    "ImportWanted": {"source": "postgresql://placement.example.org/placement"},
    "ProvidersWanted": {
        "providers": [{"uuid": _NODE, "name": "node-1", "inventories": _GOLD}],
        "create_vocabulary": True,
    },
    "Question": _QUESTION,
    "RowsWanted": {
        "traits": [
            {
                "name": "CUSTOM_GOLD",
                "created_at": "2026-01-31T12:00:00Z",
                "updated_at": "2026-01-31T12:00:00Z",
            }
        ]
    },
    "RecordWanted": {"version": 0, "record": {"step": "started"}},
    "RegisterRequest": {
        "boot_id": _AGENT_BOOT,
        "facts": {"hostname": "host-1"},
        "parts": [
            {
                "provider": _NODE,
                "name": "host-1",
                "classes": {"CUSTOM_HUGEPAGES_2MB": {"eligible": 2048}},
            }
        ],
    },
    "ReportRequest": {
        "boot_id": _AGENT_BOOT,
        "report_generation": 3,
        "desired_generation_seen": 2,
        "phase": "done",
        "actual": _PAGES,
    },
    "ReportWanted": {
        "group": "ironic",
        "member": "reporter-1",
        "token": "1.17.0",
        "nodes": [{"uuid": _NODE, "name": "node-1", "inventories": _GOLD}],
    },
    "RetryWanted": {"key": "build-4711-second", "requeue": True},
    "RevokeWanted": {"reason": "maintenance"},
    "RotationWanted": {"grace": 3600.0},
    "SlotLabelsWanted": {"labels": {"region": "eu"}},
    "ReshapeAsked": {"plan": _SPLIT},
    "ReshapeWanted": {"plan": _SPLIT, "id": "5b0c6f3e-1d2a-4c53-9a77-2f1e0d9c8b7a"},
    "UndoWanted": {"dry_run": True},
    "SlotsWanted": {"names": ["eu-1", "eu-2"], "labels": {"region": "eu"}},
    "TokenWanted": {"name": "ci", "role": "user", "project_id": "shop"},
}
"""An example of each body."""

ANSWERS: dict[str, dict[str, Any]] = {
    "Problem": {
        "type": "about:blank",
        "title": "Unprocessable Content",
        "status": 422,
        "detail": "There is no pool 'install/azur'.",
        "code": "pool_unknown",
        "request_id": "req-01d223d1-4f98-406d-a48c-cb0c92d93510",
        "oldest": None,
        "explain": None,
    },
    "Verified": {
        "current": True,
        "lease": "01a1fbc8-0d0b-7e0e-8b18-b932cb77a221",
        "expires_at": "2026-11-21T01:46:30.250017Z",
    },
}
"""Examples of answers."""
