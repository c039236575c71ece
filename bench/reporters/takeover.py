"""Three real reporters share the nodes of a double of Ironic, and one is killed.

The change stream is the witness: each node that has changed in Ironic since has one change in it,
so no two reporters have written a node. That all others are reported, too, the members say of their
last pass.
"""

import re
import signal
import sys
import threading
from collections import defaultdict
from contextlib import ExitStack
from time import monotonic
from typing import Any

from bench.ironic.gate import READY as DOUBLE_READY
from bench.ironic.reporter import TOKEN, sent
from bench.reporters.targets import Targets
from tests.e2e.support.server import Server

GROUP = "takeover"
MEMBERS = ("a", "b", "c")
TTL, INTERVAL = 15.0, 5.0
"""The defaults of the command."""

READY = re.compile(r"moorage: reporting \d+ nodes as (?P<url>\S+)")
READY_SECONDS = PATIENCE_SECONDS = 120.0
LOOK_SECONDS = 0.05
OWNERS_SECONDS = TTL + 1.0
"""The most that a takeover may take after the kill."""

TICK_SECONDS = INTERVAL + 1.0
"""The most until the new owners have reported all nodes: the wait for a pass, and the pass."""

EVERY = 100
"""One of this many nodes changes in Ironic: the double needs minutes to list all as changed."""


class Stream:
    """What the change stream says of the reserved units of each node from now on."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._after = sent(url, "/v1/providers?limit=1", None)["as_of"]
        self.said: defaultdict[str, list[int]] = defaultdict(list)
        self.revisions: set[tuple[str, int]] = set()

    def follow(self, nodes: int) -> None:
        """Return when there is a change of this many nodes. Raises AssertionError."""
        began = monotonic()
        while len(self.said) < nodes:
            assert monotonic() - began < PATIENCE_SECONDS, f"{len(self.said)} nodes were reported"
            self.read(wait=1)

    def read(self, *, wait: int) -> None:
        """Read the next changes."""
        path = f"/v1/watch?after={self._after}&wait={wait}&limit=1000&kinds=inventory"
        page = sent(self._url, path, None)
        self._after = page["next"]
        for change in page["changes"]:
            node = change["key"].partition("/")[0]
            self.said[node].append(change["value"]["reserved"])
            at = (node, change["revision"])
            assert at not in self.revisions, f"two writes of {node} at one revision"
            self.revisions.add(at)


class Successors(threading.Thread):
    """Looks until a member is no longer live, and the live ones have reported all nodes."""

    def __init__(self, url: str, member: str, nodes: int) -> None:
        super().__init__(daemon=True)
        self._url = url
        self._member = member
        self._nodes = nodes
        self._pause = threading.Event()
        self.moved = self.reported = float("inf")
        """When this was so, by the monotonic clock."""

    def run(self) -> None:
        """Look, again and again."""
        while self._member in (found := live(self._url)):
            self._pause.wait(LOOK_SECONDS)
        self.moved = monotonic()
        while sum(one["last_pass"]["nodes"] for one in found.values()) < self._nodes:
            self._pause.wait(LOOK_SECONDS)
            found = live(self._url)
        self.reported = monotonic() - min(one["last_pass"]["age"] for one in found.values())


def live(url: str) -> dict[str, Any]:
    """Return the live members, by name."""
    group = sent(url, f"/v1/reporter-groups/{GROUP}", None)
    return {one["name"]: one for one in group["members"] if one["live"]}


def measured(url: str, nodes: int, targets: Targets) -> None:
    """Start the reporters, kill one of them, and measure what follows."""
    with ExitStack() as stack:
        command = (sys.executable, "-m", "tests.support.ironic_double", "--nodes", str(nodes))
        double = stack.enter_context(Server(command, ready=DOUBLE_READY))
        touch(double, resource_class="takeover", maintenance=False)
        running = {
            name: stack.enter_context(
                Server(words(double.url, url, name), ready=READY, seconds=READY_SECONDS)
            )
            for name in MEMBERS
        }
        changed = len(range(0, nodes, EVERY))
        stream = Stream(url)
        touch(double, maintenance=True, every=EVERY)
        stream.follow(changed)
        killed(url, double, running["a"], nodes, targets)


def killed(url: str, double: Server, victim: Server, nodes: int, targets: Targets) -> None:
    """Kill a reporter while some nodes change."""
    assert [*live(url)] == [*MEMBERS]
    stream, successors = Stream(url), Successors(url, "a", nodes)
    victim.process.send_signal(signal.SIGKILL)
    began = monotonic()
    touch(double, maintenance=False, every=EVERY)
    successors.start()
    stream.follow(len(range(0, nodes, EVERY)))
    told = monotonic() - began
    successors.join(PATIENCE_SECONDS)
    stream.read(wait=1)
    moved, reported = successors.moved - began, successors.reported - successors.moved
    what = f"a killed reporter: its nodes have other owners after {moved:.2f} s"
    targets.check(what, moved <= OWNERS_SECONDS, f"TTL + 1 s = {OWNERS_SECONDS:.0f} s")
    what = f"  all {nodes} nodes are reported {reported:.2f} s later"
    targets.check(what, reported <= TICK_SECONDS, f"one tick + 1 s = {TICK_SECONDS:.0f} s")
    once = all(values == [0] for values in stream.said.values())
    what = f"  all {len(stream.said)} changed nodes are reported {told:.2f} s after the kill"
    targets.check(what, once, "by one change each")


def touch(double: Server, every: int = 1, **members: Any) -> None:
    """Change one of this many nodes in Ironic."""
    # Readers read again what is a little older than the latest change: that must be of no use.
    sent(double.url, "/_double/advance", {"seconds": 60.0})
    sent(double.url, "/_double/touch", {"power": "power off", "every": every, "members": members})


def words(ironic: str, url: str, member: str) -> list[str]:
    """Return the command of a reporter."""
    return [
        *(sys.executable, "-m", "moorage", "ironic", "report", "--ironic", ironic, "--url", url),
        *("--group", GROUP, "--member", member, "--token", TOKEN["X-Auth-Token"]),
        *("--ttl", f"{TTL:g}", "--interval", f"{INTERVAL:g}"),
    ]
