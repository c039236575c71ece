"""The answers about machines: agents, reporters, capacity."""

from dataclasses import replace
from uuid import UUID

from moorage.wire.capacity import Capacity, CapacityLine, ProviderFilled
from moorage.wire.changes import AgentPlan, FailureValue
from moorage.wire.fleet import (
    Agent,
    AgentGroup,
    GroupDesired,
    MachineFacts,
    ManagedClass,
    PartShown,
)
from moorage.wire.reporting import NodeOwned, PassTold, Pin, Reporter, ReporterGroup
from tests.cli.tables.building import before, built


def agent(number: int) -> Agent:
    """Return an agent; every fourth fails, and has sent a plan."""
    failure = plan = None
    if number % 4 == 3:
        failure = FailureValue(
            code="fragmented",
            message="only 311 of 512 pages could be reserved: memory is fragmented",
            attempts=4,
            since=before(minutes=31),
            next_retry_at=None,
        )
        plan = AgentPlan(
            digest=f"{number:02x}" * 32,
            boot_id="4f7c1d1e-5a0a-4b52-9a44-0d5e8f5d7f10",
            outcome="done",
            at=before(minutes=32),
            reshape="0b1f6a3e-7f0a-5a63-9f0e-2f7c6b1d8a55",
        )
    there = 311 if failure else 512
    pages = ManagedClass(
        eligible=600,
        volatile=True,
        desired=512,
        source="group",
        percent=80.0,
        actual=there,
        offered=there,
        used=200,
        why=failure and failure.message,
    )
    ident = f"{number * 0x1F3D5B79:08x}-7f0a-4a63-9f0e-2f7c6b1d8a55"
    part = PartShown(provider=ident, name="numa0", parent=None, present=True, classes={})
    part.classes["CUSTOM_HUGEPAGES_2MB"] = pages
    return built(
        Agent,
        id=ident,
        group=f"rack-{number % 3}",
        policy="no_provision" if number == 2 else "in_service",
        policy_reason="new fans" if number == 2 else "",
        readiness="degraded" if failure else "ready",
        liveness=("fresh", "late", "lost")[number % 3],
        heard_at=before(seconds=4 + number % 3 * 2_117),
        facts=MachineFacts(hostname=f"compute-{number:02d}.eu-1.example.org"),
        failure=failure,
        parts=[part],
        plan=plan,
    )


AGENTS = [agent(number) for number in range(1, 9)]
GROUPS = [
    AgentGroup(
        name=f"rack-{number}",
        desired={
            "CUSTOM_HUGEPAGES_2MB": GroupDesired(percent=80.0),
            "CUSTOM_HUGEPAGES_1GB": GroupDesired(amount=16),
        },
        members=40 - number,
        late=number,
        lost=0,
        suspect_network=number == 2,
        suspect_since=None,
        waits_until=None,
    )
    for number in range(3)
]
REPORTERS = ReporterGroup(
    name="ironic",
    members=[
        Reporter(
            name=f"conductor-{number}.eu-1.example.org",
            instance=str(UUID(int=number)),
            live=number != 2,
            ttl=30.0,
            silent=4.0 if number != 2 else 8_411.0,
            joined_at=before(days=2),
            pinned=number * 17,
            last_pass=PassTold(age=61.0, nodes=5_000 - number, refused={"not_owner": 3 * number})
            if number
            else None,
        )
        for number in range(4)
    ],
    observed=["conductor-0", "conductor-1"],
    seen_at=before(seconds=3),
    observer_error="",
    pins_generation=3,
    pinned_elsewhere=34,
)
REPORTERS_EU = replace(REPORTERS, name="ironic-eu", members=REPORTERS.members[:1])
PINS = [Pin(node=str(UUID(int=number << 96)), member="conductor-1") for number in range(1, 4)]
NODES = [NodeOwned(uuid=one.node, ghost=one is PINS[0]) for one in PINS]


def filled(number: int, used: int, capacity: int) -> ProviderFilled:
    """Return a provider of which some is used."""
    name = f"compute-{number:05d}.eu-1.example.org"
    return ProviderFilled(uuid=str(UUID(int=number << 96)), name=name, used=used, capacity=capacity)


def line(
    resource_class: str, each: int, used: int, group: str | None = None, reserved: int = 0
) -> CapacityLine:
    """Return the sums of 15,000 providers with as much each, of which a percentage is used."""
    count = 15_000 if group is None else 300
    units = each - reserved
    return CapacityLine(
        resource_class=resource_class,
        group=group,
        providers=count,
        total=count * each,
        reserved=count * reserved,
        capacity=count * units,
        used=count * units * used // 100,
        free=count * units - count * units * used // 100,
        ratio=1.0 if group is None else None,
        fullest=[filled(number, units, units) for number in (7, 12, 104)] if used else [],
        emptiest=[filled(number, 0, units) for number in (14_999, 3, 5)] if used < 100 else [],
    )


SUMS = {
    "class": [
        line("CUSTOM_BAREMETAL", 1, 61),
        line("CUSTOM_HUGEPAGES_2MB", 311, 93),
        line("DISK_GB", 2_000, 0),
        line("MEMORY_MB", 262_144, 44, reserved=512),
        line("VCPU", 128, 100),
    ],
    "aggregate": [
        line("VCPU", 128, used, str(UUID(int=number << 100)))
        for number, used in ((3, 12), (5, 91), (11, 100))
    ],
    "trait": [
        line("VCPU", 128, used, trait)
        for trait, used in ((None, 100), ("CUSTOM_GOLD", 7), ("HW_CPU_X86_AVX512F", 55))
    ],
}


def sums(by: str) -> Capacity:
    """Return the sums of all inventories."""
    left_out = 4_711 if by == "aggregate" else 0
    return Capacity(as_of="1.4711", providers=15_000, lines=SUMS[by], left_out=left_out)
