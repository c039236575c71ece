"""Sends 6,000 requests of reporters, many of them wrong, with all kinds of tokens: no 5xx.

No token reaches another group, and no report changes what an agent manages or makes a provider
nova's. `MOORAGE_SEED` repeats a run; a failure prints its seed and the request. `MOORAGE_SOAK`
sends 20 times as many.
"""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from moorage.service.access.roles import Role
from moorage.wire.operations import operations_by_id
from tests.e2e.hostile.reporter_fuzzer import GROUPS, Known, ReporterFuzzer, Sent
from tests.e2e.support.chance import judged, seeded
from tests.e2e.support.peer import Answer, Peer
from tests.e2e.support.server import Server, serve
from tests.faces.v1.fleet.machine import Machine
from tests.faces.v1.native import Native
from tests.support.seeds import SOAK, is_share, portion

REQUESTS = portion(6_000 * (20 if SOAK else 1))
CONNECTIONS = 4
OPERATIONS = operations_by_id(("reporting",)).values()
RANKS = [role.value for role in Role]
STRANGERS = ("other", "agent")
"""Callers that may do nothing here: a reporter of another group, and an agent."""


def may(caller: str, what: str, group: str | None) -> bool:
    """Return whether a caller may reach a route, for a group."""
    (operation,) = (one for one in OPERATIONS if f"{one.method} {one.path}" == what)
    if caller in GROUPS:
        return bool(operation.access.scopes) and group in (caller, None)
    return caller not in STRANGERS and RANKS.index(caller) >= RANKS.index(
        str(operation.access.role)
    )


def complaint(sent: Sent, answer: Answer) -> str:
    """Return what is wrong with an answer; empty if it is valid."""
    if answer.status >= 500:
        return "a server error"
    if answer.status < 300 and not may(sent.caller, sent.what, sent.group):
        return f"{sent.caller} has reached {sent.what} of {sent.group}"
    if answer.status < 400:
        return ""
    said = json.loads(answer.body)
    return "" if said["detail"] and said["status"] == answer.status else "no detail"


async def send_all(url: str, fuzzer: ReporterFuzzer, known: Known, seen: Counter[str]) -> None:
    """Send requests on one connection, each after the answer to the one before."""
    async with Peer(url) as peer:
        for _ in range(REQUESTS // CONNECTIONS):
            await judged(peer, fuzzer.next(), complaint, known.learn, seen)


def callers(native: Native) -> dict[str, str]:
    """Return a token of each kind of caller, by its role, or by its group."""
    roles = {role: native.token(role) for role in ("reader", "service", "operator")}
    roles["user"] = native.token("user", "p")
    scoped = {"agent": ("agent", {"agent": ["00000000-0000-4000-8000-000000000001"]})}
    scoped |= {name: ("reporter", {"group": [name]}) for name in (*GROUPS, "other")}
    for name, (role, scope) in scoped.items():
        made = native.ask("POST", "/v1/tokens", {"name": name, "role": role, "scope": scope})
        roles[name] = made.body["token"]
    return roles


def managed(native: Native, machine: Machine) -> list[Any]:
    """Return what the Placement API and the agent show of a machine."""
    shown = []
    for uuid in (machine.uuid, machine.part):
        for path in ("", "/inventories", "/traits", "/aggregates"):
            asked = f"/resource_providers/{uuid}{path}"
            shown.append(native.ask("GET", asked, OpenStack_API_Version="placement 1.39").body)
    return shown


async def whole(server: Server, seed: int, known: Known) -> Counter[str]:
    """Fuzz on several connections at the same time."""
    seen: Counter[str] = Counter()
    async with asyncio.TaskGroup() as group:
        for n in range(CONNECTIONS):
            fuzzer = ReporterFuzzer((seed, n), known)
            group.create_task(send_all(server.url, fuzzer, known, seen))
    return seen


def delete_all(native: Native, seen: Counter[str]) -> None:
    """Let all members leave, and delete the groups: live members of the fuzzer prevent it."""
    for name in GROUPS:
        path = f"/v1/reporter-groups/{name}"
        for member in native.ask("GET", path).body["members"]:
            left = native.ask("DELETE", f"{path}/members/{quote(member['name'], safe='')}")
            assert left.status < 300, (member, left.body)
        answer = native.ask("DELETE", path)
        assert answer.status < 300, answer.body
        seen["DELETE /v1/reporter-groups/{name}"] += 1


@pytest.mark.played_in_part
def test_fuzz_of_reporters(tmp_path: Path) -> None:
    """No 5xx, no traceback, the check is clean; tokens and agents keep what is theirs."""
    database = tmp_path / "ledger"
    with seeded() as seed, serve(database, "--no-access-log") as server:
        native = Native(server.url, database)
        machine = Machine(native)
        machine.offering()
        before = managed(native, machine)
        known = Known(callers(native), [machine.uuid, machine.part])
        seen = asyncio.run(whole(server, seed, known))
        delete_all(native, seen)
        assert managed(native, machine) == before
        marked = "/resource_providers?required=OWNER_NOVA"
        found = native.ask("GET", marked, OpenStack_API_Version="placement 1.39")
        assert found.body == {"resource_providers": []}
        assert native.ask("POST", "/v1/database/check", {}).body["differences"] == []
        said = "".join(server.said)
        assert "Traceback" not in said, said[:5_000]
        assert_useful(seen, known)


def assert_useful(seen: Counter[str], known: Known) -> None:
    """A fuzzer that is always refused proves little: every route must have been carried out."""
    assert seen["2xx"] > REQUESTS // 5, seen
    assert seen["4xx"] > REQUESTS // 5, seen
    missed = [one for one in OPERATIONS if not seen[f"{one.method} {one.path}"]]
    assert is_share() or missed == [], seen
    assert is_share() or known.codes >= {"class_managed", "not_owner", "invalid"}
