"""Why a plan cannot be committed. All reasons are collected, never only the first."""

from enum import StrEnum

from msgspec import Struct

from moorage.core.ids import ConsumerId, ProviderId


class ViolationCode(StrEnum):
    """A stable code for each reason."""

    GENERATION_CHANGED = "generation_changed"
    """A generation in `expect` is not the current one."""
    TOO_LARGE = "too_large"
    """More consumers, providers or moves than one plan may have."""

    PROVIDER_UNKNOWN = "provider_unknown"
    PROVIDER_EXISTS = "provider_exists"
    """A provider to create exists already, or is created twice."""
    PROVIDER_DELETED = "provider_deleted"
    """The plan deletes a provider, and changes it or puts something there."""
    CONSUMER_UNKNOWN = "consumer_unknown"
    """The plan names a consumer that does not exist."""
    CLASS_UNKNOWN = "class_unknown"
    TRAIT_UNKNOWN = "trait_unknown"
    NAME_INVALID = "name_invalid"
    NAME_TAKEN = "name_taken"
    TREE_LOOP = "tree_loop"
    HAS_CHILDREN = "has_children"
    """A provider to delete has children that stay."""
    OTHER_TREE = "other_tree"
    """The named providers belong to several trees, without `cross_tree`."""
    AGGREGATES_EXCEEDED = "aggregates_exceeded"
    NOT_OWN = "not_own"
    """The plan of a machine concerns what does not belong to the machine."""
    OPERATORS_ONLY = "operators_only"
    """The plan of a machine decides what only operators may decide."""
    MANAGED = "managed"
    """An agent manages what the plan moves or deletes."""

    SOURCE_MISSING = "source_missing"
    """The source of a move has no inventory."""
    SAME_PLACE = "same_place"
    """The source of a move is its target."""
    AMOUNT_INVALID = "amount_invalid"
    """A move or an assignment of a negative amount."""
    POLICIES_DIFFER = "policies_differ"
    """The moves of one source have different policies."""
    ALL_TWICE = "all_twice"
    """Two moves of one source take all that is left."""
    TARGET_AMBIGUOUS = "target_ambiguous"
    """Two targets of a split have the same provider, so `assign` cannot tell them apart."""
    ASSIGN_CONTRADICTS = "assign_contradicts"
    """Two moves of one source assign a consumer differently, or it vacates where they put it."""
    ASSIGN_ELSEWHERE = "assign_elsewhere"
    """`assign` names a provider that is neither a target nor the source."""
    SOURCE_SHORT = "source_short"
    """The moves take more than the source has; `amount`: the missing units."""

    DRIFT = "drift"
    """`assign` and the ledger disagree; `amount`: what the ledger has."""
    UNASSIGNED = "unassigned"
    """A consumer on a source is not covered; `amount`: its units."""
    NOT_FUNGIBLE = "not_fungible"
    """`fit` for a class that the plan does not declare fungible."""
    INFEASIBLE = "infeasible"
    """No distribution of the consumers fits."""
    GAVE_UP = "gave_up"
    """The search for a distribution reached its bound; there may be one."""
    SOURCE_IN_USE = "source_in_use"
    """`only_if_unused`, but some of what moves is used; `amount`: the units used in excess."""
    RESIDUAL_SHORT = "residual_short"
    """The source keeps less than those who stay hold; `amount`: the missing units."""

    TOTAL_CONTRADICTS = "total_contradicts"
    """A given total is not the one that the moves lead to; `amount`: the latter."""
    TOTAL_MISSING = "total_missing"
    """Figures of a new inventory without a total."""
    FIGURES_INVALID = "figures_invalid"
    """Figures out of range, or more reserved than the total."""
    UNITS = "units"
    """`min_unit`, `max_unit` or `step_size` forbids a consumer's amount."""
    CAPACITY = "capacity"
    """More is used than fits, and more in excess than before; `amount`: the excess."""
    INVENTORY_MISSING = "inventory_missing"
    """A consumer gets units at a place without an inventory."""
    IN_USE = "in_use"
    """A consumer is on an inventory or provider that goes; `amount`: its units."""
    NOT_CONSERVED = "not_conserved"
    """A consumer gains or loses units; `amount`: after minus before and accepted drift."""

    CHANGED_SINCE = "changed_since"
    """What a reshape wrote is no longer so, so it cannot be undone."""
    LEASE_ENDED = "lease_ended"
    """An undo would create the consumer of a lease again that has ended since."""


class Violation(Struct, frozen=True, omit_defaults=True):
    """One reason, and where it is. `amount` is in units of the class; its meaning is the code's."""

    code: ViolationCode
    message: str
    provider: ProviderId | None = None
    resource_class: str | None = None
    consumer: ConsumerId | None = None
    amount: int | None = None
