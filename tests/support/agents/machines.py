"""Agents of all providers that the clients of one server create: each offers all of its classes.

An agent can only manage the classes of a provider that the server created for it. So what a client
has created is deleted again, and the agent registers a machine with its UUID and name. Before
a client writes inventories the agent registers their classes, and afterwards it reports that all
that is desired is there.

The server creates a machine without a parent, so a child is moved afterwards. This update shows in
one place: the answer to a child's first update has no Last-Modified, so it is removed here.
Standard library only: other environments use it.
"""

import itertools
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote
from uuid import UUID

from tests.support.agents.api import Api, RefusedError
from tests.support.agents.messages import Message

BEAT_SECONDS = 2.5
"""Agents send a sign of life this often, a quarter of the shortest TTL."""

CLASSES_MAX = 8
"""Classes of a part; documented in docs/reference/limits.md."""

ELIGIBLE = 2**31 - 1
MODIFIED = "last-modified"

PROVIDERS = "providers managed"
OFFERED = "inventories offered in full"
WITHOUT = "inventories without agent"
REPORTS = "reports"
BEATS = "signs of life"
COUNTED = (PROVIDERS, OFFERED, WITHOUT, REPORTS, BEATS)
"""What is counted."""


@dataclass
class Machine:
    """The agent of a provider. `classes` are those that it registers, `ever` also former ones.

    `moved_at` is when it was moved below its parent; None: it has no parent. `gone`: a client has
    deleted the provider, and the machine sends signs of life only, or it would be created again.
    """

    uuid: str
    name: str
    boot: str
    classes: set[str] = field(default_factory=set)
    ever: set[str] = field(default_factory=set)
    reported: int = 0
    moved_at: str | None = None
    gone: bool = False


class Machines:
    """All agents of one server. Hold `turn` while a request of a client is under way.

    `gives` False: nothing is there on any machine. `counts` are the things that happened,
    `problems` what should not have happened.
    """

    def __init__(self, url: str, *, gives: bool = True) -> None:
        self.gives = gives
        self.turn = threading.Lock()
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self._api = Api(url)
        self._machines: dict[str, Machine] = {}
        self._boots = itertools.count(1)
        self._ended = threading.Event()
        self._first_update = False

    def start(self) -> None:
        """Let all agents send signs of life from now on."""
        threading.Thread(target=self._beat, daemon=True).start()

    def stop(self) -> None:
        """End all agents."""
        self._ended.set()
        with self.turn:
            self._api.close()

    def before(self, request: Message) -> None:
        """Register the classes of which a request is about to write inventories."""
        for uuid, names in _written(request).items():
            machine = self._present(uuid)
            if machine is not None:
                self._guarded(self._classes_added, machine, names)
        parts = _parts(request)
        self._first_update = (
            (request.method, parts[0], len(parts)) == ("PUT", "resource_providers", 2)
            and (machine := self._present(_normal(parts[1]))) is not None
            and machine.moved_at == self._updated_at(machine.uuid)
        )

    def after(self, request: Message, answer: Message) -> Message:
        """Do what agents do when a client has changed something; return the answer for it."""
        if answer.succeeded:
            self._followed(request, answer)
            if self._first_update:
                return answer.without(MODIFIED)
        return answer

    def _followed(self, request: Message, answer: Message) -> None:
        parts = _parts(request)
        if parts == ["_testing", "reset"]:
            self._machines.clear()
        elif (request.method, parts) == ("POST", ["resource_providers"]):
            self._guarded(self._created, request, answer)
        elif request.method == "DELETE" and parts[:1] == ["resource_classes"]:
            for machine in self._machines.values():
                if not machine.gone:
                    self._guarded(self._class_removed, machine, parts[1])
        elif (request.method, parts[:1], len(parts)) == ("DELETE", ["resource_providers"], 2):
            if (machine := self._machines.get(_normal(parts[1]))) is not None:
                machine.gone = True
        else:
            for uuid in _written(request):
                if (machine := self._present(uuid)) is not None:
                    self._guarded(self._reported, machine)

    def _present(self, uuid: str) -> Machine | None:
        """Return the machine of a provider that exists."""
        machine = self._machines.get(uuid)
        return None if machine is None or machine.gone else machine

    def _guarded(self, step: Any, *given: Any) -> None:
        try:
            step(*given)
        except RefusedError as problem:
            self.problems.append(f"{step.__name__}: {problem}")

    def _created(self, request: Message, answer: Message) -> None:
        """Put a machine in the place of a provider that a client has created."""
        wanted = request.json()
        uuid = answer.headers["location"].rpartition("/")[2]
        path = f"/resource_providers/{uuid}"
        self._api.ask("DELETE", path)
        machine = self._machines.get(uuid)
        if machine is None:
            machine = self._machines[uuid] = Machine(uuid, "", "")
            self._api.ask("PUT", f"/v1/agents/{uuid}", {})
        else:
            self._emptied(machine)
        machine.name, machine.boot = wanted["name"], f"boot-{next(self._boots)}"
        machine.classes, machine.gone = set(), False
        self._register(machine)
        self._report(machine, {})
        parent, machine.moved_at = wanted.get("parent_provider_uuid"), None
        if parent is not None:
            self._api.ask("PUT", path, {"name": machine.name, "parent_provider_uuid": parent})
            machine.moved_at = self._updated_at(uuid)
        self.counts[PROVIDERS] += 1

    def _shown(self, uuid: str) -> Any:
        """Return a provider as the native API shows it; None: it does not exist."""
        page = self._api.ask("GET", "/v1/providers?limit=1000")
        return next((one for one in page["providers"] if one["uuid"] == uuid), None)

    def _updated_at(self, uuid: str) -> str | None:
        """Return when a provider was updated, to the microsecond; None: it does not exist."""
        shown = self._shown(uuid)
        return None if shown is None else str(shown["updated_at"])

    def _emptied(self, machine: Machine) -> None:
        """Make nothing desired of a machine whose provider was deleted by a client."""
        desired = self._register(machine)
        for name in machine.classes:
            if desired.get(name):
                wanted = {"resource_class": name, "amount": 0}
                self._api.ask("POST", f"/v1/agents/{machine.uuid}/desired", wanted)
        self._api.send("DELETE", f"/resource_providers/{machine.uuid}")

    def _classes_added(self, machine: Machine, names: set[str]) -> None:
        new = {name for name in names - machine.classes if self._is_class(name)}
        if new and len(machine.ever | new) <= CLASSES_MAX:
            machine.classes |= new
            machine.ever |= new
            self._register(machine)

    def _class_removed(self, machine: Machine, name: str) -> None:
        if name in machine.classes:
            machine.classes.remove(name)
            self._register(machine)

    def _is_class(self, name: str) -> bool:
        return name.isascii() and self._api.send("GET", f"/resource_classes/{name}")[0] == 200

    def _reported(self, machine: Machine) -> None:
        """Report that all that is desired is there, and check that it is offered."""
        desired = self._register(machine)
        self._report(machine, desired)
        for name, shown in self._shown(machine.uuid)["inventories"].items():
            if shown["offered"] == shown["total"]:
                self.counts[OFFERED] += 1
            elif shown["offered"] is None:
                self.counts[WITHOUT] += 1
            elif self.gives:
                self.problems.append(f"{machine.uuid} {name}: {shown}")

    def _register(self, machine: Machine) -> dict[str, int]:
        """Register a machine; return what is desired of its classes."""
        part = {
            "provider": machine.uuid,
            "name": "root",
            "classes": {name: {"eligible": ELIGIBLE} for name in sorted(machine.classes)},
        }
        orders = self._api.ask(
            "POST",
            f"/v1/agents/{machine.uuid}/register",
            {"boot_id": machine.boot, "facts": {"hostname": machine.name}, "parts": [part]},
        )
        machine.reported = orders["report_generation"]
        return dict(orders["desired"].get(machine.uuid, {}))

    def _report(self, machine: Machine, there: dict[str, int]) -> None:
        machine.reported += 1
        given = {name: there.get(name, 0) if self.gives else 0 for name in machine.classes}
        self._api.ask(
            "PUT",
            f"/v1/agents/{machine.uuid}/report",
            {
                "boot_id": machine.boot,
                "report_generation": machine.reported,
                "desired_generation_seen": 0,
                "phase": "done",
                "actual": {machine.uuid: given},
            },
        )
        self.counts[REPORTS] += 1

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            with self.turn:
                for machine in self._machines.values():
                    self._guarded(self._alive, machine)

    def _alive(self, machine: Machine) -> None:
        body = {"boot_id": machine.boot, "report_generation": machine.reported}
        self._api.ask("POST", f"/v1/agents/{machine.uuid}/alive", body)
        self.counts[BEATS] += 1


def told(counts: Counter[str]) -> str:
    """Return what was counted as text."""
    return ", ".join(f"{counts[name]} {name}" for name in COUNTED)


def _parts(request: Message) -> list[str]:
    return [unquote(part) for part in request.path.strip("/").split("/")]


def _normal(text: str) -> str:
    """Return a UUID in the spelling of agents; another text as it is."""
    try:
        return str(UUID(text))
    except ValueError:
        return text


def _written(request: Message) -> dict[str, set[str]]:
    """Return the classes of which a request writes inventories, by provider."""
    parts, body = _parts(request), request.json()
    if not isinstance(body, dict):
        body = {}
    if request.method == "POST" and parts == ["reshaper"]:
        return {_normal(uuid): _named(one) for uuid, one in _dict(body, "inventories").items()}
    if len(parts) < 3 or (parts[0], parts[2]) != ("resource_providers", "inventories"):
        return {}
    if request.method in ("PUT", "POST", "DELETE"):
        named = _named(body) | set(parts[3:4])
        if isinstance(body.get("resource_class"), str):
            named.add(body["resource_class"])
        return {_normal(parts[1]): set() if request.method == "DELETE" else named}
    return {}


def _named(body: Any) -> set[str]:
    return set(_dict(body, "inventories"))


def _dict(body: Any, name: str) -> dict[str, Any]:
    found = body.get(name) if isinstance(body, dict) else None
    return found if isinstance(found, dict) else {}
