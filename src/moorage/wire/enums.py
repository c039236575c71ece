"""Values of pools and leases that are one of a few names."""

from typing import Literal

State = Literal["waiting", "granted", "ended"]
"""A ticket waits; it becomes a lease by being granted; either ends."""

Cause = Literal["released", "hold_over", "ttl_over", "revoked", "withdrawn", "unheard", "retried"]
"""Why a lease has ended, or a ticket without a grant (withdrawn, unheard, revoked)."""

Result = Literal["ok", "failed", "throttled"]
"""What became of a start."""

OnRetry = Literal["keep", "requeue"]
Until = Literal["granted", "ended"]
"""What to wait for: that a ticket is granted, or ends; or that a ticket or lease has ended."""

Expire = Literal["free", "keep"]

LadderRole = Literal["reader", "user", "service", "operator", "admin"]
"""The roles that rise in this order: each may do all that those before it may."""
