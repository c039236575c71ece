"""The schemas of OpenStack Placement's database, by the head of its alembic history.

Source: `placement/db/sqlalchemy/alembic/versions` of openstack-placement 1.0 to 16.0.
"""

from collections.abc import Mapping

HEADS = {
    "b4ed3a175331": "1.0 (Stein)",
    "611cd6dffd7b": "2.0 (Train), migrated in part",
    "b5c396305c25": "2.0 (Train) to 5.0 (Wallaby)",
    "422ece571366": "6.0 (Xena) to 9.0 (2023.1)",
    "a082b8bb98d0": "10.0 (2023.2) to 16.0, and perhaps later",
}
"""Which releases have made each schema that can be read."""

BEFORE_TYPES = frozenset(["b4ed3a175331", "611cd6dffd7b", "b5c396305c25"])
"""Schemas without consumer types."""

_TIMES = ("created_at", "updated_at")

_TABLES: Mapping[str, tuple[str, ...]] = {
    "resource_classes": ("id", "name", *_TIMES),
    "traits": ("id", "name", *_TIMES),
    "consumer_types": ("id", "name"),
    "projects": ("id", "external_id"),
    "users": ("id", "external_id"),
    "placement_aggregates": ("id", "uuid"),
    "resource_providers": (
        *("id", "uuid", "name", "generation", "root_provider_id", "parent_provider_id"),
        *_TIMES,
    ),
    "resource_provider_traits": ("resource_provider_id", "trait_id"),
    "resource_provider_aggregates": ("resource_provider_id", "aggregate_id"),
    "inventories": (
        *("id", "resource_provider_id", "resource_class_id", "total", "reserved", "min_unit"),
        *("max_unit", "step_size", "allocation_ratio", *_TIMES),
    ),
    "consumers": ("id", "uuid", "project_id", "user_id", "generation", "consumer_type_id", *_TIMES),
    "allocations": (
        *("id", "resource_provider_id", "consumer_id", "resource_class_id", "used"),
        *_TIMES,
    ),
}

UNORDERED = frozenset(["resource_provider_traits", "resource_provider_aggregates"])
"""Tables without an id."""


def tables_of(head: str) -> dict[str, tuple[str, ...]]:
    """Return the columns that are read of each table of a schema."""
    if head not in BEFORE_TYPES:
        return dict(_TABLES)
    return {
        table: tuple(column for column in columns if column != "consumer_type_id")
        for table, columns in _TABLES.items()
        if table != "consumer_types"
    }
