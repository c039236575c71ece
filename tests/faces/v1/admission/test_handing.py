"""Leases that change hands and leases that are kept for inspection, over HTTP."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from tests.faces.v1.leasing import ask, comparable, lease_action, make_pool, refused
from tests.faces.v1.native import Native
from tests.faces.v1.test_actions import act, preview


@pytest.fixture
def key() -> str:
    """Return a key that no other test has used."""
    return str(uuid4())


@pytest.fixture
def ann(native: Native) -> str:
    """Return the token of a user."""
    return native.token("user", "shop", "ann")


@pytest.fixture
def bob(native: Native) -> str:
    """Return the token of another user, of another project."""
    return native.token("user", "bank", "bob")


def read(native: Native, lease: str, token: str | None = None) -> dict[str, Any]:
    """Return a lease."""
    found: dict[str, Any] = native.ask("GET", f"/v1/leases/{lease}", token=token).body
    return found


def actions(native: Native, lease: str) -> list[tuple[str, str]]:
    """Return the audited actions on a lease, the oldest first, and who took them."""
    entries = native.ask("GET", f"/v1/audit?target={lease}").body["entries"]
    return [(one["action"], one["who"]) for one in reversed(entries)]


def test_a_lease_changes_hands(native: Native, ann: str, bob: str, key: str) -> None:
    """Offered, listed for the receiver, accepted; each step is in the audit log."""
    pool = make_pool(native)
    old = ask(native, pool, token=ann, labels={"host": "h", "disk": "sda"}).body
    offered = lease_action(native, old["id"], "offer", token=ann, to="bank/bob", lasts=60.0)
    assert offered.status == 200 and offered.body["offer"]["to"] == "bank/bob"
    listed = native.ask("GET", "/v1/leases?offered=true", token=bob).body["leases"]
    assert [one["id"] for one in listed] == [old["id"]]
    assert native.ask("GET", "/v1/leases?offered=true", token=ann).body["leases"] == []
    assert read(native, old["id"], ann)["state"] == "granted"
    answer = lease_action(native, old["id"], "accept", token=bob, key=key, labels={"job": "j"})
    new = answer.body
    assert (answer.status, new["owner"], new["taken_from"]) == (201, "bank/bob", old["id"])
    assert new["labels"] == {"disk": "sda", "job": "j"}
    assert comparable(new["token"]) > comparable(old["token"])
    again = lease_action(native, old["id"], "accept", token=bob, key=key).body
    assert (again["id"], again["token"]) == (new["id"], new["token"])
    ended = read(native, old["id"], ann)
    assert (ended["state"], ended["cause"], ended["detail"], ended["offer"]) == (
        *("ended", "handed_over", "to bank/bob"),
        None,
    )
    for token in (old["token"], None):
        renewal = f"/v1/leases/{old['id']}/renew"
        answer = native.ask("POST", renewal, {"token": token}, token=ann)
        assert refused(answer) == (409, "lease_ended")
    verify = f"/v1/leases/verify?pool={pool}&token="
    assert native.ask("GET", verify + old["token"]).body["current"] is False
    assert native.ask("GET", verify + new["token"]).body["lease"] == new["id"]
    assert native.ask("GET", f"/v1/pools/{pool}").body["occupied"] == 1
    assert actions(native, old["id"]) == [("lease.offer", "ann"), ("lease.accept", "bob")]


def test_an_offer_comes_to_nothing(native: Native, ann: str, bob: str, key: str) -> None:
    """Withdrawn or declined, the giver keeps it."""
    lease = ask(native, make_pool(native), token=ann).body["id"]
    assert refused(lease_action(native, lease, "accept", token=bob, key=key)) == (
        409,
        "not_offered",
    )
    assert refused(lease_action(native, lease, "offer", token=bob, to="bank/bob"))[0] == 403
    lease_action(native, lease, "offer", token=ann, to="bank/bob")
    assert native.ask("DELETE", f"/v1/leases/{lease}/offer", token=bob).status == 403
    assert native.ask("DELETE", f"/v1/leases/{lease}/offer", token=ann).body["offer"] is None
    assert native.ask("DELETE", f"/v1/leases/{lease}/offer", token=ann).status == 200
    assert refused(lease_action(native, lease, "decline", token=bob)) == (409, "not_offered")
    lease_action(native, lease, "offer", token=ann, to="bank/bob")
    assert lease_action(native, lease, "decline", token=bob).body["offer"] is None
    assert refused(lease_action(native, lease, "accept", token=bob, key=key)) == (
        409,
        "not_offered",
    )
    assert actions(native, lease) == [
        ("lease.offer", "ann"),
        ("lease.withdraw", "ann"),
        ("lease.offer", "ann"),
        ("lease.decline", "bob"),
    ]
    assert read(native, lease)["state"] == "granted"


def test_an_operator_offers_for_a_holder(native: Native, ann: str, bob: str, key: str) -> None:
    """And may accept what is offered to it, but nothing else."""
    lease = ask(native, make_pool(native), token=ann).body["id"]
    assert lease_action(native, lease, "offer", to="bank/bob").status == 200
    assert refused(lease_action(native, lease, "accept", key=key)) == (409, "not_offered")
    assert lease_action(native, lease, "accept", token=bob, key=key).status == 201


def test_the_quota_of_the_receiver_binds(native: Native, ann: str, bob: str, key: str) -> None:
    """When it accepts."""
    pool = make_pool(native, limit=2, quota=1, pacing=None)
    lease = ask(native, pool, token=ann).body["id"]
    own = ask(native, pool, token=bob).body["id"]
    lease_action(native, lease, "offer", token=ann, to="bank/bob")
    answer = lease_action(native, lease, "accept", token=bob, key=key)
    assert refused(answer) == (409, "quota_exceeded")
    native.ask("DELETE", f"/v1/leases/{own}", token=bob)
    assert lease_action(native, lease, "accept", token=bob, key=key).status == 201


def test_askers_bind_the_receiver(native: Native, ann: str, bob: str, key: str) -> None:
    """Who may not ask for units of a pool cannot get one as a present."""
    pool = make_pool(native, askers=["shop/*"])
    lease = ask(native, pool, token=ann).body["id"]
    lease_action(native, lease, "offer", token=ann, to="bank/bob")
    answer = lease_action(native, lease, "accept", token=bob, key=key)
    assert refused(answer) == (403, "asker_refused")


def test_the_feed_has_it(native: Native, ann: str, bob: str, key: str) -> None:
    """The offer, the end of the old lease and the new one, each as a change."""
    lease = ask(native, make_pool(native), token=ann).body["id"]
    start = native.ask("GET", "/v1/watch?wait=0").body["next"]
    lease_action(native, lease, "offer", token=ann, to="bank/bob")
    new = lease_action(native, lease, "accept", token=bob, key=key).body["id"]
    seen = native.ask("GET", f"/v1/watch?kinds=lease&after={start}").body["changes"]
    values = {one["key"]: one["value"] for one in seen}
    assert seen[0]["value"]["offer"]["to"] == "bank/bob"
    assert values[lease]["cause"] == "handed_over"
    assert (values[new]["taken_from"], values[new]["state"]) == (lease, "granted")
    ended, started = (one["revision"] for one in seen[-2:])
    assert ended == started, "nobody can see a state between them"


def test_a_lease_is_kept(native: Native, ann: str) -> None:
    """Visibly, with its reason and how many wait; it needs no renewals and has an end."""
    pool = make_pool(native)
    lease = ask(native, pool, token=ann).body["id"]
    ask(native, pool)
    kept = lease_action(native, lease, "keep", token=ann, lasts=7200.0, reason="it failed").body
    assert kept["expires_at"] is None
    assert (kept["kept"]["reason"], kept["kept"]["waiting"]) == ("it failed", 1)
    (listed,) = native.ask("GET", f"/v1/leases?pool={pool}&state=granted").body["leases"]
    assert listed["kept"] == kept["kept"] == read(native, lease)["kept"]
    assert listed["hold_until"] == kept["hold_until"]
    until = (datetime.now(UTC) + timedelta(hours=1)).replace(microsecond=0)  # noqa: TID251 - of the server's own clock
    timed = lease_action(native, lease, "keep", token=ann, until=until.isoformat()).body
    found = datetime.fromisoformat(timed["hold_until"])
    assert abs(found - until) < timedelta(seconds=1)


@pytest.mark.parametrize(
    "wrong", [{}, {"lasts": 0.0}, {"until": "2020-01-01T00:00:00Z"}, {"lasts": 1.0, "until": None}]
)
def test_a_kept_lease_has_an_end(native: Native, ann: str, wrong: dict[str, Any]) -> None:
    """In the future."""
    lease = ask(native, make_pool(native), token=ann).body["id"]
    both = {"until": "2099-01-01T00:00:00Z"} if "until" in wrong and wrong["until"] is None else {}
    answer = lease_action(native, lease, "keep", token=ann, **(wrong | both))
    assert refused(answer) == (400, "invalid")


def test_keeping_is_bounded(native: Native, ann: str) -> None:
    """By `hold_max`, or a day; not for operators, whose act is audited."""
    pool = make_pool(native, limit=2, hold=60.0, hold_max=120.0, pacing=None)
    lease = ask(native, pool, token=ann).body["id"]
    answer = lease_action(native, lease, "keep", token=ann, lasts=600.0)
    assert refused(answer) == (422, "hold_above_max")
    kept = lease_action(native, lease, "keep", token=ann, lasts=600.0, at_most=True).body
    assert 0 < kept["hold"] <= 120.0
    assert lease_action(native, lease, "keep", lasts=600.0).body["hold"] == 600.0
    assert actions(native, lease) == [("lease.keep", "admin")]


def test_an_owner_tries_first_what_its_own_lease_may_do(native: Native, ann: str, bob: str) -> None:
    """It extends its hold and keeps it as operators do; nothing else, and not that of another."""
    pool = make_pool(native, hold=60.0, hold_max=7200.0, pacing=None)
    lease = ask(native, pool, token=ann).body["id"]
    ask(native, pool)
    body = {"action": "lease.hold", "target": lease, "hold": 3600.0}
    shown = native.ask("POST", "/v1/actions/preview", body, token=ann).body
    assert "It may last 1h from now on." in shown["lines"] and not shown["done"]
    wrong = native.ask("POST", "/v1/actions/preview", body, token=bob)
    assert refused(wrong) == (403, "holder_mismatch")
    done = native.ask("POST", "/v1/actions", {**body, "digest": shown["digest"]}, token=ann).body
    assert (done["done"], done["audit"]) == (True, [])
    assert read(native, lease)["hold"] == 3600.0
    too_long = native.ask("POST", "/v1/actions/preview", {**body, "hold": 7201.0}, token=ann)
    assert refused(too_long) == (422, "hold_above_max")
    for action in ("lease.revoke", "lease.force", "lease.move"):
        other = native.ask("POST", "/v1/actions/preview", {**body, "action": action}, token=ann)
        assert other.status == 403, action
    keeping = {"lasts": 1800.0, "reason": "look"}
    kept = preview(native, "lease.keep", lease, **keeping)
    assert kept["lines"][0].startswith("It is kept for inspection for 30m: it needs no renewals")
    assert "1 ticket is waiting in the line of its pools." in kept["lines"]
    assert act(native, "lease.keep", lease, kept["digest"], **keeping).body["done"]
    assert read(native, lease)["kept"]["reason"] == "look"


def test_what_a_newer_request_waits_for_is_not_kept(native: Native, ann: str, bob: str) -> None:
    """A longer hold says that it ends anyway; what is handed over ends in time, too."""
    pool = make_pool(native, hold=60.0, pacing=None, ttl=600.0)
    group = {"group": "deploy/main", "cancel_running": True}
    lease = ask(native, pool, token=ann, supersede=group).body["id"]
    newer = ask(native, pool, token=ann, supersede=group).body["id"]
    stop = read(native, lease)["stop_until"]
    for token in (ann, None):
        answer = lease_action(native, lease, "keep", token=token, lasts=10.0)
        assert refused(answer) == (400, "invalid")
        assert newer in answer.body["detail"]
    longer = preview(native, "lease.hold", lease, hold=7200.0)
    assert "It may last 2h from now on." in longer["lines"]
    assert any("asked to stop for another request" in line for line in longer["lines"])
    lease_action(native, lease, "offer", token=ann, to="bank/bob")
    new = lease_action(native, lease, "accept", token=bob, key=str(uuid4())).body
    assert (new["group"], new["superseded_by"], new["stop_until"]) == ("", newer, stop)
    assert [one["id"] for one in native.ask("GET", "/v1/leases?group=deploy/main").body["leases"]][
        -2:
    ] == [lease, newer]


def test_what_is_kept_is_not_asked_to_stop(native: Native, ann: str) -> None:
    """Somebody looks at it; a newer request of its group waits for its end."""
    pool = make_pool(native, pacing=None)
    group = {"group": "kept/main", "cancel_running": True}
    lease = ask(native, pool, token=ann, supersede=group).body["id"]
    lease_action(native, lease, "keep", token=ann, lasts=600.0)
    newer = ask(native, pool, token=ann, supersede=group).body
    found = read(native, lease)
    assert (found["superseded_by"], found["stop_until"]) == (newer["id"], None)
    assert newer["state"] == "waiting"
    assert ("lease.supersede", "ann") not in actions(native, newer["id"])


def test_what_is_kept_needs_no_renewals_of_its_receiver(
    native: Native, ann: str, bob: str, key: str
) -> None:
    """Also by the answer to the acceptance, and to its repetition."""
    lease = ask(native, make_pool(native), token=ann).body["id"]
    lease_action(native, lease, "keep", token=ann, lasts=600.0, reason="look")
    lease_action(native, lease, "offer", token=ann, to="bank/bob")
    for _ in range(2):
        new = lease_action(native, lease, "accept", token=bob, key=key).body
        assert (new["expires_at"], new["kept"]["reason"]) == (None, "look")
    renewed = native.ask("POST", f"/v1/leases/{new['id']}/renew", {}, token=bob).body
    assert (renewed["expires_at"], renewed["kept"]["reason"]) == (None, "look")
