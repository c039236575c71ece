"""Values that are one of a few names."""

from typing import Literal

State = Literal["waiting", "granted", "ended"]
"""A waiting ticket becomes a lease when it is granted; both can end."""

Cause = Literal[
    "released",
    "hold_over",
    "ttl_over",
    "revoked",
    "withdrawn",
    "gave_up",
    "unheard",
    "retried",
    "unconfirmed",
    "superseded",
    "handed_over",
    "preempted",
]
"""Why a lease ended, or a ticket without a grant (withdrawn, gave_up, unheard, revoked)."""

Result = Literal["ok", "failed", "throttled"]
"""The outcome of a start."""

Choose = Literal["least_loaded", "order"]
"""Which of several alternatives that fit is granted: the least loaded one, or the first."""
AdaptiveMode = Literal["advise", "act"]
"""Whether an adaptive limit only says what it would do, or does it."""

Verdict = Literal["good", "bad", "throttled"]
"""Few of the starts fail, or too many; or the system behind a pool has throttled some of them."""

OnRetry = Literal["keep", "requeue"]
Order = Literal["oldest", "newest"]
"""Which of the tickets with one priority goes first."""

Until = Literal["granted", "ended", "asked_to_stop"]
"""What to wait for: a ticket is granted or ends; a ticket or lease ends; or it ends, or is asked to
stop."""

Expire = Literal["free", "keep"]

FoundKind = Literal[
    "provider",
    "agent",
    "group",
    "pool",
    "lease",
    "ticket",
    "consumer",
    "project",
    "reshape",
    "token",
]
"""What a text can find."""

CapacityBy = Literal["class", "aggregate", "trait"]

UsageBy = Literal["project", "user", "type", "class"]

MovePolicy = Literal["explicit", "only_if_unused", "fit"]
"""What happens to consumers on the source of a move that nothing else says where to go."""

LadderRole = Literal["reader", "user", "service", "operator", "admin"]
"""The roles in rising order: each may do all that the roles before it may."""

ScopedRole = Literal["janitor", "agent", "enroller", "governor", "reporter"]
"""The roles beside them, each restricted to the objects that its token names."""

Policy = Literal["in_service", "no_provision", "expunged"]
"""What operators want: use the machine, place nothing new on it, or never again (final)."""

AgentState = Literal["active", "decommissioned"]
"""A decommissioned agent never returns; its UUID is used up."""

Readiness = Literal["unregistered", "preparing", "ready", "degraded", "failed"]
"""What the agent's reports say of the machine since it booted."""

Liveness = Literal["fresh", "late", "lost"]
"""Whether the agent has been heard of in time, by the clock of the server."""

Silence = Literal["own", "all"]
"""What is closed while an agent is silent: its own classes, or every class of its machine."""

Phase = Literal["preparing", "done"]
"""Whether the agent has finished its first full pass since it registered."""

PlanOutcome = Literal["done", "satisfied", "undone"]
"""What became of an agent's plan: it was carried out in this boot; its shape was there already; or
it was carried out in this boot, and an operator has undone it since."""

Directive = Literal["none", "report", "register", "inert"]
"""What the agent must do now. inert: stop all work permanently."""
