"""Every bound of the rules: what a caller may send, and what is kept for how long.

Bounds of the process (queues, bodies) are settings; their defaults are here. A constant that tunes
one algorithm is next to it.
"""

from moorage.wire import defaults, pages

MAX_INT = defaults.MAX_UNIT
"""Largest amount, total or unit size: the signed 32-bit integer of the Placement API."""

ALLOCATION_RATIO_MAX = 3.40282e38
"""Largest allocation ratio: Placement stores a single-precision float."""

PAGE_MAX = pages.PAGE_MAX
"""Entries in one page of a list, and changes in one response of the change feed."""

CAPACITY_ENDS_MAX = 10
"""The fullest, and the emptiest, providers that a line of `/v1/capacity` names."""

CAPACITY_WITHHELD_MAX = 20
"""Withheld providers that the same answer names."""

CAPACITY_NAMED_MAX = 1_000
"""Its lines multiplied by the providers that each names at one end."""

WAIT_SECONDS_MAX = 60.0
"""The longest wait of one request."""

NAME_LENGTH_MAX = 200
"""Characters in a provider's name."""

IDENTIFIER_LENGTH_MAX = 255
"""Characters in the name of a resource class, trait, consumer type, project or user."""

UUID_LENGTH_MAX = 255
"""Characters in a UUID, in any spelling."""

SUFFIX_LENGTH_MAX = 64
"""Characters in the suffix of a request group."""

CURSOR_DIGITS_MAX = 18
"""Digits of each number in a cursor: it fits into a signed 64-bit integer."""

TREE_SIZE_MAX = 10_000
"""Providers in one tree that a re-parenting may move at once."""

AGGREGATES_MAX = 1_000
"""Aggregates of one provider: a search reads all those of a sharing provider at once."""

CANDIDATES_MAX = 100_000
"""Candidates in one answer; the setting `candidates_max` overrides it."""

TOKEN_CACHE_MAX = 200_000
"""Tokens cached in memory, one for each agent; the setting `token_cache_max` overrides it."""

CANDIDATE_STEPS_MAX = 3_000_000
"""Steps after which a candidate search stops and returns what it has found: a few seconds."""

UNSENT_BYTES_MAX = 256 << 20
"""Bytes of memory that a process may use for all long answers that are not sent yet."""

ANCHOR_STEPS_MAX = 10_000
"""Steps between two candidates of one anchor, beyond a direct path, before it is given up."""

CLAIM_STEPS_MAX = 200_000
"""As `CANDIDATE_STEPS_MAX`, for a claim: all other changes wait during its search."""

RESHAPE_CONSUMERS_MAX = 10_000
"""Consumers on the providers whose inventories one reshape plan moves, shrinks or removes."""

HOLDERS_MAX = 2 * RESHAPE_CONSUMERS_MAX
"""Consumers that are loaded to judge a plan, or the undoing of one: others may have come since."""

RESHAPE_PROVIDERS_MAX = TREE_SIZE_MAX
"""Providers that one reshape plan names."""

RESHAPE_MOVES_MAX = 1_000
"""Moves of one reshape plan."""

RESHAPE_ENTRIES_MAX = 200_000
"""Members of all lists and objects of one reshape plan: for each one there may be a violation."""

MACHINE_PLAN_ENTRIES_MAX = 10_000
"""Entries in the plan of a machine: a few for each of a thousand guests."""

MACHINE_PROVIDERS_MAX = 2_048
"""Providers in the tree of a machine to which its plan adds some: more than hardware has parts."""

MACHINE_RESHAPES_MAX = 20
"""Reshapes that the plans of one machine make within an hour: each leaves a record."""

VIOLATIONS_ANSWERED_MAX = 500
"""Violations that a machine is answered: it reads at most 1 MiB."""

RESHAPE_NUMBER_MAX = 1 << 53
"""The highest number in a reshape plan: every JSON library reads it exactly."""

TICKETS_READ_MAX = 1_000
"""Waiting tickets that a preview of a plan looks at: those that ask for what may change."""

TICKETS_NAMED_MAX = 100
"""Waiting tickets that a preview names."""

RESHAPE_BYTES_MAX = 8 << 20
"""Bytes of JSON that are kept of one reshape: what it has changed, and how it is undone."""

BULK_PROVIDERS_MAX = 5_000
"""Providers in one bulk request."""

IMPORT_ROWS_MAX = 1_000
"""Rows that one request of an import writes and deletes: they are one batch."""

IMPORT_BYTES_MAX = 4 << 20
"""Bytes in a body with rows to import."""

IMPORT_NAMES_MAX = 50_000
"""Inventories, traits, aggregates and amounts of all rows of one request together."""

IMPORT_ROW_NAMES_MAX = 10_000
"""Those of one row: it is decoded without interruption."""

IMPORT_SOURCE_LENGTH_MAX = 1_000
"""Characters in the description of the ledger that is imported."""

PROVIDER_BYTES_MAX = 1 << 18
"""Bytes that describe one provider of a bulk request, which is decoded without interruption."""

AROUND_BYTES_MAX = 1 << 16
"""Bytes before the list of a bulk request, and likewise after it, without blanks at the end."""

GROUPS_MAX = 64
"""Request groups in one candidate query."""

QUERY_TERMS_MAX = 1_000
"""Classes, traits or aggregates named in one query."""

NEEDS_MAX = 16
"""Pools from which one lease may need units."""

ALTERNATIVES_MAX = 16
"""Alternatives of one request."""

ALTERNATIVES_NEEDS_MAX = 64
"""Needs of all alternatives of one request: it may wait in that many lines."""

WISHES_MAX = 32
"""Different sets of labels for which the tickets of one line ask: grants compare each of them with
each free slot."""

TEMPLATES_MAX = 100
"""Templates of pools: all are read to make a pool."""

TEMPLATE_POOLS_MAX = 10_000
"""Highest value of a template's `pools_max`."""

SLOTS_MAX = 2_000
"""Slots that the native API makes in one pool: every decision reads all slots of its pools."""

KEY_LENGTH_MAX = 255
"""Characters in a lease's idempotency key, a label's value, a slot's name or a group's name."""

GROUP_LEASES_MAX = 64
"""Granted leases of one group of requests: each new request reads them all."""

ASKED_BYTES_MAX = 2_300
"""Bytes of UTF-8 of a lease's owner and key together: one index contains both."""

POOL_NAME_LENGTH_MAX = 255
"""Characters in a pool's name."""

LABELS_MAX = 32
"""Labels of one pool or lease."""

LABELS_BYTES_MAX = 4_096
"""Bytes in UTF-8 of all labels of one object, names and values: they are stored several times."""

LABEL_NAME_LENGTH_MAX = 63
"""Characters in the name of a label."""


DETAIL_LENGTH_MAX = 1_000
"""Characters in a reason or detail that a caller gives."""

RECORD_BYTES_MAX = 4_096
"""Bytes of a lease's record, as JSON without blanks in UTF-8."""

LEASES_KEPT_HOURS = 24
"""How long an ended lease and its key are remembered; the setting `ended_leases_hours` overrides
it. A report covers this time, unless it is asked for another."""

LEASES_KEPT_HOURS_MIN = 1
"""Ended leases of the last hour are kept, however many there are: their clients may ask again."""

REPORT_LEASES_MAX = 50_000
"""Ended leases that a report covers, the newest ones; and starts from which it knows rates."""

SCENES_MAX = 8
"""Limits and pacings that one rehearsal of a pool tries."""

CAUSE_LENGTH_MAX = 64
"""Characters in the cause of a failed start: a few of them are kept with a pool."""

RATE_MIN, RATE_MAX = 0.0001, 0.9
"""The failure rates between which an adaptive limit decides: a good and a bad one."""

RATES_APART = 1.5
"""The bad rate is at least this many times the good one: close rates need too many outcomes."""

THROTTLED_MAX = 20
"""Throttled starts within one hold that an adaptive limit may wait for."""

OUTCOMES_KEPT_DAYS = 90
"""How long recorded outcomes are kept."""

TTL_SECONDS_MIN = 1
"""Shortest TTL: renewals must have time to arrive."""

PATIENCE_SECONDS_MAX = 3_600
"""Longest time that a ticket may wait between two polls."""

DURATION_SECONDS_MAX = 31_622_400
"""Longest duration of admission: 366 days."""

OFFER_SECONDS_MAX = 86_400
"""Longest time for which a lease is offered to another owner."""

KEPT_SECONDS_MAX = 86_400
"""Longest time from now for which a lease is kept for inspection in pools without `hold_max`."""

PRIORITY_MAX = defaults.PRIORITY_MAX
"""Highest priority of a request; the lowest is its negative."""

FIND_TEXT_LENGTH_MIN, FIND_TEXT_LENGTH_MAX = 2, 255
"""Characters of a text to find."""

FIND_LIMIT_MAX = 100
"""Things of one kind that are returned for a text."""

LEASES_SCANNED_MAX = 20_000
"""Leases that one request for a filtered list looks at; then it returns a page, however short."""

AUDIT_SCANNED_MAX = 20_000
"""Audit rows that one request for a filtered list looks at; then it returns a page."""

MOVED_PRIORITY_MAX = 2 * PRIORITY_MAX
"""Highest priority of a ticket that an operator has made the first in line."""

BOOKINGS_MAX = 200
"""Bookings of one pool that are not over: every decision about the pool reads them."""

CALLED_MAX = 1_000
"""Tickets of cancelled bookings that one batch ends; others end in their turn."""

BOOKINGS_OVER_MAX = 500
"""Bookings of one pool that are kept although they are over or cancelled: each may have 15 KB."""

WINDOWS_MAX = 366
"""Windows of one booking: those of a year, if it is daily."""

BOOKED_WINDOWS_MAX = 2_000
"""Windows of all bookings of one pool that are not over."""

BOOKER_SHARE = 2
"""The owners of one project together, or one without a project, may have the half of these."""

BOOKED_WINDOWS_PAGE_MAX = 5_000
"""Windows of all bookings in one page: then it ends, however few bookings it has."""

BOOKED_AHEAD_MAX_DAYS = 731
"""How far ahead a booking may end: two years."""

OFFERS_MAX = 50
"""Windows in one answer about free units."""

OFFERS_DAYS_MAX = 92
"""The longest time between the times among which free units are sought."""

QUEUE_MAX_MAX = 1_000_000
"""Highest value of a pool's `queue_max`."""

DUE_MAX = 512
"""Leases and tickets that one batch expires, and pools that it wakes; the next batch continues."""

RESTS_MAX = 64
"""Cooldown end times stored for one pool; beyond this number, neighbouring times are merged."""

USER_DATA_LENGTH_MAX = 1_048_576
"""Characters in the user data of one slot, keys and values together."""

AGENT_PARTS_MAX = 64
"""Parts of one machine, those included that its agent has registered before."""

PART_CLASSES_MAX = 8
"""Resource classes of one part, those included that the agent has registered before."""

PART_NAME_LENGTH_MAX = 63
"""Characters in the name of a part of a machine."""

BOOT_ID_LENGTH_MAX = 64
"""Characters in the id of a boot: Linux has UUIDs."""

PAST_BOOTS_MAX = 8
"""Superseded boots of a machine that are remembered and refused."""

REPORT_GENERATION_MAX = 1 << 53
"""Highest generation in a report: every JSON library reads it exactly."""

REPORTS_SKIPPED_MAX = 1_000_000
"""Generations that one report may skip: no report can use them up."""

REPORTED_CONSUMERS_MAX = 10_000
"""Consumers in one report of an agent."""

CONFIRMED_CONSUMERS_MAX = 20_000
"""Consumers that the server remembers from all reports of one boot."""

GROUP_NAME_LENGTH_MAX = 200
"""Characters in the name of a group of agents: pools are named after groups."""

GROUP_CLASSES_MAX = 64
"""Resource classes with a default in one group of agents."""

MEMBERS_MAX = 64
"""Members of one group of reporters."""

MEMBERS_KEPT_HOURS = 24
"""How long a silent member of a group of reporters is kept, at least."""

MEMBER_TTL_SECONDS_MIN = 5
"""Shortest TTL of a reporter."""

MEMBER_TTL_SECONDS_MAX = 3_600
"""Longest TTL of a reporter."""

PAST_INSTANCES_MAX = 8
"""Fenced instances of a reporter that are remembered: they may not join again."""

DELETED_INSTANCES_MAX = 1_024
"""Instances of members of deleted groups of one name that are remembered: more than one has."""

PASS_CODES_MAX = 64
"""Codes of refusals in what a reporter says of its last pass."""

OBSERVED_MAX = 1_000
"""Members of one group that somebody else observes."""

PINS_MAX = 5_000
"""Nodes that one request may pin."""

REPORTED_NAMES_MAX = 500
"""Classes, traits and aggregates that one node of a report may name together."""

REPORT_NAMES_MAX = 500_000
"""Classes, traits and aggregates that all nodes of a report may name together: 100 for each of
5,000 nodes. A name takes up to 400 bytes of memory."""

REPORT_NEW_NAMES_MAX = 50_000
"""Classes, traits and aggregates in one report that the ledger does not know yet: each is kept in
memory, an aggregate with up to 2 KB."""

SCOPE_NAMES_MAX = 64
"""Names in the scope of one token."""

ASKERS_MAX = 64
"""Entries in a pool's `askers`."""

GRACE_SECONDS_MAX = 3_600
"""The longest grace of a holder who is asked to stop for another ticket: that one waits for it."""

YIELDING_MAX = 256
"""Leases that one batch considers asking to stop, for all tickets of a line."""

SHARERS_MAX = 100
"""Sharers that a pool with a fair share remembers, and weights that it may have: they are in its
row, which every grant writes; each takes about 60 bytes and its name."""

SHARER_BYTES_MAX = 96
"""Bytes in UTF-8 of the name of a sharer: longer ones are cut, and end with a digest."""

COHORT_POOLS_MAX = 32
"""Pools of one cohort: a batch that needs one of them loads all."""

WEIGHT_MAX = 1_000
"""Highest weight of a sharer."""

PROXY_UNITS_MAX = 1_000
"""Units that one request to the lease proxy may acquire: each of them has a name."""

DURATION_LENGTH_MAX = 1_000
"""Characters in a duration of Boskos' clients: far more than real ones have. It bounds the time to
parse one."""

BOSKOS_BODY_BYTES_MAX = 65_536
"""Bytes in a body at the address for clients of Boskos: far above what these send. Callers need no
token there, and scanning invalid JSON of this length takes up to 40 ms."""

BOSKOS_PARAMETERS_MAX = 1_000
"""Parameters in a query of Boskos' clients: far above what these send. Each takes microseconds."""

BOSKOS_NAMES_MAX = 1_000
"""Names in one request of Boskos' clients."""

BACKUP_NAME_LENGTH_MAX = 200
"""Characters in the name of a backup."""

KEYSTONE_TOKEN_LENGTH_MAX = 16_384
"""Characters in a Keystone token."""

BODY_VALUES_MAX = 2_000_000
"""Values in one body: even a short one takes at least 100 bytes of memory. A consumer in a reshape
has nine; at their shortest, 150,000 consumers fit into `bulk_bytes_max`."""

BODY_BYTES_MAX = 1 << 20
"""Bytes in a body; the setting `body_bytes_max` overrides it."""

BULK_BYTES_MAX = 32 << 20
"""Bytes in the body of a reshape or bulk request; the setting `bulk_bytes_max` overrides it."""

QUERY_BYTES_MAX = 60_000
"""Bytes in a query string; the setting `query_bytes_max` overrides it."""

QUERY_PARAMETERS_MAX = 1_000
"""Parameters in a query string; the setting `query_parameters_max` overrides it."""

FORM_BYTES_MAX = 32_768
"""Bytes in a form of the dashboard: far above what its pages send. Its sender needs no token."""

PAGE_QUERY_BYTES_MAX = 6_000
"""Bytes in the query string of a page: hundreds of its links may repeat it."""

PAGE_QUERY_PARAMETERS_MAX = 256
"""Parameters in the query string of a page."""

CHANGES_QUEUED_MAX = 4_096
"""Change requests in the queue; the setting `queue_max` overrides it."""

COMBINING_MARKS_MAX = 4
"""Combining marks in a row. Source: Unicode Technical Standard #39, 5.4, Optional Detection."""

CALENDAR_EVENTS_MAX = 5_000
"""Events of a calendar file of bookings: they are made in memory."""

ZONE_LENGTH_MAX = 64
"""Characters in the name of a time zone: real ones have at most 38."""

SERIES_DAYS_MAX = 3 * 366
"""Days that are looked at for a series: more than bookings may reach into the future."""
