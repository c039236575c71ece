"""Values of pools and leases that are one of a few names."""

from typing import Literal

State = Literal["waiting", "granted", "ended"]
"""A ticket waits; it becomes a lease by being granted; either ends."""

Cause = Literal["released", "hold_over", "ttl_over", "revoked", "withdrawn", "unheard", "retried"]
"""Why a lease has ended, or a ticket without a grant (withdrawn, unheard, revoked)."""

Result = Literal["ok", "failed", "throttled"]
"""What became of a start."""

OnRetry = Literal["keep", "requeue"]
Expire = Literal["free", "keep"]
