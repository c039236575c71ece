"""The types of request bodies. msgspec decides whether a body is valid.

Ranges of microversions that differ have separate types, named after the first version.
Source: Placement API reference, request parameters of each route.
"""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.vocabulary import CUSTOM_PATTERN
from moorage.core.limits import (
    ALLOCATION_RATIO_MAX,
    IDENTIFIER_LENGTH_MAX,
    MAX_INT,
    NAME_LENGTH_MAX,
    UUID_LENGTH_MAX,
)
from moorage.core.texts import NAME_PATTERN, exact
from moorage.faces.query_strings.uuids import UUID_PATTERN

Uuid = Annotated[str, Meta(pattern=UUID_PATTERN, max_length=UUID_LENGTH_MAX)]
UuidKey = Annotated[str, Meta(pattern=r"^[0-9a-fA-F-]{36}\Z")]
ClassName = Annotated[str, Meta(pattern=exact(NAME_PATTERN))]
CustomName = Annotated[str, Meta(pattern=exact(CUSTOM_PATTERN), max_length=IDENTIFIER_LENGTH_MAX)]
Name255 = Annotated[str, Meta(min_length=1, max_length=IDENTIFIER_LENGTH_MAX)]
ConsumerType = Annotated[
    str, Meta(pattern=exact(NAME_PATTERN), min_length=1, max_length=IDENTIFIER_LENGTH_MAX)
]
ProviderName = Annotated[str, Meta(max_length=NAME_LENGTH_MAX)]
Positive = Annotated[int, Meta(ge=1, le=MAX_INT)]


class Body(Struct, kw_only=True, forbid_unknown_fields=True):
    """A JSON object without unknown keys."""


class ProviderPost(Body):
    """POST /resource_providers before 1.14."""

    name: ProviderName
    uuid: Uuid | UnsetType = UNSET


class ProviderPost14(ProviderPost):
    """POST /resource_providers."""

    parent_provider_uuid: Uuid | UnsetType | None = UNSET


class ProviderPut(Body):
    """PUT /resource_providers/{uuid} before 1.14."""

    name: ProviderName


class ProviderPut14(ProviderPut):
    """PUT /resource_providers/{uuid}."""

    parent_provider_uuid: Uuid | UnsetType | None = UNSET


class InventoryItem(Body):
    """One inventory in PUT .../inventories and in the reshaper. Its generation is ignored."""

    total: Positive
    reserved: Annotated[int, Meta(ge=0, le=MAX_INT)] = 0
    min_unit: Positive = 1
    max_unit: Positive = MAX_INT
    step_size: Positive = 1
    allocation_ratio: Annotated[float, Meta(ge=-ALLOCATION_RATIO_MAX, le=ALLOCATION_RATIO_MAX)] = (
        1.0
    )
    resource_provider_generation: int | UnsetType = UNSET

    def spec(self) -> InventorySpec:
        """Return it as the ledger's type."""
        return InventorySpec(
            self.total,
            self.reserved,
            self.min_unit,
            self.max_unit,
            self.step_size,
            self.allocation_ratio,
        )


class InventoryPost(InventoryItem, kw_only=True):
    """POST .../inventories."""

    resource_class: ClassName


class InventoryPut(InventoryItem, kw_only=True):
    """PUT .../inventories/{resource_class}."""

    resource_provider_generation: int


class InventoriesPut(Body):
    """PUT .../inventories, and one provider of the reshaper."""

    resource_provider_generation: int
    inventories: dict[str, InventoryItem]


AggregatesPut = list[Uuid]
"""PUT .../aggregates before 1.19."""


class AggregatesPut19(Body):
    """PUT .../aggregates."""

    aggregates: list[Uuid]
    resource_provider_generation: int


class TraitsPut(Body):
    """PUT .../traits."""

    traits: list[Name255]
    resource_provider_generation: int


class ClassNamed(Body):
    """POST /resource_classes; PUT /resource_classes/{name} before 1.7."""

    name: CustomName


Resources = Annotated[dict[ClassName, Annotated[int, Meta(ge=1)]], Meta(min_length=1)]


class ListedProvider(Body):
    """The provider of an entry in a list of allocations."""

    uuid: Uuid


class ListedAllocation(Body):
    """The resources allocated from one provider, before 1.12."""

    resource_provider: ListedProvider
    resources: Resources


class AllocationsPut(Body):
    """PUT /allocations/{consumer} before 1.8."""

    allocations: Annotated[list[ListedAllocation], Meta(min_length=1)]


class AllocationsPut8(AllocationsPut):
    """PUT /allocations/{consumer} from 1.8 to 1.11."""

    project_id: Name255
    user_id: Name255


class Allocation(Body):
    """The resources allocated from one provider. Its generation is ignored."""

    resources: Resources
    generation: int | UnsetType = UNSET


class AllocationsPut12(Body):
    """PUT /allocations/{consumer} from 1.12 to 1.27."""

    allocations: Annotated[dict[UuidKey, Allocation], Meta(min_length=1)]
    project_id: Name255
    user_id: Name255


class Allocations13(Body):
    """One consumer of POST /allocations before 1.28."""

    allocations: dict[UuidKey, Allocation]
    project_id: Name255
    user_id: Name255


class Allocations28(Allocations13):
    """One consumer before 1.34; empty allocations remove all of its allocations."""

    consumer_generation: int | None


class Allocations34(Allocations28):
    """One consumer before 1.38. Its mappings are ignored."""

    mappings: (
        Annotated[dict[str, Annotated[list[Uuid], Meta(min_length=1)]], Meta(min_length=1)]
        | UnsetType
    ) = UNSET


class Allocations38(Allocations34, kw_only=True):
    """One consumer."""

    consumer_type: ConsumerType


Consumers13 = Annotated[dict[UuidKey, Allocations13], Meta(min_length=1)]
Consumers28 = Annotated[dict[UuidKey, Allocations28], Meta(min_length=1)]
Consumers34 = Annotated[dict[UuidKey, Allocations34], Meta(min_length=1)]
Consumers38 = Annotated[dict[UuidKey, Allocations38], Meta(min_length=1)]

_Reshaped = Annotated[dict[UuidKey, InventoriesPut], Meta(min_length=1)]


class Reshape30(Body):
    """POST /reshaper before 1.34."""

    inventories: _Reshaped
    allocations: dict[UuidKey, Allocations28]


class Reshape34(Body):
    """POST /reshaper before 1.38."""

    inventories: _Reshaped
    allocations: dict[UuidKey, Allocations34]


class Reshape38(Body):
    """POST /reshaper."""

    inventories: _Reshaped
    allocations: dict[UuidKey, Allocations38]
