"""`make reporters`: reporters of a real Ironic, beside nova's own code and alone.

What a node is in the ledger is compared with nova's driver, for all combinations of what matters. A
node that Ironic has cleaned is offered within seconds. Then nova's report client and a reporter
write for the same nodes: they agree, and nova heals each conflict by its own retry.
"""

import argparse
import itertools
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

from moorage.client.ledger import Ledger
from moorage.client.transport import Transport
from moorage.integrations.ironic.report.mapping import FIELDS, reported
from tests.e2e.support.server import Server, serve
from tests.reporters.nova_process import Nova
from tests.support.ironic import Ironic, Setup
from tests.support.ironic_double.machine import STATES
from tests.support.suites import print_line

CLASS = "CUSTOM_BAREMETAL"
SETUP = Setup(nodes=5, delays={"deploy": "1"}, cleaning=True)
CYCLES = 10
CANDIDATE_SECONDS = 5.0
PATIENCE_SECONDS = 60.0
PAUSE_SECONDS = 0.1
READY = re.compile(r"moorage: reporting \d+ nodes as (?P<url>\S+)")


class Stack:
    """An Ironic and a Moorage server."""

    def __init__(self, ironic: Ironic, url: str, secret: str) -> None:
        self.ironic = ironic
        self.url = url
        self.secret = secret
        self.admin = Transport(url, secret)

    def nodes(self) -> list[dict[str, Any]]:
        """Return all nodes, as Ironic's API describes them."""
        found: list[dict[str, Any]] = self.asked("GET", f"/v1/nodes?fields={','.join(FIELDS)}")[
            "nodes"
        ]
        return found

    def asked(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request to Ironic that must succeed."""
        status, answer = self.ironic.send(method, path, body)
        assert status < 400, (method, path, status, answer)
        return answer

    def reserved(self) -> dict[str, int | None]:
        """Return what the ledger says of each node."""
        held = {one.uuid: one.inventories for one in Ledger(self.admin).providers()}
        return {uuid: held[uuid][CLASS].reserved if CLASS in held[uuid] else None for uuid in held}

    def until(self, what: str, condition: Callable[[], bool]) -> float:
        """Wait; return how long it took. Raises AssertionError."""
        began = time.monotonic()
        while not condition():
            assert time.monotonic() - began < PATIENCE_SECONDS, f"{what}: not within a minute"
            # Ironic has no event to wait for: it is asked again, as its clients do.
            self.ironic.pause(PAUSE_SECONDS)
        return time.monotonic() - began

    @contextmanager
    def reporter(self, *options: str) -> Iterator[Server]:
        """Yield a reporter that has reported all nodes."""
        words = ["--ironic", self.ironic.url, "--url", self.url, "--group", "ironic", *options]
        command = [sys.executable, "-m", "moorage", "ironic", "report", *words]
        environment = {**os.environ, "MOORAGE_TOKEN": self.secret}
        with Server(command, environment, ready=READY) as server:
            yield server


def generated() -> list[dict[str, Any]]:
    """Return nodes with all combinations of what matters to the mapping."""
    instance = str(UUID(int=7))
    classes = ("baremetal", "baremetal.gold", "a--b  c", "größe", "", None)
    combinations = itertools.product(
        [*sorted(STATES), None],
        ("power on", "power off", "rebooting", "error", None),
        (False, True),
        (None, instance),
    )
    extra = [("available", "power off", False, None)] * len(classes)
    found = []
    for number, combination in enumerate([*combinations, *extra]):
        state, power, maintenance, consumer = combination
        node = {
            "uuid": str(UUID(int=1_000 + number)),
            "resource_class": classes[number % len(classes)],
            "provision_state": state,
            "power_state": power,
            "maintenance": maintenance,
            "instance_uuid": consumer,
            "traits": ["CUSTOM_B", "CUSTOM_A"][: number % 3],
        }
        found.append(node)
    return found


def check_mapping(nova: Nova) -> None:
    """Compare what is reported with what nova's driver says."""
    nodes = generated()
    by_nova = nova.ask("map", nodes)
    for node in nodes:
        report, expected = reported(node), by_nova[node["uuid"]]
        if report is None or expected is None:
            assert (report, expected) == (None, None), node
            continue
        assert report.inventories is not None
        found = {
            "inventories": {
                name: {field: getattr(one, field) for field in expected["inventories"][name]}
                for name, one in report.inventories.items()
            },
            "traits": report.traits,
        }
        assert found == expected, (node, found, expected)
    skipped = sum(one is None for one in by_nova.values())
    print_line(f"e2e: reporters: {len(nodes)} nodes are as nova's driver says, {skipped} skipped")


def check_cleaned(stack: Stack) -> None:
    """Deploy and clean a node; it is offered again within seconds. Its traits follow, too."""
    uuid = stack.nodes()[0]["uuid"]
    node = f"/v1/nodes/{uuid}"

    def becomes(target: str, end: str) -> float:
        """Ask for a state, wait for it, and return how long the ledger then takes."""

        def is_there() -> bool:
            shown = stack.asked("GET", f"{node}?fields=provision_state")
            return bool(shown["provision_state"] == end)

        stack.asked("PUT", f"{node}/states/provision", {"target": target})
        stack.until(target, is_there)
        return stack.until("the ledger", lambda: stack.reserved()[uuid] == int(end == "active"))

    def has_trait() -> bool:
        held = {one.uuid: one.traits for one in Ledger(stack.admin).providers()}
        return held[uuid] == ["CUSTOM_RACK_7"]

    with stack.reporter("--interval", "2"):
        assert stack.reserved()[uuid] == 0
        becomes("active", "active")
        took = becomes("deleted", "available")
        print_line(f"e2e: reporters: a cleaned node is offered {took:.1f} s after Ironic says so")
        assert took < CANDIDATE_SECONDS
        stack.asked("PUT", f"{node}/traits", {"traits": ["CUSTOM_RACK_7"]})
        assert stack.until("traits", has_trait) < CANDIDATE_SECONDS


def check_beside(stack: Stack, nova: Nova) -> None:
    """Let nova and a reporter write for the same nodes."""
    first = nova.ask("cycle", stack.nodes())
    assert not first["failed"], first
    cursor = Ledger(stack.admin).providers_page().as_of
    uuids = [node["uuid"] for node in stack.nodes()]
    expected: dict[str, list[int]] = {}
    conflicts = 0
    with stack.reporter("--mode", "beside_nova", "--interval", "0.5"):
        for number in range(CYCLES):
            uuid, on = uuids[number // 2 % len(uuids)], number % 2 == 0
            _maintain(stack, uuid, on=on)
            expected.setdefault(uuid, []).append(int(on))
            done = nova.ask("cycle", stack.nodes())
            assert not done["failed"] and done["conflicts"] <= 1, done
            conflicts += done["conflicts"]
            idle = nova.ask("cycle", stack.nodes())
            assert (idle["conflicts"], idle["writes"]) == (0, 0), idle
    page = stack.admin.request("GET", f"/v1/watch?after={cursor}&wait=0&limit=1000&kinds=inventory")
    written: dict[str, list[int]] = {}
    for change in page["changes"]:
        uuid = change["key"].partition("/")[0]
        written.setdefault(uuid, []).append(change["value"]["reserved"])
    assert written == expected, (written, expected)
    print_line(
        f"e2e: reporters: nova met {conflicts} conflicts in {CYCLES} cycles with a change each, "
        "healed each itself, and none without a change"
    )


def _maintain(stack: Stack, uuid: str, *, on: bool) -> None:
    """Begin or end the maintenance of a node; return when the reporter has written it."""
    stack.asked("PUT" if on else "DELETE", f"/v1/nodes/{uuid}/maintenance")
    stack.until("the ledger", lambda: stack.reserved()[uuid] == int(on))


@contextmanager
def moorage(folder: Path, name: str, ironic: Ironic) -> Iterator[Stack]:
    """Yield a Moorage with an empty ledger."""
    database = folder / f"{name}.sqlite"
    with serve(database, "--no-access-log") as server:
        yield Stack(ironic, server.url, Path(f"{database}.token").read_text().strip())


def main() -> int:
    """Run all steps in a temporary folder, and say how long they took."""
    parser = argparse.ArgumentParser(prog="python -m tests.reporters", description=__doc__)
    parser.add_argument("--nova", type=Path, default=Path(".venv-nova/bin/python"))
    asked, began = parser.parse_args(), time.monotonic()
    python = asked.nova.absolute()
    with (
        TemporaryDirectory(prefix="moorage-reporters-") as name,
        Ironic(Path(name) / "ironic", SETUP) as ironic,
    ):
        folder = Path(name)
        for number in range(1, SETUP.nodes + 1):
            ironic.send("PUT", f"/v1/nodes/node-{number}/states/power", {"target": "power on"})
        with moorage(folder, "alone", ironic) as stack:
            stack.until(
                "power", lambda: all(one["power_state"] == "power on" for one in stack.nodes())
            )
            check_cleaned(stack)
        with moorage(folder, "beside", ironic) as stack:
            nova = Nova(python, stack.url, stack.secret, folder / "nova.log")
            try:
                check_mapping(nova)
                check_beside(stack, nova)
            finally:
                nova.close()
    print_line(f"e2e: reporters: all steps passed in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
