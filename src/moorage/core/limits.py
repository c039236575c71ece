"""Every bound of the rules. Bounds of the process (queues, bodies) are settings."""

MAX_INT = 2_147_483_647
"""Largest amount, total or unit size: the signed 32-bit integer of the Placement API."""

ALLOCATION_RATIO_MAX = 3.40282e38
"""Largest allocation ratio: Placement stores a single-precision float."""

PAGE_MAX = 1_000
"""Entries in one page of a list."""

NAME_LENGTH_MAX = 200
"""Characters in a provider's name."""

IDENTIFIER_LENGTH_MAX = 255
"""Characters in the name of a resource class, trait, consumer type, project or user."""

TREE_SIZE_MAX = 10_000
"""Providers in one tree that a re-parenting may move at once."""

AGGREGATES_MAX = 1_000
"""Aggregates of one provider: a search reads all those of a sharing provider at once."""

CANDIDATES_MAX = 100_000
"""Candidates in one answer; the setting `candidates_max` overrides it."""

CANDIDATE_STEPS_MAX = 3_000_000
"""Steps after which a candidate search stops and returns what it has found: a few seconds."""

UNSENT_BYTES_MAX = 256 << 20
"""Bytes of memory that a process may use for all long answers that are not sent yet."""

ANCHOR_STEPS_MAX = 10_000
"""Steps between two candidates of one anchor, beyond a direct path, before it is given up."""

CLAIM_STEPS_MAX = 200_000
"""As `CANDIDATE_STEPS_MAX`, for a claim: all other changes wait during its search."""

BULK_PROVIDERS_MAX = 5_000
"""Providers in one bulk request."""

GROUPS_MAX = 64
"""Request groups in one candidate query."""

QUERY_TERMS_MAX = 1_000
"""Classes, traits or aggregates named in one query."""

NEEDS_MAX = 16
"""Pools from which one lease may need units."""

KEY_LENGTH_MAX = 255
"""Characters in a lease's idempotency key, a label's value or a slot's name."""

ASKED_BYTES_MAX = 2_300
"""Bytes of UTF-8 of a lease's owner and key together: one index contains both."""

POOL_NAME_LENGTH_MAX = 255
"""Characters in a pool's name."""

LABELS_MAX = 32
"""Labels of one pool or lease."""

LABEL_NAME_LENGTH_MAX = 63
"""Characters in the name of a label."""

DETAIL_LENGTH_MAX = 1_000
"""Characters in a reason or detail that a caller gives."""

LEASES_KEPT_HOURS = 24
"""How long an ended lease and its key are remembered."""

TTL_SECONDS_MIN = 1
"""Shortest TTL: renewals must have time to arrive."""

PATIENCE_SECONDS_MAX = 3_600
"""Longest time that a ticket may wait between two polls."""

DURATION_SECONDS_MAX = 31_622_400
"""Longest duration of admission: 366 days."""

PRIORITY_MAX = 1_000_000
"""Highest priority of a ticket; the lowest is its negative."""

QUEUE_MAX_MAX = 1_000_000
"""Highest value of a pool's `queue_max`."""

DUE_MAX = 512
"""Leases and tickets that one batch expires, and pools that it wakes; the next batch continues."""

RESTS_MAX = 64
"""Cooldown end times stored for one pool; beyond this number, neighbouring times are merged."""

USER_DATA_LENGTH_MAX = 1_048_576
"""Characters in the user data of one slot, keys and values together."""

SCOPE_NAMES_MAX = 64
"""Names in the scope of one token."""

ASKERS_MAX = 64
"""Entries in a pool's `askers`."""

PROXY_UNITS_MAX = 1_000
"""Units that one request to the lease proxy may acquire: each of them has a name."""
