"""Every call of the typed admission client, against a real server."""

from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from uuid import uuid4

import pytest

from moorage.client.admission import Admission
from moorage.client.ledger import Ledger
from moorage.client.transport import RefusedError, Transport
from moorage.wire.admin import TokenWanted
from moorage.wire.admission import Lease, LeaseWanted, NeedWanted, Pacing, PoolWanted
from moorage.wire.changes import LeaseValue, OutcomeValue, PoolValue
from tests.support.warm import serve


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Return the URL of a server and its administrator's token."""
    database = tmp_path_factory.mktemp("admission") / "moorage.sqlite"
    with serve(database, "--no-access-log") as server:
        yield server.url, Path(f"{database}.token").read_text().strip()


@pytest.fixture
def admission(served: tuple[str, str]) -> Admission:
    """Return the administrator's client."""
    return Admission(Transport(*served))


def request_for(*pools: str, **wanted: object) -> LeaseWanted:
    """Return a request for a unit of each pool, with a new key."""
    needs = [NeedWanted(pool=pool) for pool in pools]
    return LeaseWanted(**{"needs": needs, "key": str(uuid4()), **wanted})  # type: ignore[arg-type] # as the test says


def test_pools(admission: Admission) -> None:
    """Pools are created, listed, changed, paused and deleted; names may contain slashes."""
    wanted = PoolWanted(limit=10, hold=60.0, labels={"a": "b"}, generation=0)
    made = admission.pool_put("pools/one", wanted)
    assert (made.name, made.limit, made.labels) == ("pools/one", 10, {"a": "b"})
    assert made.pacing == Pacing(interval=6.0, burst=1)
    changed = admission.pool_put("pools/one", PoolWanted(limit=5, generation=made.generation))
    assert (changed.limit, changed.pacing, changed.generation) == (5, None, 2)
    assert admission.pool("pools/one") == changed
    assert changed in list(admission.pools())
    assert admission.pool_pause("pools/one").paused is True
    assert admission.pool_resume("pools/one").paused is False
    assert admission.pool_report("pools/one").leases == 0
    admission.pool_delete("pools/one")
    with pytest.raises(RefusedError) as refused:
        admission.pool("pools/one")
    assert (refused.value.status, refused.value.code) == (404, "pool_not_found")


def test_all_calls_of_a_lease(admission: Admission) -> None:
    """A lease is granted, verified, renewed, held, retried, reported on and released."""
    admission.pool_put("whole", PoolWanted(limit=1))
    asked = request_for("whole", ttl=30.0, labels={"job": "1"})
    lease = admission.ask(asked)
    assert (lease.state, lease.ttl, lease.labels) == ("granted", 30.0, {"job": "1"})
    assert lease.token is not None
    assert admission.ask(asked).token == lease.token
    assert admission.verify("whole", lease.token).lease == lease.id
    assert admission.renew(lease.id, lease.token).expires_at is not None
    assert admission.hold(lease.id, 600.0).hold_until is not None
    assert admission.hold(lease.id, None, lease.token).hold_until is None
    second = admission.retry(lease.id, "second", lease.token)
    assert (second.state, second.needs) == ("granted", lease.needs)
    assert admission.verify("whole", lease.token).current is False
    admission.outcome(second.id, "ok", "all is well", second.token)
    assert admission.release(second.id, second.token).cause == "released"
    report = admission.pool_report("whole")
    assert (report.causes, [line.ok for line in report.outcomes]) == (
        {"released": 1, "retried": 1},
        [1],
    )


def test_several_processes_share_a_lease(admission: Admission) -> None:
    """They write its record, release what they have seen, use its key again, and requeue it."""
    admission.pool_put("shared", PoolWanted(limit=1))
    wanted = request_for("shared", key="host-1/deploy", pull=True, reopen=True)
    lease = admission.ask(wanted)
    assert (lease.record, lease.record_version) == (None, 0)
    written = admission.record_put(lease.id, {"sent": ["a"], "n": None}, 0, lease.token)
    assert (written.record, written.record_version) == ({"sent": ["a"], "n": None}, 1)
    with pytest.raises(RefusedError) as refused:
        admission.release(lease.id, lease.token, record_version=0)
    assert refused.value.code == "record_changed"
    ticket = admission.retry(lease.id, lease.key, requeue=True, record_version=1)
    assert (ticket.state, ticket.key) == ("waiting", lease.key)
    assert admission.ask(wanted).id == ticket.id
    assert admission.release(ticket.id, record_version=0).cause == "released"
    assert admission.ask(wanted).state == "granted"
    keys = [one.key for one in admission.leases(owner="admin", key_prefix="host-1/")]
    assert keys == sorted(keys, key=lambda key: key == "host-1/deploy")
    assert len(keys) == 3


def test_a_ticket_waits_for_its_grant(admission: Admission) -> None:
    """A long poll is answered as soon as the unit is free."""
    admission.pool_put("waited", PoolWanted(limit=1))
    holder = admission.ask(request_for("waited"))
    ticket = admission.ask(request_for("waited"))
    assert ticket.waiting is not None
    assert (ticket.state, ticket.waiting.position) == ("waiting", 1)
    answer: list[Lease] = []
    threads = [
        Thread(target=lambda: answer.append(admission.lease(ticket.id, wait=30.0))),
        Thread(target=lambda: answer.append(admission.ask(request_for("waited"), wait=30.0))),
    ]
    for thread in threads:
        thread.start()
    admission.release(holder.id)
    threads[0].join(20)
    assert [(one.id, one.state) for one in answer] == [(ticket.id, "granted")]
    assert admission.revoke(ticket.id, "it was enough").cause == "revoked"
    threads[1].join(20)
    assert answer[1].state == "granted"


def test_leases_are_listed(admission: Admission) -> None:
    """All leases are listed by pool and state, page by page."""
    admission.pool_put("listed", PoolWanted(limit=2))
    asked = [admission.ask(request_for("listed")).id for _ in range(5)]
    assert [lease.id for lease in admission.leases("listed")] == asked
    waiting = admission.leases_page("listed", "waiting", "admin", limit=2)
    assert [lease.id for lease in waiting.leases] == asked[2:4]
    rest = admission.leases_page("listed", "waiting", "admin", cursor=waiting.next)
    assert [lease.id for lease in rest.leases] == asked[4:]


def test_refusals_have_codes(served: tuple[str, str], admission: Admission) -> None:
    """A user cannot act on another user's lease, and a full line says when to retry."""
    admission.pool_put("refused", PoolWanted(limit=1, queue_max=1))
    ledger = Ledger(Transport(*served))
    users = []
    for name in ("eve", "bob"):
        made = ledger.token_create(TokenWanted(name=name, role="user", project_id=name))
        users.append(Admission(Transport(served[0], made.token)))
    lease = users[0].ask(request_for("refused"))
    assert (lease.owner, lease.state) == ("eve/eve", "granted")
    assert users[1].lease(lease.id).token is None
    users[1].ask(request_for("refused"))
    for act, status, code in (
        (lambda: users[1].release(lease.id), 403, "holder_mismatch"),
        (lambda: users[0].ask(request_for("refused")), 429, "queue_full"),
        (lambda: users[0].renew(lease.id, "1.1.99"), 409, "token_stale"),
        (lambda: users[0].pool_pause("refused"), 403, "forbidden"),
    ):
        with pytest.raises(RefusedError) as refused:
            act()
        assert (refused.value.status, refused.value.code) == (status, code)
        assert (refused.value.retry_after is not None) is (status == 429)


def test_changes_of_admission_are_typed(served: tuple[str, str], admission: Admission) -> None:
    """The change feed has typed pools, leases and outcomes, without fencing tokens."""
    watch = Ledger(Transport(*served)).watch("1.0", ["pool", "lease", "outcome"])
    admission.pool_put("watched", PoolWanted(limit=1, hold=60.0))
    lease = admission.ask(request_for("watched"))
    admission.outcome(lease.id, "ok")
    mine = []
    for change in watch:
        if "watched" in change.key or change.key == lease.id:
            mine.append(change)
        if change.kind == "outcome" and change.key == lease.id:
            watch.close()
    kinds = [type(change.value) for change in mine]
    assert set(kinds) == {PoolValue, LeaseValue, OutcomeValue}
    pool, granted = mine[0].value, next(one.value for one in mine if one.kind == "lease")
    assert (pool.spec.limit, pool.spec.pacing.interval) == (1, 60.0)
    assert (granted.id, granted.state, granted.needs[0].pool) == (lease.id, "granted", "watched")
