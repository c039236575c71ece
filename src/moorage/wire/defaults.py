"""Defaults of pools and of requests for leases. Durations are in seconds."""

TTL_SECONDS = 60.0
"""A pool's `ttl`."""

TTL_SECONDS_MAX = 86_400.0
"""A pool's `ttl_max`."""

QUEUE_MAX = 10_000
"""A pool's `queue_max`."""

PATIENCE_SECONDS = 30.0
"""A request's `patience`."""
