"""A double of Kubernetes or of metal3's operator that lies is noticed by the tests of its rules."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.integrations.metal3 import test_bmo_double as bmo
from tests.integrations.metal3 import test_kubernetes_reads as reads
from tests.integrations.metal3 import test_kubernetes_writes as writes
from tests.support.bmo_double import hosts
from tests.support.kubernetes_client import Answered
from tests.support.kubernetes_double import applying, patches, schemas, selectors, status
from tests.support.kubernetes_double import reads as reading
from tests.support.kubernetes_double import writes as writing
from tests.support.kubernetes_double.access import Access

Plant = Callable[[pytest.MonkeyPatch], None]


def nothing(*_: Any, **__: Any) -> None:
    """Do nothing, in place of a rule."""


exact = patches._step


def careless(document: Any, operation: dict[str, Any]) -> Any:
    """Take a step of a JSON patch without testing anything."""
    return document if operation["op"] == "test" else exact(document, operation)


UNCHANGED = applying.Compared(set(), set())


LIES: dict[str, tuple[Callable[[], None], Plant]] = {
    "old versions are stored": (
        writes.test_conflicts,
        lambda patch: patch.setattr(writing.Writes, "_check_version", nothing),
    ),
    "both updates win": (
        writes.test_only_one_of_two_updates_wins,
        lambda patch: patch.setattr(writing.Writes, "_check_version", nothing),
    ),
    "the generation stays": (
        writes.test_versions_and_generations,
        lambda patch: patch.setattr(writing, "_counted", nothing),
    ),
    "an update changes the status": (
        writes.test_status_is_apart,
        lambda patch: patch.setattr(writing, "_with_fixed", lambda _target, _old, new: new),
    ),
    "a JSON patch does not test": (
        writes.test_json_patches,
        lambda patch: patch.setattr(patches, "_step", careless),
    ),
    "nobody manages a field": (
        writes.test_apply,
        lambda patch: patch.setattr(applying, "_compared", lambda *_: UNCHANGED),
    ),
    "everything is allowed": (
        writes.test_roles,
        lambda patch: patch.setattr(Access, "check", nothing),
    ),
    "forgotten history is another error": (
        reads.test_forgotten_history,
        lambda patch: patch.setattr(status, "expired", lambda *_: status.bad_request("no")),
    ),
    "a watch shows everything": (
        reads.test_watch_of_a_selection,
        lambda patch: patch.setattr(selectors, "_label_tests", lambda _text: []),
    ),
    "a bookmark is an ordinary event": (
        reads.test_a_watch_ends,
        lambda patch: patch.setattr(
            reading.Reads, "_bookmark", lambda *_: {"type": "MODIFIED", "object": {"metadata": {}}}
        ),
    ),
    "a schema allows everything": (
        writes.test_schemas,
        lambda patch: patch.setattr(schemas, "problems", lambda *_: []),
    ),
    "unknown fields are stored": (
        writes.test_schemas,
        lambda patch: patch.setattr(schemas, "pruned", lambda *_: []),
    ),
    "the future is now": (
        reads.test_a_watch_from_the_future,
        lambda patch: patch.setattr(reading.Reads, "check_watch", lambda *_: 0),
    ),
    "the operator ignores the pause": (
        bmo.test_paused_hosts_do_nothing,
        lambda patch: patch.setattr(hosts, "PAUSED", "another"),
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_lies_are_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the rule taken away, its test fails."""
    test, plant = LIES[name]
    plant(monkeypatch)
    with pytest.raises((AssertionError, Answered, pytest.fail.Exception)):
        test()
