"""Defaults of inventories, of pools and of requests for leases. Durations are in seconds."""

MAX_UNIT = 2_147_483_647
"""An inventory's `max_unit`: the largest integer that the Placement API knows."""

TTL_SECONDS = 60.0
"""A pool's `ttl`."""

TTL_SECONDS_MAX = 86_400.0
"""A pool's `ttl_max`."""

PROXY_TTL_SECONDS = 28_800.0
"""A pool's `proxy_ttl`: longer than any usual job, and soon enough that a lost unit is back the
next day."""

QUEUE_MAX = 10_000
"""A pool's `queue_max`."""

PATIENCE_SECONDS = 30.0
"""A request's `patience`."""

OFFER_SECONDS = 600.0
"""How long a lease is offered to another owner."""

PRIORITY_MAX = 1_000_000
"""Highest priority of a ticket; the lowest is its negative."""

TEMPLATE_IDLE_SECONDS = 3_600.0
"""How long a pool that a request has made stays although nobody uses it."""

TEMPLATE_POOLS = 100
"""Pools of one template at once."""

HALF_LIFE_SECONDS = 3_600.0
"""The half-life of a fair share: about as long as a few jobs."""
