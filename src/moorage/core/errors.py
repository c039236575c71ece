"""The one error of the core, and every code it can carry.

Each face has one table from code to status and adds no outcomes of its own. Messages use the words
of the Placement API reference, because its clients search them.
"""

from enum import StrEnum


class Code(StrEnum):
    """Why a request was refused. Stable: clients and faces switch on it."""

    # Something named in the address of the request does not exist.
    PROVIDER_NOT_FOUND = "provider_not_found"
    INVENTORY_NOT_FOUND = "inventory_not_found"
    ALLOCATIONS_NOT_FOUND = "allocations_not_found"
    CLASS_NOT_FOUND = "class_not_found"
    TRAIT_NOT_FOUND = "trait_not_found"
    TOKEN_NOT_FOUND = "token_not_found"
    POOL_NOT_FOUND = "pool_not_found"
    TEMPLATE_NOT_FOUND = "template_not_found"
    LEASE_NOT_FOUND = "lease_not_found"
    SLOT_NOT_FOUND = "slot_not_found"
    AGENT_NOT_FOUND = "agent_not_found"
    GROUP_NOT_FOUND = "group_not_found"
    PLACE_NOT_FOUND = "place_not_found"
    IMPORT_NOT_FOUND = "import_not_found"
    RESHAPE_NOT_FOUND = "reshape_not_found"
    BOOKING_NOT_FOUND = "booking_not_found"
    # Something named in the body of the request does not exist.
    PROVIDER_UNKNOWN = "provider_unknown"
    PARENT_UNKNOWN = "parent_unknown"
    CLASS_UNKNOWN = "class_unknown"
    TRAIT_UNKNOWN = "trait_unknown"
    INVENTORY_UNKNOWN = "inventory_unknown"
    POOL_UNKNOWN = "pool_unknown"
    # Another request was first, or the caller's view is stale.
    PROVIDER_GENERATION = "provider_generation"
    CONSUMER_GENERATION = "consumer_generation"
    DUPLICATE_PROVIDER = "duplicate_provider"
    INVENTORY_EXISTS = "inventory_exists"
    CLASS_EXISTS = "class_exists"
    POOL_EXISTS = "pool_exists"
    POOL_GENERATION = "pool_generation"
    TEMPLATE_EXISTS = "template_exists"
    TEMPLATE_GENERATION = "template_generation"
    BOOKING_GENERATION = "booking_generation"
    KEY_REUSED = "key_reused"
    TOKEN_STALE = "token_stale"
    LEASE_ENDED = "lease_ended"
    NOT_WAITING = "not_waiting"
    OUTCOME_TOLD = "outcome_told"
    RECORD_CHANGED = "record_changed"
    NOT_OFFERED = "not_offered"
    SLOT_STATE = "slot_state"
    STALE_BOOT = "stale_boot"
    SUPERSEDED_BOOT = "superseded_boot"
    STALE_REPORT = "stale_report"
    REPORT_CONFLICT = "report_conflict"
    AGENT_EXISTS = "agent_exists"
    NOT_ACCEPTED = "not_accepted"
    POLICY_FINAL = "policy_final"
    NOT_EXPUNGED = "not_expunged"
    FENCED = "fenced"
    IMPORT_EXISTS = "import_exists"
    IMPORT_TAKEN = "import_taken"
    RESHAPE_CHANGED = "reshape_changed"
    RESHAPE_UNDONE = "reshape_undone"
    EFFECT_CHANGED = "effect_changed"
    # It belongs to another owner.
    HOLDER_MISMATCH = "holder_mismatch"
    CLASS_MANAGED = "class_managed"
    ROOT_TAKEN = "root_taken"
    NOT_OWNER = "not_owner"
    # It is still in use.
    INVENTORY_IN_USE = "inventory_in_use"
    PROVIDER_IN_USE = "provider_in_use"
    PROVIDER_HAS_CHILDREN = "provider_has_children"
    CLASS_IN_USE = "class_in_use"
    TRAIT_IN_USE = "trait_in_use"
    POOL_IN_USE = "pool_in_use"
    SLOT_EXISTS = "slot_exists"
    SLOT_IN_USE = "slot_in_use"
    HAS_ALLOCATIONS = "has_allocations"
    GROUP_IN_USE = "group_in_use"
    GROUP_BEING_DELETED = "group_being_deleted"
    LEDGER_IN_USE = "ledger_in_use"
    # It does not fit.
    INVENTORY_MISSING = "inventory_missing"
    CAPACITY_EXCEEDED = "capacity_exceeded"
    UNITS_VIOLATED = "units_violated"
    NO_CAPACITY = "no_capacity"
    RESHAPE_REFUSED = "reshape_refused"
    UNITS_ABOVE_LIMIT = "units_above_limit"
    QUOTA_EXCEEDED = "quota_exceeded"
    BOOKED = "booked"
    # The pool does not permit this request from this caller.
    ASKER_REFUSED = "asker_refused"
    PRIORITY_ABOVE_MAX = "priority_above_max"
    HOLD_ABOVE_MAX = "hold_above_max"
    # The line, or the template, is full.
    TEMPLATE_FULL = "template_full"
    QUEUE_FULL = "queue_full"
    OWNER_QUEUE_FULL = "owner_queue_full"
    # Another part of the same tree was refused.
    TREE_REFUSED = "tree_refused"
    # The changes that the caller wants to follow have been removed.
    CHANGES_GONE = "changes_gone"
    # The machine has been taken out of service for ever.
    DECOMMISSIONED = "decommissioned"
    # The request itself is wrong.
    INVALID = "invalid"
    STANDARD_CLASS = "standard_class"
    STANDARD_TRAIT = "standard_trait"
    REPARENT_REFUSED = "reparent_refused"
    TREE_LOOP = "tree_loop"
    LIMIT_EXCEEDED = "limit_exceeded"
    # There may be an answer, but the search reached its bound.
    SEARCH_INCOMPLETE = "search_incomplete"
    # The sender could not see what it reports.
    OBSERVER_FAILED = "observer_failed"
    # The service cannot answer now.
    OVERLOADED = "overloaded"
    UNAVAILABLE = "unavailable"
    IMPORTING = "importing"


class Error(Exception):
    """A refused request: no part of it was applied.

    `code` is for programs. `message` is for people: what is wrong and what to change.
    """

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
