"""A night that operators ask about: the scene of `docs/howto/operate.md`, on a real server."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from typing import Any
from uuid import UUID, uuid4

from moorage.client.admission import Admission
from moorage.client.fleet import Fleet
from moorage.client.ledger import Ledger
from moorage.client.transport import Transport
from moorage.wire.admission import LeaseWanted, NeedWanted, PoolWanted
from moorage.wire.fleet import AgentWanted
from moorage.wire.ledger import (
    ClaimWanted,
    GroupAsked,
    InventoryWanted,
    ProvidersWanted,
    ProviderWanted,
)
from tests.cli.command import SECONDS
from tests.cli.pooled import Cli

OPTIONS = ("--no-access-log", "--fleet-ttl-min", "10")
"""Of the server: its machines are late soon."""

SLED = "5d4c1b1e-7f0a-4a63-9f0e-2f7c6b1d8a55"


@contextmanager
def make(cli: Cli) -> Iterator[None]:
    """Make the scene, wait until who falls silent in it is silent, and keep the others waiting."""
    operator = _as(cli, {"name": "night-shift", "role": "operator"})
    prow = _as(cli, {"name": "prow", "role": "user", "project_id": "ci"})
    _machines(cli)
    for name, wanted in (
        ("install/azure-4", PoolWanted(limit=3)),
        ("deploy/gold", PoolWanted(limit=5, expire="keep", ttl=1)),
        ("deploy/rack-7", PoolWanted(limit=20)),
        ("clusters/aws", PoolWanted(limit=None, native_slots=True)),
    ):
        operator.pool_put(name, wanted)
    operator.pool_put("install/azure-4", PoolWanted(limit=2))
    operator.pool_pause("deploy/rack-7", "a switch is being replaced")
    operator.slots("clusters/aws").add(["eu-1", "eu-2", "us-1"], {})
    operator.slots("clusters/aws").drain("eu-2", keep=True, reason="the disk fails")
    tickets = []
    for job, pool, hold in (
        ("4711/e2e", "install/azure-4", 2_400),
        ("4712/e2e", "install/azure-4", 1_500),
        ("4713/e2e", "install/azure-4", None),
        ("4714/e2e", "install/azure-4", None),
        ("4715/deploy", "deploy/gold", None),
        ("4716/smoke", "clusters/aws", None),
    ):
        labels = {"job": job, "host": f"runner-{job[3]}"}
        asked = prow.ask(
            LeaseWanted(
                needs=[NeedWanted(pool=pool)],
                key=str(uuid4()),
                labels=labels,
                hold=hold,
                patience=3_600,
                ttl=1 if pool == "deploy/gold" else 3_600,
            )
        )
        tickets += [asked.id] if asked.state == "waiting" else []
    over = Event()
    waiting = Thread(target=_wait_for, args=(prow, tickets, over))
    waiting.start()
    try:
        _fall_silent(cli, operator)
        yield
    finally:
        over.set()
        waiting.join()


def _wait_for(jobs: Admission, tickets: Sequence[str], over: Event) -> None:
    """Ask for tickets again and again: one that nobody asks for is passed over."""
    while not over.wait(1):
        for one in tickets:
            jobs.lease(one)


def _fall_silent(cli: Cli, operator: Admission) -> None:
    _until(lambda: any(one.unheard for one in operator.leases("deploy/gold")))
    _until(lambda: Fleet(cli.transport).agent(SLED).liveness != "fresh")


def _as(cli: Cli, wanted: dict[str, Any]) -> Admission:
    made = cli.transport.request("POST", "/v1/tokens", wanted)
    return Admission(Transport(cli.transport.url, made["token"]))


def _machines(cli: Cli) -> None:
    """Make two hosts, one of which is full, and a machine whose agent is never heard of again."""
    hosts = [
        ProviderWanted(
            uuid=str(UUID(int=number + 1)),
            name=f"compute-{number:02}",
            inventories={"VCPU": InventoryWanted(total=64)},
        )
        for number in range(2)
    ]
    ledger = Ledger(cli.transport)
    ledger.providers_upsert(ProvidersWanted(providers=hosts))
    for host, amount in zip(hosts, (64, 60), strict=True):
        group = GroupAsked(resources={"VCPU": amount}, in_tree=host.uuid)
        ledger.claim(ClaimWanted(groups=[group], project_id="p", user_id="u"))
    Fleet(cli.transport).agent_put(SLED, AgentWanted(group="rack-3"))
    body = {
        "boot_id": str(UUID(int=1)),
        "facts": {"hostname": "sled-7", "kernel": "6.1", "version": "1"},
        "parts": [{"provider": SLED, "name": "memory", "classes": {}}],
    }
    cli.transport.request("POST", f"/v1/agents/{SLED}/register", body)


def _until(is_so: Callable[[], bool]) -> None:
    """Ask again and again until it is so."""
    deadline = monotonic() + SECONDS
    while not is_so():
        assert monotonic() < deadline
        Event().wait(0.1)
