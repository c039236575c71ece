"""The double of Ironic answers as a real one did; a double that does not is noticed."""

import asyncio
import json
from collections.abc import Callable
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.baremetal.contract import SETUP, compare
from tests.baremetal.contract_steps import STEPS
from tests.support.ironic_double import api, documents, errors, fleet, machine, server, verbs
from tests.support.ironic_double.server import IronicDouble


class DoubledWorld:
    """A double, controlled by HTTP as from another process."""

    def __init__(self, url: str) -> None:
        self.url = url

    def settle(self, _node: str) -> None:
        """Let more time pass than any work takes."""
        self._control("advance", {"seconds": 10_000.0})

    def restart(self) -> None:
        """Let everything fail that it works on."""
        self._control("restart", {})

    def moves(self, node: str) -> list[str]:
        """Read its log."""
        found = self._control("history", None)["changes"]
        return [f"{one['state']} (target {one['goal']})" for one in found if one["node"] == node]

    def _control(self, name: str, body: Any) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urlopen(Request(f"{self.url}/_double/{name}", data)) as answer:
            return json.loads(answer.read())


def differences() -> list[str]:
    """Send the steps of the contract to a new double."""

    async def run() -> list[str]:
        async with IronicDouble(limit=SETUP.max_concurrent_deploy) as double:
            return await asyncio.to_thread(compare, DoubledWorld(double.url))

    return asyncio.run(run())


def test_the_double_keeps_the_contract() -> None:
    """It answers all steps as a real Ironic 39 did."""
    assert len(STEPS) > 300
    assert differences() == []


Plant = Callable[[pytest.MonkeyPatch], None]

LIES: dict[str, Plant] = {
    "provide without cleaning": lambda patch: patch.setitem(
        machine.TRANSITIONS["provide"], "manageable", "available"
    ),
    "delete without cleaning": lambda patch: patch.setitem(
        machine.WORKING, "deleting", ("available", "error")
    ),
    "another state after a crash": lambda patch: patch.setitem(
        machine.WORKING, "deploying", ("active", "available")
    ),
    "a verb from another state": lambda patch: patch.setitem(
        machine.TRANSITIONS["deploy"], "active", "deploying"
    ),
    "another goal": lambda patch: patch.setitem(machine.GOALS, "cleaning", "active"),
    "other words": lambda patch: patch.setattr(
        errors, "not_found", lambda _: errors.fault(404, "There is no such node.")
    ),
    "another status": lambda patch: patch.setattr(
        errors, "locked", lambda node, _: errors.fault(423, f"Node {node} is locked.")
    ),
    "another version": lambda patch: patch.setattr(documents, "NEWEST", 114),
    "a field too early": lambda patch: patch.setitem(documents.SINCE, "shard", 1),
    "names too early": lambda patch: patch.setattr(api, "NAMES_SINCE", 1),
    "verbs too early": lambda patch: patch.setattr(verbs, "SINCE", {}),
    "times among fields": lambda patch: patch.setattr(documents, "WHOLE_ONLY", ()),
    "another host": lambda patch: patch.setattr(fleet, "HOST", "other"),
    "a missing header": lambda patch: patch.setattr(server, "REQUEST_ID", ("X-Other",)),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_noticed(lie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A double that differs in one thing does not keep the contract."""
    LIES[lie](monkeypatch)
    assert differences()
