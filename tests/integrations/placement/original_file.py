"""An SQLite file with the schema of the original, filled with rows by hand."""

import sqlite3
from pathlib import Path

from moorage.integrations.placement.addresses import address_of
from moorage.integrations.placement.database import Database
from moorage.integrations.placement.oddities import Oddities
from moorage.integrations.placement.reading import DatabaseSource, Reading, silent

SCHEMAS = Path(__file__).with_name("schemas")
NEWEST = "placement-16"

BASIS = """
INSERT INTO resource_classes (id, name, created_at) VALUES
    (0, 'VCPU', '2024-01-01 00:00:00'), (1, 'MEMORY_MB', '2024-01-01 00:00:00'),
    (7, 'CUSTOM_GOLD', '2024-01-01 00:00:01');
INSERT INTO traits (id, name, created_at) VALUES
    (1, 'HW_CPU_X86_AVX2', '2024-01-01 00:00:00'), (2, 'CUSTOM_FAST', '2024-01-01 00:00:00');
INSERT INTO resource_providers
    (id, uuid, name, generation, root_provider_id, parent_provider_id, created_at, updated_at)
VALUES
    (1, '00000000-0000-4000-8000-000000000001', 'größe', 3, 1, NULL, '2024-01-01 00:00:00',
     '2024-01-02 00:00:00'),
    (2, '00000000-0000-4000-8000-000000000002', '计算', 1, 1, 1, '2024-01-01 00:00:00', NULL);
INSERT INTO inventories
    (id, resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
     allocation_ratio, created_at)
VALUES
    (1, 1, 0, 8, 0, 1, 8, 1, 1.1, '2024-01-01 00:00:00'),
    (2, 2, 7, 4, 0, 1, 4, 1, 1.0, '2024-01-01 00:00:00');
INSERT INTO placement_aggregates (id, uuid) VALUES (1, '00000000-0000-4000-8000-00000000000a');
INSERT INTO resource_provider_traits (resource_provider_id, trait_id) VALUES (1, 1), (2, 2);
INSERT INTO resource_provider_aggregates (resource_provider_id, aggregate_id) VALUES (1, 1);
INSERT INTO projects (id, external_id) VALUES (1, 'p'), (2, '00000000-0000-0000-0000-000000000000');
INSERT INTO users (id, external_id) VALUES (1, 'u');
INSERT INTO consumers (id, uuid, project_id, user_id, generation, created_at) VALUES
    (1, '00000000-0000-4000-8000-0000000000c1', 1, 1, 2, '2024-01-01 00:00:00');
INSERT INTO allocations
    (id, resource_provider_id, consumer_id, resource_class_id, used, created_at)
VALUES (1, 1, '00000000-0000-4000-8000-0000000000c1', 0, 2, '2024-01-03 00:00:00');
"""
TYPES = """
INSERT INTO consumer_types (id, name) VALUES (1, 'INSTANCE');
UPDATE consumers SET consumer_type_id = 1;
"""

PROVIDER = "00000000-0000-4000-8000-000000000001"
CHILD = "00000000-0000-4000-8000-000000000002"
CONSUMER = "00000000-0000-4000-8000-0000000000c1"


def made(folder: Path, *changes: str, schema: str = NEWEST) -> Path:
    """Make a file with a provider, its child and a consumer, then execute `changes`."""
    file = folder / f"{schema}.sqlite"
    file.unlink(missing_ok=True)
    with sqlite3.connect(file) as connection:
        connection.executescript((SCHEMAS / f"{schema}.sql").read_text() + BASIS)
        if schema != "placement-5":
            connection.executescript(TYPES)
        for change in changes:
            connection.executescript(change)
    connection.close()
    return file


def source_of(file: Path) -> DatabaseSource:
    """Return the file as an original to import."""
    return DatabaseSource(Database(address_of(f"sqlite:///{file}")))


def read(file: Path, oddities: Oddities | None = None) -> Reading:
    """Read all of a file."""
    return source_of(file).read(oddities or Oddities(), silent)
