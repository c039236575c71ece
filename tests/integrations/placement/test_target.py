"""Which databases an export takes for empty."""

import sqlite3
from pathlib import Path

import pytest

from moorage.integrations.placement.addresses import address_of
from moorage.integrations.placement.target import opened
from tests.integrations.placement.original_file import NEWEST, SCHEMAS


@pytest.mark.parametrize(
    ("table", "name", "occupied"),
    [
        ("traits", "HW_CPU_X86_AVX2", []),
        ("traits", "HW_OF_TOMORROW", []),
        ("resource_classes", "UNIT_OF_TOMORROW", []),
        ("traits", "CUSTOM_GOLD", ["traits"]),
        ("resource_classes", "CUSTOM_GOLD", ["resource_classes"]),
        ("projects", "p", ["projects"]),
    ],
)
def test_standard_names_of_any_release_leave_it_empty(
    tmp_path: Path, table: str, name: str, occupied: list[str]
) -> None:
    """`placement-manage db sync` writes those of its own release; custom ones are somebody's."""
    file = tmp_path / "target.sqlite"
    column = "external_id" if table == "projects" else "name"
    connection = sqlite3.connect(file)
    connection.executescript((SCHEMAS / f"{NEWEST}.sql").read_text())
    with connection:
        connection.execute(f"INSERT INTO {table} (id, {column}) VALUES (1, '{name}')")
    connection.close()
    with opened(address_of(f"sqlite:///{file}")) as target:
        assert list(target.occupied()) == occupied
