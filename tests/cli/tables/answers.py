"""The answers of a server on a busy night, always the same: 500 leases, 40 pools, agents, tokens.

They are of the types of the native API, so they change with it.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
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
    WaitingFor,
)
from moorage.wire.audit import AuditEntry, AuditPage
from moorage.wire.changes import Changes, PacingValue, PoolSpecValue
from moorage.wire.enums import State
from moorage.wire.fleet import AgentPage, GroupPage
from moorage.wire.pools.bookings import (
    BookedUnits,
    Booking,
    BookingPage,
    BookingWindow,
    Repeat,
)
from moorage.wire.pools.past import HistoryPoint, PoolHistory
from moorage.wire.pools.reports import OutcomeLine, PoolReport
from moorage.wire.pools.templates import PoolTemplate, PoolTemplateList
from moorage.wire.providers import ConsumerPage, ProviderPage
from moorage.wire.reporting import GhostPage, NodePage, PinPage, ReporterGroupPage
from moorage.wire.reshapes import ReshapePage
from moorage.wire.slots import Slot, SlotDrain, SlotPage
from moorage.wire.usages import UsagePage
from tests.cli.tables.building import NOW, before, built
from tests.cli.tables.fleet_answers import (
    AGENTS,
    GROUPS,
    NODES,
    PINS,
    REPORTERS,
    REPORTERS_EU,
    SUMS,
    sums,
)
from tests.cli.tables.ledger_answers import CONSUMERS, PROVIDERS, usages
from tests.cli.tables.reshape_answers import ENTRIES as RESHAPES
from tests.cli.tables.reshape_answers import SHOWN as RESHAPE

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


def id_at(at: datetime, number: int) -> str:
    """Return the id of a lease: it begins with the time."""
    milliseconds = int(at.timestamp() * 1000)
    return str(UUID(int=milliseconds << 80 | 7 << 76 | 2 << 62 | number % 499 * 0x9E3779B97F4A7C))


def lease(number: int, state: State = "granted") -> Lease:
    """Return a lease or ticket; a later one is younger."""
    at = before(seconds=(GRANTED + TICKETS - number) * 17.3)
    pool, labels, waiting = POOLS[number % 3], {}, None
    if number % 3 == 1:
        labels = {"holder": f"node-{number % 1000:04d}", "verb": "deploy", "image": "rhel-9.4"}
    elif number % 2:
        labels = {"job": f"{4711 + number}/e2e", "host": f"runner-{number % 40}", "pid": "71"}
        labels |= {"command": "make", "build": f"https://git.example/-/jobs/{number}"}
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


def with_alternatives(number: int) -> Lease:
    """Return a ticket that waits in several lines."""
    one = lease(number, "waiting")
    needs = NeedWanted(pool=POOLS[0], units=2, labels={"region": "eu"}), NeedWanted(pool=POOLS[1])
    any_of = [[NeedWanted(pool=POOLS[2])], [*needs]]
    waits = [
        WaitingFor(
            needs=needs,
            position=position,
            eta_seconds=eta,
            overdue=eta is None,
            code="limit",
            reason=reason.format(needs[0].pool),
        )
        for needs, position, eta, reason in zip(
            any_of, (1, 17), ((30.0, 90.0), None), REASONS, strict=False
        )
    ]
    best = waits[0]
    waiting = built(
        Waiting,
        position=best.position,
        eta_seconds=best.eta_seconds,
        reason=f"any of 2: {POOLS[2]}: {waits[0].reason} | {POOLS[0]}: {waits[1].reason}",
        alternatives=waits,
    )
    lines = [need for needs in any_of for need in needs]
    return replace(one, needs=lines, any_of=any_of, choose="least_loaded", waiting=waiting)


WITH_ALTERNATIVES = GRANTED + 3
LEASES = [
    with_alternatives(number)
    if number == WITH_ALTERNATIVES
    else lease(number, "granted" if number < GRANTED else "waiting")
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
        paused_by="alice" if number == 7 else "",
        occupied=limit if busy else number,
        waiting=number + 1 if busy else 0,
        free=0 if busy else limit - number,
        over=number == 10,
        unheard=2 if number == 5 else 0,
        first=lease(GRANTED + number % TICKETS, "waiting") if busy else None,
    )


PAUSED = "deploy/rack-7"

POOLS_SHOWN = sorted((pool(number) for number in range(40)), key=lambda one: one.name)


def template(name: str, pools: int, pacing: PacingValue | None = None) -> PoolTemplate:
    """Return a template of pools with one unit each."""
    hold = None if pacing is None else 2_700.0
    spec = built(PoolSpecValue, limit=1, ttl=60.0, hold=hold, pacing=pacing, order="newest")
    return built(PoolTemplate, name=name, pool=spec, idle=3_600.0, pools_max=1_000, pools=pools)


TEMPLATES = [
    template("ci/pull-request-*", 712),
    template("deploy/*", 3, PacingValue(interval=24.0, burst=5, jitter=0.0)),
]


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
CHANGED: tuple[tuple[dict[str, Any] | None, dict[str, Any]], ...] = (
    ({"owner": "ci/prow", "key": "k", "state": "granted"}, {"reason": "the rack burns"}),
    (
        {"limit": 40, "hold": 1_200.0, "pacing": {"interval": 30.0, "burst": 4, "jitter": 0.0}},
        {"limit": 50, "hold": 1_200.0, "pacing": {"interval": 24.0, "burst": 5, "jitter": 0.0}},
    ),
    ({"policy": "in_service", "reason": ""}, {"policy": "no_provision", "reason": "new fans"}),
)
"""States before and after what is in the audit log."""

RACK_7 = "7f1d6c0e-5a3b-4c83-9a61-0f1f5f0d7d11"
ENTRIES = [
    AuditEntry(
        at=before(seconds=number * number * 613 + 5),
        id=f"{number:012x}",
        who=("admin", "night-shift-operator")[number % 2],
        token_id=None,
        role="operator",
        action=("lease.revoke", "pool.put", "agent.drain")[number % 3],
        target=("01957b9e-b0e3-7929-9dbb-8ab3a75f0605", "install/azure-4", RACK_7)[number % 3],
        name=(None, None, "rack-7")[number % 3],
        before=CHANGED[number % 3][0],
        after=CHANGED[number % 3][1],
    )
    for number in range(8)
]
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
PAST = PoolHistory(
    as_of="1.4711",
    pool=POOLS[0],
    units=50,
    asked_seconds=86_400.0,
    covered_seconds=14_400.0,
    cut=False,
    step_seconds=3_600.0,
    points=[
        HistoryPoint(
            at=before(hours=4 - number),
            occupied_low=7 * number,
            occupied_high=50 - number,
            waiting=number * number * 60,
            granted=150 - number,
        )
        for number in range(4)
    ],
)
SLOTS = [slot(number) for number in range(1, 13)]


def booking(number: int, windows: int, **more: Any) -> Booking:
    """Return a booking of some hours of as many nights; its first window runs, or is to come."""
    starts = [before(days=-night, hours=1 - 5 * number) for night in range(windows)]
    shown = [
        BookingWindow(
            start=start,
            end=start + timedelta(hours=4),
            state="taken" if start < NOW else "coming",
        )
        for start in starts
    ]
    state = "running" if starts[0] < NOW else "coming"
    return built(
        Booking,
        id=id_at(before(days=3 - number), number),
        state=state,
        start=shown[0].start,
        end=shown[-1].end,
        next=shown[0],
        windows=shown,
        lead=600.0,
        **more,
    )


BOOKINGS = [
    booking(
        0,
        windows=3,
        owner="ci/prow",
        needs=[BookedUnits(pool=POOLS[0], units=12), BookedUnits(pool=POOLS[2], units=1)],
        repeat=Repeat(every="day", zone="Europe/Berlin", count=3),
        no_show=900.0,
        note="the release of the quarter, and whatever has to be built again because of it",
    ),
    booking(
        1,
        windows=1,
        owner="night-shift-operator",
        needs=[BookedUnits(pool=POOLS[1], units=None)],
        closure=True,
        note="new fans",
    ),
]


def answer_to(path: str, state: str | None, by: str = "class") -> Any:
    """Return the answer to a GET; None: there is nothing."""
    if path == "/v1/leases":
        found = [one for one in [*LEASES, *ENDED] if one.state == state]
        return LeasePage(leases=found, next=None)
    shown: dict[str, Any] = {f"/v1/leases/{one.id}": one for one in (*ENDED, *LEASES)}
    shown |= {
        "/v1/capacity": sums(by if by in SUMS else "class"),
        "/v1/providers": ProviderPage(providers=PROVIDERS, next=None, as_of="1.4711"),
        "/v1/usages": UsagePage(lines=usages(by), next=None, as_of="1.4711"),
        "/v1/consumers": ConsumerPage(consumers=CONSUMERS, next=None, as_of="1.4711"),
        f"/v1/consumers/{CONSUMERS[1].uuid}": CONSUMERS[1],
        "/v1/watch": Changes(changes=[], next="1.4711"),
        "/v1/pools": PoolPage(pools=POOLS_SHOWN, next=None),
        "/v1/pool-templates": PoolTemplateList(templates=TEMPLATES),
        f"/v1/pool-templates/{TEMPLATES[1].name}": TEMPLATES[1],
        "/v1/agents": AgentPage(agents=AGENTS, next=None),
        f"/v1/agents/{AGENTS[2].id}": AGENTS[2],
        f"/v1/pools/{POOLS_SHOWN[0].name}": POOLS_SHOWN[0],
        f"/v1/pools/{PAUSED}": next(one for one in POOLS_SHOWN if one.name == PAUSED),
        f"/v1/pools/{POOLS[0]}:history": PAST,
        f"/v1/pools/{POOLS[0]}:report": REPORT,
        f"/v1/pools/{POOLS[0]}:slots": SlotPage(slots=SLOTS, next=None),
        "/v1/bookings": BookingPage(bookings=BOOKINGS, next=None),
        f"/v1/bookings/{BOOKINGS[0].id}": BOOKINGS[0],
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
        "/v1/reshapes": ReshapePage(reshapes=RESHAPES, next=None),
        f"/v1/reshapes/{RESHAPE.id}": RESHAPE,
        "/v1/reporter-groups/ironic/pins": PinPage(pins=PINS, next=None),
    }
    return shown.get(path)
