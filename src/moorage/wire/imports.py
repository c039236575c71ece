"""The rows of the ledger as they are kept, for moving them in from another ledger, and out.

Amounts and generations are taken as they are: a ledger that is imported may be over capacity.
"""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from typing import Literal

from moorage.wire.dataclass import dataclass
from moorage.wire.defaults import MAX_UNIT


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportWanted:
    """Which ledger is imported: a description of it for people, without passwords.

    The same description resumes an import that was interrupted. `writer` is a name that the program
    has chosen for this run: until another run resumes the import, only rows with this name are
    written. With `resumes` nothing new is begun.
    """

    source: str
    writer: str | None = None
    resumes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportShown:
    """The import that is under way: what is imported, since when, and by whom.

    Until it is finished or aborted, nothing but the import changes the ledger, and the Placement
    API answers 503.
    """

    source: str
    since: datetime
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NameRow:
    """A custom resource class, or a custom trait."""

    name: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryRow:
    """What a provider has of one resource class."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = MAX_UNIT
    step_size: int = 1
    allocation_ratio: float = 1.0
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRow:
    """A provider with its inventories by resource class, its traits and its aggregates."""

    uuid: str
    name: str
    generation: int
    parent: str | None
    created_at: datetime
    updated_at: datetime
    inventories: dict[str, InventoryRow] = field(default_factory=dict)
    traits: list[str] = field(default_factory=list)
    aggregates: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerRow:
    """A consumer with its allocations: amounts by provider and resource class.

    `type` null: it was created before consumers had types.
    """

    uuid: str
    generation: int
    project: str
    user: str
    type: str | None
    allocations: dict[str, dict[str, int]]
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsGone:
    """Rows that are to be deleted: names, and UUIDs. Those that are not there are left out."""

    classes: list[str] = field(default_factory=list)
    traits: list[str] = field(default_factory=list)
    providers: list[str] = field(default_factory=list)
    consumers: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsWanted:
    """Rows to write: each replaces the one with its name or UUID as a whole.

    All or nothing. A parent, a provider of an allocation, and a custom name must be there, or be
    among these rows; the same rows again change nothing. Only the result of a request must be
    consistent: a provider is gone in the request in which its last consumer moves. Of what is
    written and gone in one request, the row stays. `writer` is that of the beginning.
    """

    writer: str | None = None

    classes: list[NameRow] = field(default_factory=list)
    traits: list[NameRow] = field(default_factory=list)
    providers: list[ProviderRow] = field(default_factory=list)
    consumers: list[ConsumerRow] = field(default_factory=list)
    gone: RowsGone = field(default_factory=RowsGone)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishAsked:
    """Who ends the import: the `writer` of its beginning."""

    writer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsAsked:
    """Which rows: those of one kind after a name or UUID."""

    kind: Literal["classes", "traits", "providers", "consumers"] = "providers"
    after: str = ""
    limit: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRows:
    """Rows of one kind by name or UUID; the lists of other kinds are empty.

    `next` is the `after` of the next page; null: this is the last one. `revision` is that at which
    they were read.
    """

    classes: list[NameRow] = field(default_factory=list)
    traits: list[NameRow] = field(default_factory=list)
    providers: list[ProviderRow] = field(default_factory=list)
    consumers: list[ConsumerRow] = field(default_factory=list)
    next: str | None
    revision: str
