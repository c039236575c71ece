"""Leases over HTTP: granting, waiting, renewing, releasing; permissions and refusals."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from uuid import uuid4

from tests.faces.v1.leasing import ask, comparable, lease_action, make_pool, refused, waiting_ticket
from tests.faces.v1.native import Native, Response


def in_thread(call: Callable[[], Response]) -> Future[Response]:
    """Make a call in a separate thread."""
    executor = ThreadPoolExecutor(1)
    future = executor.submit(call)
    executor.shutdown(wait=False)
    return future


def test_a_lease_is_granted_at_once(native: Native, pool: str) -> None:
    """The 201 has all properties; a repeated request returns the same, token included."""
    wanted = {"key": "k1", "labels": {"job": "17"}, "priority": 3, "hold": 60.0, "ttl": 20.0}
    made = ask(native, pool, **wanted)
    assert made.status == 201
    lease = made.body
    assert {name: lease[name] for name in wanted} == wanted
    assert (lease["state"], lease["owner"], lease["slots"]) == ("granted", "admin", {})
    assert lease["needs"] == [{"pool": pool, "units": 1, "labels": {}}]
    assert [part.isdigit() for part in lease["token"].split(".")] == [True] * 3
    assert lease["asked_at"] <= lease["granted_at"] < lease["expires_at"] < lease["hold_until"]
    for name in ("ended_at", "cause", "waiting"):
        assert lease[name] is None
    again = ask(native, pool, **wanted)
    assert (again.status, again.body["id"], again.body["token"]) == (
        201,
        lease["id"],
        lease["token"],
    )
    other = ask(native, pool, **(wanted | {"priority": 4}))
    assert refused(other) == (409, "key_reused")
    answer = native.ask("GET", f"/v1/pools/{pool}").body
    assert (answer["occupied"], answer["free"], answer["waiting"]) == (1, 0, 0)


def test_a_ticket_waits_and_is_granted(native: Native, pool: str) -> None:
    """The 202 has position and reason; a long poll is answered as soon as a unit is free."""
    holder = ask(native, pool).body
    ticket = ask(native, pool)
    assert ticket.status == 202
    assert (ticket.body["state"], ticket.body["token"]) == ("waiting", None)
    answer = ticket.body["waiting"]
    names = {"position", "eta_seconds", "overdue", "code", "reason", "alternatives", "share"}
    assert set(answer) == names
    assert answer["position"] == 1
    assert answer["reason"] and answer["code"]
    assert native.ask("GET", f"/v1/pools/{pool}").body["first"] == ticket.body
    address = f"/v1/leases/{ticket.body['id']}"
    assert native.ask("GET", f"{address}?wait=0.01").body["state"] == "waiting"
    poll = in_thread(lambda: native.ask("GET", f"{address}?wait=30"))
    asked = in_thread(lambda: ask(native, pool, query="?wait=30"))
    assert native.ask("DELETE", f"/v1/leases/{holder['id']}").status == 200
    granted = poll.result(20)
    assert (granted.status, granted.body["state"]) == (200, "granted")
    assert comparable(granted.body["token"]) > comparable(holder["token"])
    assert native.ask("DELETE", address).body["cause"] == "released"
    assert asked.result(20).status == 201


def test_a_gang_gets_all_units_or_none(native: Native, pool: str) -> None:
    """A lease of several pools occupies no unit of them while it waits."""
    other = make_pool(native)
    holder = ask(native, other)
    gang = ask(native, pool, other)
    assert gang.status == 202
    assert native.ask("GET", f"/v1/pools/{pool}").body["occupied"] == 0
    native.ask("DELETE", f"/v1/leases/{holder.body['id']}")
    assert native.ask("GET", f"/v1/leases/{gang.body['id']}?wait=20").body["state"] == "granted"


def test_a_repeated_release_is_harmless(native: Native, pool: str) -> None:
    """The second response shows the end as it was; the key still finds the lease."""
    made = ask(native, pool, key="twice")
    address = f"/v1/leases/{made.body['id']}"
    first = native.ask("DELETE", f"{address}?token={made.body['token']}")
    assert (first.body["state"], first.body["cause"]) == ("ended", "released")
    assert native.ask("DELETE", address).body["ended_at"] == first.body["ended_at"]
    again = ask(native, pool, key="twice")
    assert (again.status, again.body["id"]) == (200, made.body["id"])
    for word in ("renew", "retry"):
        body = {"key": "new"} if word == "retry" else {}
        assert refused(lease_action(native, made.body["id"], word, **body)) == (409, "lease_ended")
    patched = native.ask("PATCH", address, {"hold": 5})
    assert refused(patched) == (409, "lease_ended")


def test_a_ticket_is_withdrawn(native: Native, pool: str) -> None:
    """A ticket is withdrawn by its owner, or because it was not polled for its patience."""
    ticket = waiting_ticket(native, pool)
    gone = native.ask("DELETE", f"/v1/leases/{ticket.body['id']}").body
    assert (gone["state"], gone["cause"]) == ("ended", "withdrawn")
    after = native.ask("GET", "/v1/watch?wait=0").body["next"]
    silent = ask(native, pool, patience=1.0)
    causes: list[str] = []
    while not causes:
        seen = native.ask("GET", f"/v1/watch?kinds=lease&after={after}&wait=20").body
        after = seen["next"]
        causes = [
            change["value"]["cause"]
            for change in seen["changes"]
            if change["key"] == silent.body["id"] and change["value"]["cause"]
        ]
    assert causes == ["unheard"]


def test_holders_renew_and_hold(native: Native, pool: str) -> None:
    """A renewal extends the TTL, a new hold moves the end; the end of a hold ends the lease."""
    made = ask(native, pool, ttl=20.0).body
    assert native.ask("POST", f"/v1/leases/{made['id']}/renew").status == 200
    renewed = native.ask("POST", f"/v1/leases/{made['id']}/renew", {"token": made["token"]})
    assert renewed.status == 200
    assert renewed.body["expires_at"] > made["expires_at"]
    address = f"/v1/leases/{made['id']}"
    assert native.ask("PATCH", address, {"hold": 60}).body["hold_until"] is not None
    assert native.ask("PATCH", address, {"hold": None}).body["hold_until"] is None
    next_one = ask(native, pool)
    assert next_one.status == 202
    native.ask("PATCH", address, {"hold": 0.05})
    granted = native.ask("GET", f"/v1/leases/{next_one.body['id']}?wait=20").body
    assert granted["state"] == "granted"
    assert native.ask("GET", address).body["cause"] == "hold_over"


def test_a_retry_is_a_new_lease_in_one_step(native: Native, pool: str) -> None:
    """No other ticket gets the unit in between; the old lease has ended."""
    made = ask(native, pool).body
    ask(native, pool)
    again = lease_action(native, made["id"], "retry", key="second", token=None)
    assert (again.status, again.body["state"]) == (201, "granted")
    assert again.body["id"] != made["id"]
    assert again.body["token"] != made["token"]
    assert native.ask("GET", f"/v1/leases/{made['id']}").body["cause"] == "retried"


def test_an_outdated_fencing_token_is_refused(native: Native, pool: str) -> None:
    """An outdated fencing token is refused; anyone may verify whether a token is current."""
    made = ask(native, pool).body
    stale = "1.1.99"
    lease, token = made["id"], made["token"]
    for method, path, body in (
        ("POST", "/renew", {"token": stale}),
        ("POST", "/outcome", {"token": stale, "result": "ok"}),
        ("POST", "/retry", {"token": stale, "key": "x"}),
        ("PATCH", "", {"token": stale, "hold": 1}),
        ("DELETE", f"?token={stale}", None),
    ):
        answer = native.ask(method, f"/v1/leases/{lease}{path}", body)
        assert refused(answer) == (409, "token_stale"), path
    anybody = native.token("reader")
    verify = f"/v1/leases/verify?pool={pool}&token="
    current = native.ask("GET", verify + token, token=anybody).body
    assert (current["current"], current["lease"]) == (True, lease)
    assert current["expires_at"] is not None
    native.ask("DELETE", f"/v1/leases/{lease}")
    gone = {"current": False, "lease": None, "expires_at": None}
    for one in (token, stale, "nonsense"):
        assert native.ask("GET", verify + one, token=anybody).body == gone


def test_owners_and_others(native: Native, pool: str) -> None:
    """Only owner and operators may use a lease; others see it without its token."""
    eve, bob = native.token("user", "p1"), native.token("user", "p2")
    operator, reader = native.token("operator"), native.token("reader", "p1")
    made = ask(native, pool, token=eve).body
    assert made["owner"] == "p1/user"
    address = f"/v1/leases/{made['id']}"
    for token, sees in ((eve, True), (operator, True), (bob, False), (reader, False)):
        assert (native.ask("GET", address, token=token).body["token"] is not None) is sees
        (listed,) = native.ask("GET", f"/v1/leases?pool={pool}", token=token).body["leases"]
        assert (listed["token"] is not None) is sees
    ticket = ask(native, pool, token=eve).body
    for answer in (
        lease_action(native, made["id"], "renew", token=bob),
        lease_action(native, made["id"], "outcome", token=bob, result="ok"),
        lease_action(native, made["id"], "retry", token=bob, key="mine"),
        native.ask("DELETE", address, token=bob),
        native.ask("PATCH", address, {"hold": 1}, token=bob),
        native.ask("GET", f"/v1/leases/{ticket['id']}?wait=1", token=bob),
    ):
        assert refused(answer) == (403, "holder_mismatch")
    assert refused(lease_action(native, made["id"], "revoke", token=eve)) == (403, "forbidden")
    assert lease_action(native, made["id"], "renew", token=operator).status == 200
    revoked = lease_action(native, made["id"], "revoke", token=operator, reason="it is late").body
    assert (revoked["cause"], revoked["state"]) == ("revoked", "ended")
    assert "late" in revoked["detail"]
    late = lease_action(native, made["id"], "renew", token=eve)
    assert refused(late) == (409, "lease_ended")
    assert "revoked" in late.body["detail"]
    newest = native.ask("GET", "/v1/audit?limit=1").body["entries"][0]
    assert (newest["action"], newest["target"]) == ("lease.revoke", made["id"])
    same_key = ask(native, pool, token=bob, key=made["key"])
    assert same_key.body["id"] != made["id"]


def test_forced_leases_are_counted(native: Native, pool: str) -> None:
    """An operator's lease may exceed the limit; it is audited and counts as occupied."""
    assert ask(native, pool).status == 201
    user = native.token("user", "p")
    assert refused(ask(native, pool, token=user, force=True)) == (403, "forbidden")
    operator = native.token("operator", name="once")
    forced = ask(native, pool, force=True, token=operator)
    assert (forced.status, forced.body["forced"]) == (201, True)
    answer = native.ask("GET", f"/v1/pools/{pool}").body
    assert (answer["occupied"], answer["free"], answer["over"]) == (2, -1, True)
    newest = native.ask("GET", "/v1/audit?limit=1").body["entries"][0]
    assert (newest["action"], newest["target"]) == ("lease.force", forced.body["id"])
    demoted = native.token("service", name="once")
    again = lease_action(native, forced.body["id"], "retry", key="again", token=demoted)
    assert refused(again) == (403, "forbidden")


def test_outcomes_are_reported(native: Native, pool: str) -> None:
    """Reported outcomes are in the pool's report and in the change feed."""
    after = native.ask("GET", "/v1/watch?wait=0").body["next"]
    made = ask(native, pool).body
    assert (
        lease_action(native, made["id"], "outcome", result="throttled", detail="429").status == 200
    )
    ended = native.ask("DELETE", f"/v1/leases/{made['id']}").body
    assert (ended["state"], ended["outcome"]) == ("ended", "throttled")
    again = lease_action(native, made["id"], "outcome", result="throttled")
    aged = {"record_age": again.body["record_age"]}
    assert (again.status, again.body) == (200, ended | aged)
    assert refused(lease_action(native, made["id"], "outcome", result="ok")) == (
        409,
        "outcome_told",
    )
    answer = native.ask("GET", f"/v1/pools/{pool}:report").body
    assert (answer["pool"], answer["leases"], answer["causes"]) == (pool, 1, {"released": 1})
    assert len(answer["waited"]) == len(answer["held"]) == 3
    (line,) = answer["outcomes"]
    assert (line["limit"], line["ok"], line["failed"], line["throttled"]) == (1, 0, 0, 1)
    seen = native.ask("GET", f"/v1/watch?kinds=outcome,pool,lease&after={after}").body["changes"]
    (outcome,) = (one["value"] for one in seen if one["kind"] == "outcome")
    assert (outcome["pool"], outcome["result"], outcome["detail"]) == (pool, "throttled", "429")
    leases = [one["value"] for one in seen if one["kind"] == "lease"]
    assert [lease["state"] for lease in leases] == ["granted", "granted", "ended"]
    assert not any({"token", "allocations", "digest"} & set(lease) for lease in leases)
    assert [one["value"]["occupied"] for one in seen if one["kind"] == "pool"] == [1, 0]


def test_impossible_requests_are_refused_at_once(native: Native) -> None:
    """Requests above the limit, for unknown pools or for a full line are refused at once."""
    small = make_pool(native, queue_max=1)
    needs = [{"pool": small, "units": 2}]
    assert refused(ask(native, needs=needs)) == (422, "units_above_limit")
    assert refused(ask(native, "no/such")) == (422, "pool_unknown")
    waiting_ticket(native, small)
    full = ask(native, small)
    assert refused(full) == (429, "queue_full")
    assert int(full.headers["retry-after"]) >= 1


def test_allocations_come_and_go_with_the_lease(native: Native, pool: str) -> None:
    """A lease's allocations are claimed with the grant and released at its end."""
    provider, consumer = native.provider(str(uuid4())), str(uuid4())
    path = f"/resource_providers/{provider}"
    offered = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 4}}}
    latest = {"OpenStack_API_Version": "placement latest"}
    assert native.ask("PUT", f"{path}/inventories", offered, **latest).status == 200
    wish = {
        "consumer": consumer,
        "allocations": {provider: {"VCPU": 3}},
        "project_id": "p",
        "user_id": "u",
    }
    user = native.token("user", "p")
    assert refused(ask(native, pool, token=user, allocations=wish)) == (403, "forbidden")
    made = ask(native, pool, allocations=wish)
    assert made.status == 201
    used = native.ask("GET", f"{path}/usages", **latest).body["usages"]
    assert used == {"VCPU": 3}
    native.ask("DELETE", f"/v1/leases/{made.body['id']}")
    assert native.ask("GET", f"{path}/usages", **latest).body["usages"] == {"VCPU": 0}
    one = {"VCPU": 1}
    twice = {provider: one, provider.upper(): one}
    for bad in ({}, {provider: {}}, {provider: {"VCPU": 0}}, {"x": one}, twice):
        answer = ask(native, pool, allocations=wish | {"allocations": bad})
        assert answer.status == 400, bad
    for odd in (
        {"consumer_type": "a b"},
        {"consumer_type": "\x1b[2J"},
        {"project_id": "a\nb"},
        {"user_id": "\x9b31m"},
    ):
        answer = ask(native, pool, allocations=wish | odd)
        assert refused(answer) == (400, "invalid"), odd


def test_leases_are_listed(native: Native, pool: str) -> None:
    """By pool, state and owner, in pages, in order of arrival."""
    user = native.token("user", "listing")
    asked = [ask(native, pool, token=user).body["id"] for _ in range(5)]
    page = native.ask("GET", f"/v1/leases?pool={pool}&limit=3").body
    rest = native.ask("GET", f"/v1/leases?pool={pool}&limit=3&cursor={page['next']}").body
    assert [one["id"] for one in page["leases"] + rest["leases"]] == asked
    assert rest["next"] is None
    of_user = native.ask("GET", "/v1/leases?owner=listing/user&state=waiting").body["leases"]
    assert [one["id"] for one in of_user] == asked[1:]
    assert [one["waiting"]["position"] for one in of_user] == [1, 2, 3, 4]
    answer = native.ask("GET", "/v1/leases?state=lost")
    assert refused(answer) == (400, "refused")
    assert "lost" in answer.body["detail"]


def test_the_estimate_of_a_hold_is_its_end(native: Native) -> None:
    """The latest end of the hold counts, even without history; without a hold it is unknown."""
    pool = make_pool(native)
    holder = ask(native, pool, hold=600.0).body

    def eta() -> list[float] | None:
        """Return the present estimate of the first ticket; a new request recomputes it."""
        ask(native, pool, hold=60.0)
        answer = native.ask("GET", f"/v1/pools/{pool}").body["first"]["waiting"]
        assert answer["overdue"] is False
        found: list[float] | None = answer["eta_seconds"]
        return found

    def move(hold: float | None) -> None:
        wanted = {"token": holder["token"], "hold": hold}
        assert native.ask("PATCH", f"/v1/leases/{holder['id']}", wanted).status == 200

    found = eta()
    assert found is not None
    assert 500 < found[0] == found[1] <= 600
    again = eta()
    assert again is not None
    assert again[0] < found[0]
    move(300.0)
    found = eta()
    assert found is not None
    assert 200 < found[0] == found[1] <= 300
    move(None)
    assert eta() is None


def test_waiting_for_the_end_of_a_lease(native: Native, pool: str) -> None:
    """Owner and operators can wait for the end; a grant does not end this wait."""
    lease = ask(native, pool).body["id"]
    ticket = ask(native, pool, patience=600.0).body["id"]
    assert native.ask("GET", f"/v1/leases/{lease}?wait=0.01&until=ended").body["state"] == "granted"
    ends = [
        in_thread(lambda one=one: native.ask("GET", f"/v1/leases/{one}?wait=30&until=ended"))
        for one in (lease, ticket)
    ]
    assert lease_action(native, lease, "revoke", reason="it is over").status == 200
    first = ends[0].result(20).body
    assert (first["state"], first["cause"], first["detail"]) == ("ended", "revoked", "it is over")
    assert native.ask("GET", f"/v1/leases/{ticket}").body["state"] == "granted"
    assert native.ask("DELETE", f"/v1/leases/{ticket}").status == 200
    assert ends[1].result(20).body["cause"] == "released"
    again = native.ask("GET", f"/v1/leases/{ticket}?wait=30&until=ended")
    assert (again.status, again.body["state"]) == (200, "ended")


def test_permissions_of_waiting_for_an_end(native: Native, pool: str) -> None:
    """Owner and operators may, nobody else; `until` has only two values."""
    lease = ask(native, pool, token=native.token("user", "p1")).body["id"]
    other, operator = native.token("user", "p2"), native.token("operator")
    address = f"/v1/leases/{lease}?wait=0.01&until=ended"
    assert refused(native.ask("GET", address, token=other)) == (403, "holder_mismatch")
    assert native.ask("GET", address, token=operator).status == 200
    assert native.ask("GET", f"/v1/leases/{lease}?until=never").status == 400
    assert native.ask("POST", "/v1/leases?until=ended", {"needs": [], "key": "k"}).status == 400


def test_a_revoked_unit_has_a_lock_delay(native: Native) -> None:
    """The lock-delay is shown next to the cooldown, and the unit is counted as resting."""
    pool = make_pool(native, lock_delay=600.0)
    assert native.ask("GET", f"/v1/pools/{pool}").body["lock_delay"] == 600.0
    lease = ask(native, pool).body["id"]
    lease_action(native, lease, "revoke", reason="")
    answer = native.ask("GET", f"/v1/pools/{pool}").body
    assert (answer["occupied"], answer["resting"], answer["free"]) == (0, 1, 0)
    assert ask(native, pool).body["waiting"]["code"] == "resting"
