"""Plays of agents, as Hypothesis draws them: registers and reports of any structure, many odd.

Whatever is sent, the server answers without a 5xx, its check is clean, and of each class at most
what is desired and there is offered; nothing is offered of a machine that is closed.

`MOORAGE_SOAK` plays 10 times as much.
"""

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID, uuid4, uuid5

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from moorage.wire.operations import operations_by_id
from tests.e2e.support.fleet_steps import (
    CLASSES,
    KINDS,
    OFFERING,
    OFTEN,
    PREPARED,
    STEPS,
    WORDS,
    Drawn,
    Step,
)
from tests.e2e.support.hostile import mutated, written
from tests.e2e.support.server import Server, serve
from tests.faces.v1.native import Native, Response
from tests.support.seeds import SOAK, is_share, portion

PLAYS = portion(100 * (10 if SOAK else 1))
LATEST = {"OpenStack_API_Version": "placement 1.39"}
_plays = itertools.count(1)


class Machine:
    """What the answers have shown of one machine."""

    def __init__(self, host: str) -> None:
        self.uuid = str(uuid4())
        self.host = host
        self.boot = "boot-1"
        self.generation = 0
        self.pairs: list[tuple[str, str]] = []

    def part(self, name: str) -> str:
        """Return the UUID of a part."""
        return str(uuid5(UUID(self.uuid), name))


class Play:
    """Two machines and a server."""

    def __init__(self, native: Native, seen: Counter[str]) -> None:
        self.native = native
        self.seen = seen
        self.name = f"play{next(_plays)}"
        self.machines = [Machine(f"{self.name}-{n}") for n in range(2)]
        self.root = native.provider(f"{self.name}-given")
        self.consumer = str(uuid4())

    def step(self, kind: str, n: int, drawn: Drawn, odd: Random | None) -> None:
        """Send one request, and look at its machine afterwards."""
        one = self.machines[n]
        answer = self.played(kind, one, drawn, odd)
        assert answer.status < 500, answer
        if answer.status < 300:
            self.seen[kind] += 1
        shown = self.native.ask("GET", f"/v1/agents/{one.uuid}")
        assert shown.status in (200, 404), shown
        if shown.status == 200:
            check_sound(shown.body)

    def played(self, kind: str, one: Machine, drawn: Drawn, odd: Random | None) -> Response:
        """Carry out a step; return the answer."""
        if " " not in kind:
            placement: dict[str, Callable[[Machine, Drawn], Response]] = {
                "claim": self.claim,
                "release": self.release,
                "total": self.total,
                "delete": self.delete,
            }
            return placement[kind](one, drawn)
        method, template = kind.split(" ")
        group = f"{self.name}/a"
        path = template.format_map({"id": one.uuid, "consumer": self.consumer, "name+": group})
        if method in ("GET", "DELETE"):
            asked = self.filled(template, one, drawn)
            query = "&".join(f"{name}={value}" for name, value in asked.items())
            query = query.replace('"', "%22")
            return self.native.ask(method, path + (f"?{query}" if query else ""))
        body: Any = self.filled(template, one, drawn)
        sent = body if odd is None else mutated(odd, body)
        answer = self.native.ask(method, path, written(sent))
        if answer.status == 200 and template.endswith(("/register", "/report")):
            self.learn(one, json.loads(written(sent)), answer)
        return answer

    def filled(self, template: str, one: Machine, drawn: Drawn) -> Drawn:
        """Return a body or query with what only the answers have shown."""
        body = dict(drawn)
        if body.get("boot_id") == "":
            body["boot_id"] = one.boot
        if body.get("group"):
            body["group"] = f"{self.name}/{body['group']}"
        if body.get("provider"):
            body["provider"] = one.part(body["provider"])
        if body.get("root"):
            body["root"] = self.root
        if template.endswith("/register"):
            body["facts"] = {"hostname": one.host}
            body["parts"] = [self.part(one, part) for part in body["parts"]]
        elif template.endswith(("/report", "/alive")):
            body["report_generation"] += one.generation
        if template.endswith("/report"):
            amounts = itertools.cycle(body["actual"])
            body["actual"] = {}
            for provider, name in one.pairs:
                body["actual"].setdefault(provider, {})[name] = next(amounts)
            if body.get("consumers") == ["claimed"]:
                body["consumers"] = [self.consumer]
        return body

    def part(self, one: Machine, drawn: Drawn) -> Drawn:
        """Return a part with UUIDs: the empty name is the root, and as parent, too."""
        parent = drawn["parent"]
        above = None if parent is None else one.part(parent) if parent else one.uuid
        return {**drawn, "provider": one.part(drawn["name"]), "parent": above}

    def learn(self, one: Machine, sent: Any, answer: Response) -> None:
        """Remember what the server has accepted."""
        one.boot = sent["boot_id"]
        one.generation = answer.body["report_generation"]
        if "parts" in sent:
            one.pairs = [
                (part["provider"], name) for part in sent["parts"] for name in part["classes"]
            ]

    # Clients of the Placement API.

    def claim(self, one: Machine, drawn: Drawn) -> Response:
        """Claim an amount of the first class of a machine for a new consumer."""
        self.consumer = str(uuid4())
        provider, name = self.first(one)
        body = {
            "allocations": {provider: {"resources": {name: drawn["amount"]}}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        answer = self.native.ask("PUT", f"/allocations/{self.consumer}", body, **LATEST)
        if answer.status == 204:
            shown = self.native.ask("GET", f"/v1/agents/{one.uuid}")
            classes = {part["provider"]: part["classes"] for part in shown.body["parts"]}
            managed = classes[provider][name]
            assert managed["used"] <= managed["offered"], shown
        return answer

    def release(self, _one: Machine, _drawn: Drawn) -> Response:
        """Give back what the last consumer holds."""
        return self.native.ask("DELETE", f"/allocations/{self.consumer}", **LATEST)

    def total(self, one: Machine, drawn: Drawn) -> Response:
        """Write the total of the first class of a machine."""
        provider, name = self.first(one)
        path = f"/resource_providers/{provider}"
        generation = self.native.ask("GET", path, **LATEST).body.get("generation", 0)
        body = {"resource_provider_generation": generation, "total": drawn["total"]}
        return self.native.ask("PUT", f"{path}/inventories/{name}", body, **LATEST)

    def delete(self, one: Machine, _drawn: Drawn) -> Response:
        """Delete the provider of a part."""
        return self.native.ask("DELETE", f"/resource_providers/{self.first(one)[0]}", **LATEST)

    def first(self, one: Machine) -> tuple[str, str]:
        """Return the first class of a machine, and its provider."""
        return one.pairs[0] if one.pairs else (one.part("numa0"), CLASSES[0])


def check_sound(shown: Any) -> None:
    """No more is offered than is desired and there, and nothing while the machine is closed."""
    is_open = (
        (shown["policy"], shown["state"], shown["liveness"]) == ("in_service", "active", "fresh")
    ) and shown["readiness"] in OFFERING
    assert shown["offered"] == is_open, shown
    assert (shown["boot_id"] is None) == (shown["readiness"] == "unregistered"), shown
    for part in shown["parts"]:
        for one in part["classes"].values():
            most = min(one["desired"], one["actual"]) if is_open and part["present"] else 0
            assert 0 <= one["offered"] <= most, shown
            assert (one["why"] is None) == (one["offered"] == one["desired"]), shown


def check_database(play: Play) -> None:
    """The server's own check is clean, and the agents of a play can be listed."""
    checked = play.native.ask("POST", "/v1/database/check", {})
    assert (checked.status, checked.body) == (200, {"differences": []})
    for group in ("a", "b"):
        page = play.native.ask("GET", f"/v1/agents?group={play.name}/{group}")
        assert page.status == 200, page


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Server, Native]]:
    """Return a server and a caller; nobody is late while this test runs."""
    database = tmp_path / "m.sqlite"
    with serve(database, "--no-access-log", "--fleet-ttl-min", "60") as server:
        yield server, Native(server.url, database)


@pytest.mark.played_in_part
def test_fuzz_of_agents(served: tuple[Server, Native]) -> None:
    """After any sequence the invariants hold; no answer is a 5xx and nothing is logged as one."""
    server, native = served
    seen: Counter[str] = Counter()

    @settings(
        max_examples=PLAYS,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(st.sampled_from([True, True, True, False]), st.lists(STEPS, min_size=12, max_size=40))
    def played(prepared: bool, steps: list[Step]) -> None:
        play = Play(native, seen)
        for step in [*(PREPARED if prepared else ()), *steps]:
            play.step(*step)
        check_database(play)

    played()
    assert "Traceback" not in "".join(server.said)
    for kind in OFTEN:
        assert is_share() or seen[kind] > PLAYS // 10, seen


def test_every_route_is_played(served: tuple[Server, Native]) -> None:
    """Each route of the fleet is among the steps, and a valid request to it succeeds."""
    routes = {f"{one.method} {one.path}" for one in operations_by_id(("fleet",)).values()}
    assert routes == {kind for kind in KINDS if " " in kind}
    _, native = served
    seen: Counter[str] = Counter()
    play = Play(native, seen)
    group: list[Step] = [
        ("PUT /v1/groups/{name+}", 0, {"desired": {}}, None),
        ("POST /v1/groups/{name+}:wait", 0, {"seconds": 1.0}, None),
        *((f"{kind} /v1/groups/{{name+}}", 0, {}, None) for kind in ("GET", "DELETE")),
    ]
    more: list[Step] = [
        ("claim", 0, {"amount": 7}, None),
        ("GET /v1/agents/{id}/starts/{consumer}", 0, {"boot_id": ""}, None),
        ("release", 0, {}, None),
        ("total", 0, {"total": 20}, None),
        (f"{WORDS}/alive", 0, {"boot_id": "", "report_generation": 0}, None),
        ("GET /v1/agents/{id}", 0, {}, None),
        ("GET /v1/agents", 0, {"limit": "5"}, None),
        ("GET /v1/groups", 0, {}, None),
        ("POST /v1/groups/{name+}:confirm", 0, {}, None),
        *((f"{WORDS}/{word}", 0, {}, None) for word in ("drain", "resume", "expunge")),
        (f"{WORDS}/decommission", 0, {"force": False}, None),
        (f"{WORDS}/enroll", 1, {"group": "a"}, None),
        ("PUT /v1/agents/{id}/root", 1, {"root": "given"}, None),
        ("delete", 0, {}, None),
    ]
    for step in (*group, *PREPARED, *more):
        play.step(*step)
    assert {*seen} == {*KINDS}, {*KINDS} - {*seen}
    check_database(play)
