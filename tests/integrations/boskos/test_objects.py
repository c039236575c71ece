"""Objects of Kubernetes become resources and back; odd ones are named, never an exception."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from moorage.integrations.boskos.files import BYTES_MAX, FileError, objects_in
from moorage.integrations.boskos.objects import NEVER, object_of, resources_in
from moorage.wire.pools.boskos import BoskosResource

texts = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1, max_size=8)
seconds = st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1)).map(
    lambda time: time.replace(microsecond=0, tzinfo=UTC)
)
resources = st.builds(
    BoskosResource,
    name=texts,
    state=texts,
    owner=st.one_of(st.just(""), texts),
    user_data=st.dictionaries(texts, texts, max_size=2),
    updated_at=seconds,
    expires_at=st.one_of(st.none(), seconds),
)


@given(st.dictionaries(texts, st.lists(resources, min_size=1, max_size=3), max_size=3))
def test_there_and_back(found: dict[str, list[BoskosResource]]) -> None:
    """As JSON and as YAML, in one list or in many documents."""
    items = [object_of(kind, "ns", one) for kind, those in found.items() for one in those]
    for text in (
        json.dumps({"apiVersion": "v1", "kind": "List", "items": items}),
        yaml.safe_dump_all(items, allow_unicode=True),
    ):
        if items:
            read = resources_in(objects_in(text.encode()))
            assert read.problems == []
            assert read.resources == found


ODD = [None, 1, "", "x", [], ["x"], {}, {"x": "y"}, "2026-13-01T00:00:00Z", {"x": 1}]
PATHS = [
    ("apiVersion",),
    ("kind",),
    ("metadata",),
    ("metadata", "name"),
    ("spec",),
    ("spec", "type"),
    ("status",),
    *(("status", name) for name in ("state", "owner", "lastUpdate", "userData", "expirationDate")),
]
PLAIN = BoskosResource(name="a", state="free", updated_at=NEVER)


def with_value(path: tuple[str, ...], value: Any) -> Any:
    """Return an object with another value in one place."""
    made = object_of("t", None, PLAIN)
    inside = made
    for name in path[:-1]:
        inside = inside[name]
    inside[path[-1]] = value
    return made


@pytest.mark.parametrize("path", PATHS, ids=".".join)
def test_odd_objects(path: tuple[str, ...]) -> None:
    """Each is a resource or a problem that names it; the next one is read."""
    for odd in ODD:
        found = resources_in([with_value(path, odd), odd, object_of("t", None, PLAIN)])
        assert PLAIN in found.resources["t"]
        assert len(found.resources["t"]) + len(found.problems) >= 2


def test_times() -> None:
    """Boskos' zero time, no time, and one with another zone."""
    for text, time in {
        "0001-01-01T00:00:00Z": NEVER,
        "null": NEVER,
        "2026-01-02T04:04:05+01:00": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    }.items():
        found = resources_in([with_value(("status", "lastUpdate"), text)])
        assert found.resources["t"][0].updated_at == time


@pytest.mark.parametrize(
    "text", [b"", b"---\n", b"{", b"\xff\xfe\x00", b"a: [", b"x" * (BYTES_MAX + 1)]
)
def test_files_without_objects(text: bytes) -> None:
    """The message says why."""
    with pytest.raises(FileError) as error:
        objects_in(text)
    assert len(str(error.value)) < 300


def test_life_cycles_and_strangers() -> None:
    """Dynamic types are known, others are named."""
    of_a_type = {"apiVersion": "boskos.k8s.io/v1", "kind": "DRLCObject", "metadata": {"name": "d"}}
    stranger = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    found = resources_in([of_a_type, stranger, of_a_type | {"metadata": {}}])
    assert found.dynamic == {"d"}
    assert found.problems == [
        "Secret s: not of the group boskos.k8s.io",
        "DRLCObject: it has no name",
    ]
