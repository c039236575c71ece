"""The answers of a server on a busy night, always the same: 500 leases, 40 pools, agents, tokens.

They are of the types of the native API, so they change with it.
"""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints
from uuid import UUID

from moorage.wire.admin import Token, Tokens, WhoAmI
from moorage.wire.admission import (
    Lease,
    LeasePage,
    NeedWanted,
    Pacing,
    Pool,
    PoolPage,
    Waiting,
)
from moorage.wire.audit import AuditEntry, AuditPage
from moorage.wire.capacity import Capacity, CapacityLine, ProviderFilled
from moorage.wire.changes import Changes, FailureValue
from moorage.wire.enums import State
from moorage.wire.fleet import (
    Agent,
    AgentGroup,
    AgentPage,
    GroupDesired,
    GroupPage,
    MachineFacts,
    ManagedClass,
    PartShown,
)
from moorage.wire.pool_reports import OutcomeLine, PoolReport
from moorage.wire.reporting import (
    GhostPage,
    NodeOwned,
    NodePage,
    PassTold,
    Pin,
    PinPage,
    Reporter,
    ReporterGroup,
    ReporterGroupPage,
)
from moorage.wire.slots import Slot, SlotDrain, SlotPage

T = TypeVar("T")

NOW = datetime(2026, 3, 14, 2, 17, 5, tzinfo=UTC)
"""The time of every answer, by the server's clock."""

GRANTED = 460
TICKETS = 40
POOLS = ("install/azure-4", "deploy/rack-7", "ci/quota-slice")
REASONS = (
    "first in line; limit: 50 of 50 units of {} are held by job 4711/e2e on runner-0 (ci/prow) for"
    " 2h24m, ci/prow (2) for up to 2h23m, job 4717/e2e on runner-6 (ci/prow) for 2h22m and 47 more",
    "3 ahead; limit: 20 of 20 units of {} are held by node-0001 for 2h23m, node-0004 for 2h23m,"
    " node-0007 (2) for 2h22m and 14 more",
    "first in line; pacing: next grant in 14 s",
)


def before(**ago: float) -> datetime:
    """Return a time in the past."""
    return NOW - timedelta(**ago)


def id_at(at: datetime, number: int) -> str:
    """Return the id of a lease: it begins with the time."""
    milliseconds = int(at.timestamp() * 1000)
    return str(UUID(int=milliseconds << 80 | 7 << 76 | 2 << 62 | number % 499 * 0x9E3779B97F4A7C))


def built(kind: type[T], **values: Any) -> T:
    """Return a value of the API in which only the members that matter are given."""
    hints = get_type_hints(kind)
    empty = {field.name: _empty(hints[field.name]) for field in fields(kind)}  # type: ignore[arg-type] # a T is a dataclass
    return kind(**{**empty, **values})


def _empty(hint: Any) -> Any:
    if type(None) in get_args(hint):
        return None
    if get_origin(hint) is Literal:
        return get_args(hint)[0]
    return NOW if hint is datetime else (get_origin(hint) or hint)()


def lease(number: int, state: State = "granted") -> Lease:
    """Return a lease or ticket; a later one is younger."""
    at = before(seconds=(GRANTED + TICKETS - number) * 17.3)
    pool, labels, waiting = POOLS[number % 3], {}, None
    if number % 3 == 1:
        labels = {"holder": f"node-{number % 1000:04d}", "verb": "deploy", "image": "rhel-9.4"}
    elif number % 2:
        labels = {"job": f"{4711 + number}/e2e", "host": f"runner-{number % 40}", "pid": "71"}
        labels |= {"command": "make e2e", "build": f"https://git.example/-/jobs/{number}"}
    if state == "waiting":
        reason = REASONS[number % 3].format(pool)
        place = number - GRANTED + 1
        waiting = built(Waiting, position=place, eta_seconds=(30.0, 90.0), reason=reason)
    return built(
        Lease,
        id=id_at(at, number),
        key=f"key-{number}",
        owner=("ci/prow", "governor:hosts", "ci/jenkins-eu")[number % 3],
        state=state,
        needs=[NeedWanted(pool=pool, units=1 + (number % 7 == 0))],
        labels=labels,
        asked_at=at,
        expires_at=NOW + timedelta(seconds=47 - number % 50) if state == "granted" else None,
        ended_at=before(minutes=3) if state == "ended" else None,
        granted_at=None if state == "waiting" else at + timedelta(seconds=41),
        cause="ttl_over" if state == "ended" else None,
        unheard=state == "granted" and number % 50 > 47,
        waiting=waiting,
    )


LEASES = [
    lease(number, "granted" if number < GRANTED else "waiting")
    for number in range(GRANTED + TICKETS)
]
ENDED = [lease(number, "ended") for number in range(-4, 0)]


def pool(number: int) -> Pool:
    """Return a pool; every fifth is busy."""
    busy = number % 5 == 0
    limit = 10 + number * 7
    return built(
        Pool,
        name=("install/azure-eastus-", "deploy/rack-", "ci/")[number % 3] + str(number),
        limit=limit,
        hold=1_200.0 if number % 2 else None,
        pacing=Pacing(interval=24.0, burst=5) if number % 2 else None,
        units=limit,
        paused=number == 7,
        pause_reason="rack 7 is being repaired" if number == 7 else "",
        occupied=limit if busy else number,
        waiting=number + 1 if busy else 0,
        free=0 if busy else limit - number,
        over=number == 10,
        unheard=2 if number == 5 else 0,
        first=lease(GRANTED + number % TICKETS, "waiting") if busy else None,
    )


POOLS_SHOWN = sorted((pool(number) for number in range(40)), key=lambda one: one.name)


def slot(number: int) -> Slot:
    """Return a slot of a pool; every third is free."""
    lease = LEASES[number] if number % 3 else None
    reason = "the disk fails its self-test, and the vendor sends another one" if number == 4 else ""
    drained = SlotDrain(goes=True, reason=reason, since=before(minutes=7))
    drain = drained if number % 8 == 4 else None
    state = "free" if lease is None else "held"
    if drain is not None:
        state = "drained" if lease is None else "draining"
    return Slot(
        name=f"{('eu', 'us')[number % 2]}-west-{number}",
        state=state,
        raw_state="free" if lease is None else "leased",
        labels={"region": ("eu", "us")[number % 2], "tier": str(number % 4)},
        owner=None if lease is None else lease.owner,
        lease=None if lease is None else lease.id,
        key=None if lease is None else lease.key,
        lease_labels={} if lease is None else lease.labels,
        since=before(minutes=number * number),
        drain=drain,
    )


def agent(number: int) -> Agent:
    """Return an agent; every fourth fails."""
    failure = None
    if number % 4 == 3:
        failure = FailureValue(
            code="fragmented",
            message="only 311 of 512 pages could be reserved: memory is fragmented",
            attempts=4,
            since=before(minutes=31),
            next_retry_at=None,
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
        facts=MachineFacts(hostname=f"compute-{number:02d}.eu-1.example.org"),
        failure=failure,
        parts=[part],
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
TOKENS = [
    Token(
        id=f"{number * 0x1F3D5B79A1:012x}",
        name=f"runner-{number}",
        role=("reader", "user", "governor")[number % 3],
        project_id="shop" if number % 3 == 1 else None,
        scope={"pool": ["install/*", "deploy/rack-7"]} if number % 3 == 2 else {},
        created_at=before(days=number * 11, hours=5),
        expires_at=NOW + timedelta(days=30 - number * 11) if number % 2 else None,
        rotated_at=None,
        revoked_at=before(days=1) if number == 4 else None,
        used_at=before(minutes=55) if number % 2 else None,
    )
    for number in range(6)
]
CALLER = WhoAmI(
    name="runner-2",
    role="governor",
    project_id=None,
    scope=TOKENS[2].scope,
    owner="governor:runner-2",
    token_id=TOKENS[2].id,
    expires_at=NOW + timedelta(days=8, hours=5),
    version="0.1.0",
)
ENTRIES = [
    AuditEntry(
        at=before(seconds=number * number * 613 + 5),
        id=f"{number:012x}",
        who=("admin", "night-shift-operator")[number % 2],
        token_id=None,
        role="operator",
        action=("lease.revoke", "pool.put", "agent.drain")[number % 3],
        target=("01957b9e-b0e3-7929-9dbb-8ab3a75f0605", "install/azure-4", "rack-7")[number % 3],
        before=None,
        after=None,
    )
    for number in range(8)
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
REPORT = PoolReport(
    pool=POOLS[0],
    asked_seconds=604_800.0,
    covered_seconds=86_400.0,
    cut=False,
    leases=1_811,
    waited=[3.2, 610.0, 2_455.731],
    held=[1_020.0, 1_200.004, 1_201.041],
    causes={"released": 1_790, "ttl_over": 17, "revoked": 4},
    outcomes=[
        OutcomeLine(limit=40, starts_per_minute=None, ok=860, failed=5, throttled=2),
        OutcomeLine(limit=50, starts_per_minute=25, ok=41, failed=7, throttled=19),
    ],
)
SLOTS = [slot(number) for number in range(1, 13)]
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


def answer_to(path: str, state: str | None, by: str = "class") -> Any:
    """Return the answer to a GET; None: there is nothing."""
    if path == "/v1/leases":
        found = [one for one in [*LEASES, *ENDED] if one.state == state]
        return LeasePage(leases=found, next=None)
    shown: dict[str, Any] = {f"/v1/leases/{one.id}": one for one in (*ENDED, *LEASES)}
    shown |= {
        "/v1/capacity": sums(by),
        "/v1/watch": Changes(changes=[], next="1.4711"),
        "/v1/pools": PoolPage(pools=POOLS_SHOWN, next=None),
        "/v1/agents": AgentPage(agents=AGENTS, next=None),
        f"/v1/agents/{AGENTS[2].id}": AGENTS[2],
        f"/v1/pools/{POOLS_SHOWN[0].name}": POOLS_SHOWN[0],
        f"/v1/pools/{POOLS[0]}:report": REPORT,
        f"/v1/pools/{POOLS[0]}:slots": SlotPage(slots=SLOTS, next=None),
        f"/v1/groups/{GROUPS[2].name}": GROUPS[2],
        "/v1/groups": GroupPage(groups=GROUPS, next=None),
        "/v1/whoami": CALLER,
        "/v1/tokens": Tokens(tokens=TOKENS, next=None),
        "/v1/audit": AuditPage(entries=ENTRIES, next=None),
        "/v1/reporter-groups/ironic": REPORTERS,
        "/v1/reporter-groups/ironic-eu": REPORTERS_EU,
        "/v1/reporter-groups": ReporterGroupPage(groups=["ironic", "ironic-eu"], next=None),
        "/v1/reporter-groups/ironic/ghosts": GhostPage(ghosts=[PINS[0].node], next=None),
        "/v1/reporter-groups/ironic/nodes": NodePage(nodes=NODES, next=None),
        "/v1/reporter-groups/ironic/pins": PinPage(pins=PINS, next=None),
    }
    return shown.get(path)
