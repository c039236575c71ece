"""Each kind of odd data is found, is kept where it can be, and never repaired silently."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.integrations.placement.oddities import KINDS, Fate, Oddities
from moorage.integrations.placement.reading import Reading
from moorage.integrations.placement.rows import decoded
from tests.integrations.placement.original_file import CHILD, CONSUMER, PROVIDER, made, read

UNKNOWN = "00000000-0000-0000-0000-000000000000"
OTHER = "00000000-0000-4000-8000-0000000000c2"

ALLOCATION = (
    "INSERT INTO allocations (id, resource_provider_id, consumer_id, resource_class_id, used,"
    " created_at) VALUES (9, {}, '{}', {}, {}, '2024-01-04 00:00:00');"
)
LOOSE = "CREATE TABLE loose AS SELECT * FROM {0}; DROP TABLE {0}; ALTER TABLE loose RENAME TO {0};"
"""Takes all constraints away, as a table has them that was repaired by hand."""

PLANTED: dict[str, list[str]] = {
    "over_capacity": ["UPDATE inventories SET total = 1 WHERE id = 1"],
    "reserved_over_total": ["UPDATE inventories SET reserved = 9 WHERE id = 1"],
    "unit_bounds_crossed": ["UPDATE inventories SET min_unit = 9 WHERE id = 1"],
    "consumer_incomplete": ["UPDATE consumers SET project_id = 2"],
    "consumer_typeless": ["UPDATE consumers SET consumer_type_id = NULL"],
    "uuid_respelled": [
        "UPDATE resource_providers SET uuid = '00000000000040008000000000000002' WHERE id = 2"
    ],
    "time_missing": ["UPDATE consumers SET created_at = NULL"],
    "name_unused": ["INSERT INTO traits (id, name) VALUES (9, 'HW_OF_TOMORROW')"],
    "consumer_missing": ["DELETE FROM consumers"],
    "root_missing": ["UPDATE resource_providers SET root_provider_id = NULL WHERE id = 2"],
    "root_wrong": ["UPDATE resource_providers SET root_provider_id = 2 WHERE id = 2"],
    "generation_missing": ["UPDATE resource_providers SET generation = NULL WHERE id = 1"],
    "allocation_twice": [ALLOCATION.format(1, CONSUMER, 0, 3)],
    "consumer_type_missing": ["UPDATE consumers SET consumer_type_id = 77"],
    "consumer_owner_missing": ["UPDATE consumers SET user_id = 77"],
    "consumer_empty": ["DELETE FROM allocations"],
    "provider_uuid_invalid": ["UPDATE resource_providers SET uuid = 'none' WHERE id = 2"],
    "provider_name_invalid": ["UPDATE resource_providers SET name = NULL WHERE id = 2"],
    "parent_missing": ["UPDATE resource_providers SET parent_provider_id = 77 WHERE id = 2"],
    "parent_cycle": ["UPDATE resource_providers SET parent_provider_id = 2 WHERE id = 2"],
    "inventory_without_provider": ["UPDATE inventories SET resource_provider_id = 77 WHERE id = 2"],
    "inventory_twice": [
        LOOSE.format("inventories"),
        "INSERT INTO inventories SELECT * FROM inventories WHERE id = 2",
    ],
    "inventory_invalid": ["UPDATE inventories SET step_size = 0 WHERE id = 2"],
    "class_unknown": ["UPDATE inventories SET resource_class_id = 77 WHERE id = 2"],
    "trait_unknown": ["UPDATE traits SET name = 'hw_lower' WHERE id = 2"],
    "trait_without_provider": [
        "UPDATE resource_provider_traits SET resource_provider_id = 77 WHERE trait_id = 2"
    ],
    "aggregate_invalid": ["UPDATE placement_aggregates SET uuid = NULL"],
    "aggregate_without_provider": [
        "UPDATE resource_provider_aggregates SET resource_provider_id = 77"
    ],
    "consumer_uuid_invalid": [
        "UPDATE consumers SET uuid = 'x'",
        "UPDATE allocations SET consumer_id = 'x'",
    ],
    "allocation_without_provider": [ALLOCATION.format(77, CONSUMER, 0, 1)],
    "allocation_without_inventory": [ALLOCATION.format(1, CONSUMER, 1, 1)],
    "allocation_invalid": [ALLOCATION.format(2, CONSUMER, 7, 0)],
}
"""How a database gets each kind of odd data."""


def row(reading: Reading, kind: Any, key: str) -> Any:
    """Return one row that was read."""
    return decoded(kind, reading.rows.of(kind)[key])


def test_every_kind_can_be_planted() -> None:
    """But those that only the API has."""
    assert set(PLANTED) == {code for code in KINDS if not code.startswith("api_")}


def test_a_sound_database_has_nothing_odd(tmp_path: Path) -> None:
    """The control: every row is kept, exactly."""
    reading = read(made(tmp_path))
    assert reading.oddities.found == {}
    assert reading.rows.counts() == {"classes": 1, "traits": 1, "providers": 2, "consumers": 1}
    provider = row(reading, "providers", PROVIDER)
    assert (provider.name, provider.generation, provider.parent) == ("größe", 3, None)
    assert provider.inventories["VCPU"].allocation_ratio == 1.1
    assert provider.updated_at.isoformat() == "2024-01-02T00:00:00+00:00"
    assert row(reading, "providers", CHILD).parent == PROVIDER
    consumer = row(reading, "consumers", CONSUMER)
    assert (consumer.generation, consumer.project, consumer.type) == (2, "p", "INSTANCE")
    assert consumer.allocations == {PROVIDER: {"VCPU": 2}}
    assert consumer.updated_at.isoformat() == "2024-01-03T00:00:00+00:00"


@pytest.mark.parametrize("code", PLANTED)
def test_it_is_found_and_refused_or_kept(tmp_path: Path, code: str) -> None:
    """Without a choice of the operator nothing is left out and nothing is completed."""
    found = read(made(tmp_path, *PLANTED[code])).oddities.found
    assert code in found
    assert found[code].count >= 1
    assert len(found[code].named) == found[code].count
    chosen = KINDS[code].leave_out or KINDS[code].complete
    assert found[code].fate is (Fate.REFUSED if chosen else Fate.KEPT)


@pytest.mark.parametrize("code", [code for code in PLANTED if KINDS[code].leave_out])
def test_a_choice_settles_it(tmp_path: Path, code: str) -> None:
    """What hangs on it has codes of its own, which are named at the next try."""
    leave_out = {code}
    for _ in range(4):
        oddities = Oddities(leave_out)
        reading = read(made(tmp_path, *PLANTED[code]), oddities)
        more = {other for other, _ in oddities.refused()}
        if not more:
            break
        assert not more & leave_out
        leave_out |= more
    assert oddities.found[code].fate is Fate.LEFT_OUT
    for kind, key in reading.rows.digests().differing(reading.rows):
        raise AssertionError(f"rows differ from themselves: {kind} {key}")


COMPLETED: dict[str, Callable[[Reading], Any]] = {
    "consumer_missing": lambda reading: row(reading, "consumers", CONSUMER).project == UNKNOWN,
    "root_missing": lambda reading: row(reading, "providers", CHILD).parent == PROVIDER,
    "root_wrong": lambda reading: row(reading, "providers", CHILD).parent == PROVIDER,
    "generation_missing": lambda reading: row(reading, "providers", PROVIDER).generation == 0,
    "allocation_twice": lambda reading: (
        row(reading, "consumers", CONSUMER).allocations == {PROVIDER: {"VCPU": 5}}
    ),
    "consumer_type_missing": lambda reading: row(reading, "consumers", CONSUMER).type is None,
    "consumer_owner_missing": lambda reading: row(reading, "consumers", CONSUMER).user == UNKNOWN,
}


def test_every_completion_has_an_expectation() -> None:
    """So that a new one cannot be forgotten."""
    assert set(COMPLETED) == {code for code, kind in KINDS.items() if kind.complete}


@pytest.mark.parametrize("code", COMPLETED)
def test_a_completion_does_what_it_says(tmp_path: Path, code: str) -> None:
    """The operator has asked for it, and it is listed all the same."""
    reading = read(made(tmp_path, *PLANTED[code]), Oddities(complete=[code]))
    assert reading.oddities.found[code].fate is Fate.COMPLETED
    assert not list(reading.oddities.refused())
    assert COMPLETED[code](reading)


def test_all_below_a_provider_go_with_it(tmp_path: Path) -> None:
    """What cannot be kept takes its child along, and the allocations on both."""
    file = made(
        tmp_path,
        "UPDATE resource_providers SET name = '' WHERE id = 1",
        ALLOCATION.format(2, OTHER, 7, 1),
    )
    reading = read(file)
    named = {code for code, _ in reading.oddities.refused()}
    assert named >= {"provider_name_invalid", "parent_missing", "allocation_without_provider"}
    assert reading.rows.providers == {}
    assert reading.rows.consumers == {}


def test_a_cycle_of_two_is_left_out_as_a_whole(tmp_path: Path) -> None:
    """Neither of them is the root of anything."""
    file = made(tmp_path, "UPDATE resource_providers SET parent_provider_id = 3 - id")
    found = read(file).oddities.found
    assert found["parent_cycle"].count == 2


def test_rows_of_one_second_stay_in_order(tmp_path: Path) -> None:
    """Lists are in the order of creation, also where the original keeps whole seconds."""
    reading = read(made(tmp_path))
    first, second = (row(reading, "providers", uuid).created_at for uuid in (PROVIDER, CHILD))
    assert first < second
    assert (second - first).total_seconds() < 1


def test_a_provider_with_the_id_of_another_one_is_not_lost_silently(tmp_path: Path) -> None:
    """A table without constraints may have it; both are named by the same foreign keys."""
    loose = LOOSE.format("resource_providers")
    file = made(tmp_path, loose, "UPDATE resource_providers SET id = 1")
    assert read(file).oddities.found["provider_uuid_invalid"].count == 1


@pytest.mark.parametrize(
    ("name", "there"),
    [("X'6772C3BCC39F65'", "grüße"), ("X'6772F6DF65'", None), ("CAST(X'6100' AS TEXT)", None)],
)
def test_bytes_are_text_or_odd(tmp_path: Path, name: str, there: str | None) -> None:
    """Nothing takes the place of what is no UTF-8: two names could become the same."""
    file = made(tmp_path, f"UPDATE resource_providers SET name = {name} WHERE id = 2")
    reading = read(file)
    if there is None:
        assert reading.oddities.found["provider_name_invalid"].count == 1
    else:
        assert row(reading, "providers", CHILD).name == there


@pytest.mark.parametrize(
    "time", ["9999-12-31T23:59:59-10:00", "0001-01-01T00:00:00+14:00", "0000-00-00 00:00:00"]
)
def test_a_time_that_is_none_is_missing(tmp_path: Path, time: str) -> None:
    """Also one that only a zone puts out of all calendars."""
    file = made(tmp_path, f"UPDATE inventories SET created_at = '{time}', updated_at = '{time}'")
    assert read(file).oddities.found["time_missing"].count == 2


@pytest.mark.parametrize("key", ["NULL", "'x'", "X'FF'", "9e999"])
def test_an_id_may_be_anything(tmp_path: Path, key: str) -> None:
    """A loose table: the id only orders rows of one second."""
    file = made(tmp_path, LOOSE.format("inventories"), f"UPDATE inventories SET id = {key}")
    reading = read(file)
    assert reading.oddities.found == {}
    assert row(reading, "providers", PROVIDER).inventories["VCPU"].total == 8


@pytest.mark.parametrize("text", ["+" + "0" * 31, "\u0660" * 32, "0" * 15 + "_" + "0" * 16])
def test_what_only_python_takes_for_a_uuid_is_none(tmp_path: Path, text: str) -> None:
    """The original does not find it by any UUID."""
    file = made(tmp_path, f"UPDATE resource_providers SET uuid = '{text}' WHERE id = 2")
    assert read(file).oddities.found["provider_uuid_invalid"].count == 1


def test_a_long_value_is_named_in_part(tmp_path: Path) -> None:
    """The report and the memory do not grow with what a column has."""
    file = made(
        tmp_path,
        f"UPDATE resource_providers SET name = '{'x' * 1_000_000}' WHERE id = 2",
    )
    (named,) = read(file).oddities.found["provider_name_invalid"].named
    assert len(named) == 1_000


@pytest.mark.parametrize(
    ("leave_out", "complete", "said"),
    [
        (["nothing"], [], "there is no such code"),
        (["over_capacity"], [], "it is kept in any case"),
        ([], ["consumer_empty"], "only --leave-out can be chosen"),
        (["allocation_twice"], ["allocation_twice"], "either"),
    ],
)
def test_a_choice_that_there_is_not_is_refused(
    leave_out: list[str], complete: list[str], said: str
) -> None:
    """A typo must not look like a decision."""
    with pytest.raises(ValueError, match=said):
        Oddities(leave_out, complete)
