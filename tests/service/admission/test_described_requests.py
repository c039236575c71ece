"""Requests that say where they come from: idempotency keys, and reasons that name the holders."""

from pathlib import Path

import pytest
from msgspec import structs

from moorage.core.admission.model import Need
from moorage.core.admission.requests import LeaseRequest
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code
from moorage.core.ids import BookingId, ConsumerId, LeaseId, ProviderId
from moorage.service.admission.lease_cases import digest_of
from moorage.service.admission.service import Admission
from moorage.service.batch.ledger_share import LeaseAllocations, text_of
from tests.service.pools import (
    MINUTE,
    ask,
    pass_time,
    play,
    pool_put,
    refusal,
    spec,
    with_manual_clock,
)
from tests.service.running import Running
from tests.support import cluster

FIRST = {"host": "a", "pid": "1", "user": "x", "command": "make", "job": "1", "build": "http://x"}
SECOND_TRY = {"host": "b", "pid": "2"}
JOB = {"job": "4711", "host": "runner-7"}

REQUEST = LeaseRequest("alice", "k", (Need("p", 1),), labels={"team": "t", "site": "s"})


def taking(*classes: str) -> str:
    """Return allocations as they are stored: one unit of each class, in this order."""
    amounts = {ProviderId("r"): dict.fromkeys(classes, 1)}
    return text_of(LeaseAllocations(ConsumerId("c"), amounts, "shop", "alice"))


OTHER = {
    "owner": "bob",
    "needs": (Need("p", 1, wanted="region=eu"),),
    "ttl": 1,
    "hold": 1,
    "priority": 1,
    "labels": {"team": "t"},
    "patience": 1,
    "forced": True,
    "pull": True,
    "allocations": taking("VCPU"),
    "group": "g",
    "alternatives": ((Need("p", 1),), (Need("q", 1),)),
    "preemptible": 1,
    "booking": BookingId("b"),
    "borrow": 1,
}
"""What makes another request of `REQUEST`."""

SAME = {
    "key": "other",
    "reopen": True,
    "attended": True,
    "cancel_running": True,  # without a group it means nothing
    "in_order": True,  # nor does this without alternatives
    "heard_until": Instant(1),
    "roles": frozenset({"admin"}),
    "id": LeaseId("i"),
    "digest": "d",
}
"""What does not: it says how the request was sent, or what has become of it."""


def test_what_makes_another_request() -> None:
    """Each member of a request counts for its digest, or is known not to count."""
    assert {*OTHER, *SAME} == {*LeaseRequest.__struct_fields__}
    digest = digest_of(REQUEST)
    others = {digest_of(structs.replace(REQUEST, **{name: one})) for name, one in OTHER.items()}
    assert len(others - {digest}) == len(OTHER)
    assert {digest_of(structs.replace(REQUEST, **{name: one})) for name, one in SAME.items()} == {
        digest
    }


def test_the_order_of_members_makes_no_other_request() -> None:
    """Labels and allocations are objects, whose members have no order."""
    turned = structs.replace(REQUEST, labels={"site": "s", "team": "t"})
    assert digest_of(turned) == digest_of(REQUEST)
    one, other = (
        structs.replace(REQUEST, allocations=taking(*classes))
        for classes in (("DISK_GB", "VCPU"), ("VCPU", "DISK_GB"))
    )
    assert digest_of(one) == digest_of(other)


def test_digests_do_not_change() -> None:
    """Digests are stored with leases, and processes of other releases compare them."""
    stopped = structs.replace(REQUEST, **(OTHER | {"booking": None, "borrow": None}))
    booked = structs.replace(REQUEST, **(OTHER | {"preemptible": None}))
    whole = structs.replace(stopped, preemptible=None)
    grouped = structs.replace(whole, alternatives=())
    plain = structs.replace(grouped, group="")
    digests = [digest_of(one)[:12] for one in (REQUEST, plain, grouped, whole, booked, stopped)]
    assert digests == [
        "6c21acdbab61",
        "123d3d9fcfea",
        "81757b495ee5",
        "df7a9447b1d5",
        "cd687f18f134",
        "a030a1c0271d",
    ]


def test_how_a_request_chooses_counts() -> None:
    """With alternatives; so does whether it asks holders of its group to stop."""
    whole = structs.replace(REQUEST, **OTHER)
    for name in ("in_order", "cancel_running"):
        assert digest_of(structs.replace(whole, **{name: True})) != digest_of(whole)


def test_another_process_continues_an_attempt(tmp_path: Path) -> None:
    """Its own host and process id do not make it another request; any other label does."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "p", spec(5))
        first = await ask(admission, "k", "p", labels={**FIRST, "team": "t"})
        again = await ask(admission, "k", "p", labels={**SECOND_TRY, "team": "t"})
        assert again.lease.id == first.lease.id
        assert again.lease.labels == {**FIRST, "team": "t"}
        plain = await ask(admission, "k", "p", labels={"team": "t"})
        assert plain.lease.id == first.lease.id
        other = ask(admission, "k", "p", labels={**FIRST, "team": "u"})
        assert await refusal(other) is Code.KEY_REUSED

    play(f"sqlite:///{tmp_path}/m.sqlite", scenario)


@pytest.mark.parametrize("shared", [False, True], ids=["sqlite", "postgres"])
def test_reasons_name_holders_on_both_engines(tmp_path: Path, shared: bool) -> None:
    """Leases with one name count together; those without labels count for their owners."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "p", spec(6))
        for number in range(3):
            await ask(admission, f"{number}", "p", owner="ci", labels={**JOB, "pid": f"{number}"})
        await ask(admission, "plain", "p", owner="ci", units=2)
        await ask(admission, "odd", "p", owner="ci", labels={"holder": 'a "b", {}'})
        first = await ask(admission, "mine", "p")
        assert first.standing is not None
        assert first.standing.reason.endswith(
            ' are held by job 4711 on runner-7 (ci) (3), ci (2), a "b", {} (ci)'
        )

    play(cluster.fresh() if shared else f"sqlite:///{tmp_path}/m.sqlite", scenario)


def test_reasons_name_the_job(tmp_path: Path) -> None:
    """A reason says which job on which host holds the unit, and for how many minutes."""

    async def scenario(running: Running) -> None:
        admission = running.service.admission
        await pool_put(admission, "p", spec(1))
        await ask(admission, "held", "p", owner="ci", labels=JOB, ttl=60 * MINUTE)
        ticket = await ask(admission, "mine", "p", patience=60 * MINUTE)

        async def reason() -> str:
            seen = await admission.queries.lease(ticket.lease.id)
            assert seen.standing is not None
            return seen.standing.reason

        by = "first in line; limit: 1 of 1 unit of p is held by job 4711 on runner-7 (ci)"
        assert await reason() == by
        seen = []
        for _ in range(6):
            await pass_time(running, 20 * SECOND)
            seen.append((await reason()).removeprefix(by))
        assert seen == ["", "", " for 1m", " for 1m", " for 1m", " for 2m"]

    with_manual_clock(tmp_path, scenario)
