"""No host stops the governor, whatever it contains: those of others go on."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from msgspec import json

from moorage.client.admission import Admission
from moorage.client.transport import Transport
from moorage.integrations.kubernetes.api import Connection, KubernetesApi, is_object
from moorage.integrations.lease_api import LeaseApi
from moorage.integrations.metal3 import failures, hosts, notes
from moorage.integrations.metal3.events import events_of
from moorage.integrations.metal3.governor import Governor
from moorage.integrations.metal3.hosts import OWN, PAUSED, WAITING, Verb
from moorage.integrations.metal3.reconcile import host_of_object
from moorage.integrations.metal3.requests import HostRequests
from moorage.integrations.metal3.rules import FIELDS, Rules, parse
from moorage.integrations.provisioning.host_leases import HostLeases
from moorage.integrations.provisioning.notes import differs, remark_of
from moorage.wire.admission import PoolWanted
from tests.e2e.support.server import serve
from tests.integrations.metal3.govern.odd_hosts import ODD, PLACES, WHOLE, odd_hosts, with_value
from tests.support.kubernetes_double.server import KubernetesDouble

pytestmark = pytest.mark.thorough

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RULES: Rules = parse(
    {
        "rule": [
            {"pool": f"{name}/{{{name}}}", "where": {name: ["*a*b*c*d*e*", "*"]}}
            for name in (*(one for one in FIELDS if one != "labels"), "labels.rack")
        ]
    }
)


def at(*path: str, value: Any) -> Any:
    """Return a host with one odd value."""
    return with_value(WHOLE, path, value)


@example(at("metadata", "annotations", WAITING, value="place: " + "[" * 9_000))
@example(at("status", "lastUpdated", value="9999-12-31T23:59:59Z"))
@example(at("status", "errorCount", value="x"))
@example(at("spec", value=["x"]))
@given(odd_hosts())
def test_every_host_can_be_judged(host: Any) -> None:
    """All that a pass asks of a host has an answer, and what is sent to others can be encoded."""
    assert is_object(host)
    assert hosts.occupies(host) in (True, False)
    assert failures.cannot_start(host) in (True, False)
    again = failures.again_at(host)
    assert again is None or (f"{again:%F %T %Z}" and again.timestamp() is not None)
    assert failures.has_looked_since(host, failures.mark_of(host)) is False
    failures.result_of(host)
    said = notes.said_by(host)
    assert said is None or differs(said, remark_of("why")) in (True, False)
    for verb in Verb:
        needs = RULES.needs(host, verb)
        json.encode(
            [failures.mark_of(host), needs.units, host_of_object(host, verb, [*Verb]).labels]
        )
    why = failures.error_of(host)
    for refused in ({}, {"uid-odd": why}):
        for _, event in events_of({"uid-odd": host}, {}, {}, {"uid-odd": why}, refused, NOW):
            json.encode(event.object())


def test_no_host_stops_the_passes(tmp_path: Path) -> None:
    """Of hosts that each have another odd value, all passes succeed; one without starts."""

    async def scene(url: str, token: str) -> None:
        double = KubernetesDouble()
        for number, (path, value) in enumerate((one, odd) for one in PLACES for odd in ODD):
            host = at(*path, value=value)
            host["metadata"] |= {"name": f"odd-{number}", "uid": f"uid-{number}"}
            double.put(host)
        plain = at("metadata", "annotations", value={PAUSED: OWN})
        waits = with_value(plain, ("status",), {"provisioning": {"state": "available"}})
        double.put(with_value(waits, ("metadata", "name"), "plain"))
        async with (
            double,
            LeaseApi(url, token) as leases,
            KubernetesApi(Connection(double.url)) as api,
        ):
            governor = Governor(HostLeases(leases), HostRequests(api), Rules.of_pool("deploy"))
            for _ in range(3):
                assert await governor.tick()
            await governor.close()
        stored = double.storage.get(("metal3.io", "baremetalhosts", "metal3", "plain"))
        assert stored is not None and PAUSED not in stored["metadata"].get("annotations", {})

    database = tmp_path / "moorage.sqlite"
    with serve(database) as server:
        transport = Transport(server.url, Path(f"{database}.token").read_text().strip())
        Admission(transport).pool_put("deploy", PoolWanted(limit=10_000, expire="keep", ttl=60.0))
        wanted = {"name": "govern", "role": "governor", "scope": {"pool": ["deploy"]}}
        made = transport.request("POST", "/v1/tokens", wanted)
        asyncio.run(asyncio.wait_for(scene(server.url, made["token"]), 240))
