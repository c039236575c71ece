"""Actions that are tried first: the preview does nothing, and what is done is what was shown."""

from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from tests.faces.v1.leasing import ask, lease_action, make_pool, refused, waiting_ticket
from tests.faces.v1.native import Native, Response


def preview(native: Native, action: str, target: str, **more: Any) -> dict[str, Any]:
    """Return what an action would do."""
    body = {"action": action, "target": target, **more}
    answer = native.ask("POST", "/v1/actions/preview", body)
    assert answer.status == 200, answer
    shown: dict[str, Any] = answer.body
    assert (shown["audit"], shown["undo"]) == ([], None)
    return shown


def act(native: Native, action: str, target: str, digest: str, **more: Any) -> Response:
    """Carry out an action."""
    body = {"action": action, "target": target, "digest": digest, **more}
    return native.ask("POST", "/v1/actions", body)


def carried_out(native: Native, action: str, target: str, **more: Any) -> dict[str, Any]:
    """Look at an action and carry it out; return what it has done, which is what was shown."""
    shown = preview(native, action, target, **more)
    answer = act(native, action, target, shown["digest"], **more)
    assert answer.status == 200, answer
    done: dict[str, Any] = answer.body
    told = ("lines", "digest", "leases_end", "tickets_end", "tickets_start", "ends", "starts")
    assert {name: shown[name] for name in told} == {name: done[name] for name in told}
    return done


def new_agent(native: Native) -> str:
    """Create an agent; return its id."""
    agent = str(uuid4())
    assert native.ask("PUT", f"/v1/agents/{agent}", {"group": "g"}).status in {200, 201}
    return agent


def entries(native: Native) -> list[dict[str, Any]]:
    """Return the newest entries of the audit log."""
    found: list[dict[str, Any]] = native.ask("GET", "/v1/audit?limit=20").body["entries"]
    return found


def states(native: Native, pool: str) -> list[str]:
    """Return the states of all leases of a pool, in the order of their requests."""
    found = native.ask("GET", f"/v1/leases?pool={pool}").body["leases"]
    return [one["state"] for one in found]


def test_a_higher_limit_says_who_starts(native: Native) -> None:
    """The preview changes nothing; then exactly these tickets start, and the limit goes back."""
    pool = make_pool(native, pacing=None)
    ids = [ask(native, pool).body["id"] for _ in range(5)]
    before, rows = native.ask("GET", f"/v1/pools/{pool}").body, entries(native)
    shown = preview(native, "pool.tune", pool, limit=4)
    assert shown["tickets_start"] == 3 and sorted(shown["starts"]) == sorted(ids[1:4])
    assert "The limit changes from 1 to 4." in shown["lines"]
    assert "3 tickets start." in shown["lines"]
    after = native.ask("GET", f"/v1/pools/{pool}").body
    assert {**after, "first": None} == {**before, "first": None}
    assert (entries(native), states(native, pool)) == (rows, ["granted", *["waiting"] * 4])
    done = carried_out(native, "pool.tune", pool, limit=4)
    assert states(native, pool) == ["granted"] * 4 + ["waiting"]
    assert [row["id"] for row in entries(native)][:1] == done["audit"]
    assert entries(native)[0]["action"] == "pool.put"
    undo = {name: value for name, value in done["undo"].items() if value is not None}
    assert (undo["limit"], undo["action"]) == (1, "pool.tune")
    undone = carried_out(native, **undo)
    assert "is over its limit by 3 units" in " ".join(undone["lines"])
    assert states(native, pool) == ["granted"] * 4 + ["waiting"], "a lower limit revokes nothing"
    assert native.ask("GET", f"/v1/pools/{pool}").body["limit"] == 1


def test_an_undo_is_refused_after_another_change(native: Native) -> None:
    """Of somebody else, who would not notice."""
    pool = make_pool(native, pacing=None)
    undo = carried_out(native, "pool.tune", pool, limit=4)["undo"]
    native.ask("PUT", f"/v1/pools/{pool}", {"limit": 9})
    answer = native.ask("POST", "/v1/actions/preview", undo)
    assert refused(answer) == (409, "pool_generation")


def test_what_would_do_something_else_is_not_done(native: Native) -> None:
    """The effect is compared in the transaction that has it; a new preview shows the new one."""
    pool = make_pool(native, pacing=None)
    for _ in range(3):
        ask(native, pool)
    digest = preview(native, "pool.tune", pool, limit=2)["digest"]
    held = native.ask("GET", f"/v1/leases?pool={pool}&state=granted").body["leases"][0]["id"]
    native.ask("DELETE", f"/v1/leases/{held}")
    native.ask("PUT", f"/v1/pools/{pool}", {"limit": 0})
    rows = entries(native)
    answer = act(native, "pool.tune", pool, digest, limit=2)
    assert refused(answer) == (409, "effect_changed")
    assert (entries(native), native.ask("GET", f"/v1/pools/{pool}").body["limit"]) == (rows, 0)
    assert refused(act(native, "pool.tune", pool, "", limit=2)) == (400, "invalid")
    again = preview(native, "pool.tune", pool, limit=2)
    assert again["digest"] != digest
    assert act(native, "pool.tune", pool, again["digest"], limit=2).status == 200


def test_the_digest_of_one_action_is_not_that_of_another(native: Native) -> None:
    """Neither of another lease, nor for another reason."""
    pool = make_pool(native, limit=2, pacing=None)
    one, other = (ask(native, pool).body["id"] for _ in range(2))
    digest = preview(native, "lease.revoke", one, reason="a")["digest"]
    assert act(native, "lease.revoke", other, digest, reason="a").status == 409
    assert act(native, "lease.revoke", one, digest, reason="b").status == 409
    assert act(native, "lease.revoke", one, digest, reason="a").status == 200


def test_a_revocation_says_what_ends_and_what_starts(native: Native) -> None:
    """A lease ends, the next ticket starts; of a ticket nothing starts."""
    pool = make_pool(native)
    ids = [ask(native, pool).body["id"] for _ in range(3)]
    done = carried_out(native, "lease.revoke", ids[0], reason="gone")
    assert (done["leases_end"], done["tickets_start"]) == (1, 1)
    assert (done["ends"], done["starts"], done["undo"]) == ([ids[0]], [ids[1]], None)
    done = carried_out(native, "lease.revoke", ids[2])
    assert (done["leases_end"], done["tickets_end"], done["starts"]) == (0, 1, [])


def test_a_ticket_is_moved_and_forced(native: Native) -> None:
    """A move can be taken back."""
    pool = make_pool(native)
    first = waiting_ticket(native, pool).body["id"]
    ask(native, pool)
    last = ask(native, pool).body["id"]
    shown = preview(native, "lease.move", last)["lines"]
    assert f"In the line of {pool} it goes from place 3 to 1, before 2 other tickets." in shown
    behind = preview(native, "lease.move", first, priority=-1)["lines"]
    assert f"In the line of {pool} it goes from place 1 to 3, behind 2 other tickets." in behind
    alone = preview(native, "lease.move", first, priority=1)["lines"]
    assert f"In the line of {pool} it stays at place 1." in alone
    same = preview(native, "lease.move", first, priority=0)["lines"]
    assert not any("In the line" in line for line in same), "the control: nothing moves"
    done = carried_out(native, "lease.move", last)
    assert "The priority changes from 0 to 1." in done["lines"]
    undo = {name: value for name, value in done["undo"].items() if value is not None}
    carried_out(native, **undo)
    assert native.ask("GET", f"/v1/leases/{last}").body["priority"] == 0
    assert carried_out(native, "lease.force", last)["starts"] == [last]
    assert native.ask("GET", f"/v1/pools/{pool}").body["over"] is True


def test_a_hold_is_extended(native: Native) -> None:
    """From now on; operators are not bound to the longest hold of the pool."""
    pool = make_pool(native, hold=60.0, hold_max=120.0, pacing=None)
    lease = ask(native, pool).body
    done = carried_out(native, "lease.hold", lease["id"], hold=7200.0)
    assert "It may last 2h from now on." in done["lines"]
    held = native.ask("GET", f"/v1/leases/{lease['id']}").body
    assert held["hold_until"] > lease["hold_until"]
    assert any("at most 2m (hold_max)" in line for line in done["lines"])
    user = native.token("user", "shop", "ann")
    path = f"/v1/leases/{ask(native, pool, token=user).body['id']}"
    lease_action(native, lease["id"], "revoke")
    assert refused(native.ask("PATCH", path, {"hold": 7200.0}, token=user))[1] == "hold_above_max"


def test_a_pause_has_an_end(native: Native) -> None:
    """A duration or a time; the page, the reason of a ticket and the audit log have it."""
    pool = make_pool(native)
    ticket = waiting_ticket(native, pool).body["id"]
    made = datetime.fromisoformat(native.ask("GET", f"/v1/pools/{pool}").body["created_at"])
    end = (made + timedelta(days=7)).replace(microsecond=0)
    done = carried_out(native, "pool.pause", pool, reason="rack 7", until=end.isoformat())
    assert any(line.endswith(f"until {end:%Y-%m-%d %H:%M:%S} UTC.") for line in done["lines"])
    shown = native.ask("GET", f"/v1/pools/{pool}").body
    assert datetime.fromisoformat(shown["paused_until"]) - end < timedelta(seconds=1)
    why = native.ask("GET", f"/v1/leases/{ticket}").body["waiting"]["reason"]
    assert why.endswith("until its pause ends (rack 7)")
    assert entries(native)[0]["after"]["until"] == shown["paused_until"]
    assert done["undo"]["action"] == "pool.resume"
    carried_out(native, "pool.resume", pool)
    while_ = {"action": "pool.pause", "target": pool, "lasts": 7200.0}
    preview = native.ask("POST", "/v1/actions/preview", while_).body
    assert preview["lines"][0] == f"{pool} grants nothing for 2h."
    path = f"/v1/pools/{pool}:pause"
    lasting = native.ask("POST", path, {"lasts": 3600.0}).body
    assert lasting["paused_until"] > lasting["updated_at"]
    both = {"lasts": 3600.0, "until": end.isoformat()}
    for wrong in (both, {"lasts": 0.0}, {"until": "2020-01-01T00:00:00Z"}, {"lasts": -1.0}):
        assert refused(native.ask("POST", path, wrong)) == (400, "invalid"), wrong


def test_all_that_was_asked_is_in_the_digest(native: Native) -> None:
    """Also what no sentence says: the jitter of a pacing, the end of a drain, a generation."""
    pool = make_pool(native, pacing=None)
    pacing = {"interval": 60.0, "burst": 2, "jitter": 1.0}
    digest = preview(native, "pool.tune", pool, pacing=pacing)["digest"]
    for other in ({"pacing": {**pacing, "jitter": 1.0000001}}, {"pacing": pacing, "generation": 1}):
        assert refused(act(native, "pool.tune", pool, digest, **other)) == (409, "effect_changed")
    assert act(native, "pool.tune", pool, digest, pacing=pacing).status == 200
    agent = new_agent(native)
    digest = preview(native, "agent.drain", agent, lasts=60.0)["digest"]
    assert refused(act(native, "agent.drain", agent, digest)) == (409, "effect_changed")
    assert act(native, "agent.drain", agent, digest, lasts=60.0).status == 200


def test_nothing_takes_back_what_was_so_before(native: Native) -> None:
    """To resume would undo the pause, and the drain, of somebody else."""
    pool = make_pool(native)
    native.ask("POST", f"/v1/pools/{pool}:pause", {"reason": "theirs"})
    done = carried_out(native, "pool.pause", pool, reason="mine")
    assert (len(done["audit"]), done["undo"]) == (1, None)
    agent = new_agent(native)
    assert carried_out(native, "agent.drain", agent)["undo"]["action"] == "agent.resume"
    assert carried_out(native, "agent.drain", agent)["undo"] is None


def test_a_hold_that_begins_again_is_said(native: Native) -> None:
    """The same hold from now on ends later."""
    pool = make_pool(native, hold=60.0, pacing=None)
    lease = ask(native, pool).body
    done = carried_out(native, "lease.hold", lease["id"], hold=60.0)
    assert "It may last 1m from now on." in done["lines"]


@pytest.mark.parametrize("role", ["reader", "user", "service"])
def test_only_operators_act(native: Native, role: str) -> None:
    """They may not look at an action either: it says what others have."""
    project = "shop" if role == "user" else None
    token = native.token(role, project)
    body = {"action": "pool.resume", "target": make_pool(native)}
    for path in ("/v1/actions/preview", "/v1/actions"):
        assert native.ask("POST", path, {**body, "digest": "x"}, token=token).status == 403


def test_what_does_not_exist(native: Native, pool: str) -> None:
    """It is refused as by the operation itself."""
    ticket = "00000000-0000-4000-8000-000000000000"
    for action, target, code in (
        ("pool.tune", "none", "pool_not_found"),
        ("pool.pause", "none", "pool_not_found"),
        ("lease.force", ticket, "lease_not_found"),
        ("lease.revoke", "x", "lease_not_found"),
        ("agent.drain", ticket, "agent_not_found"),
    ):
        body = {"action": action, "target": target}
        assert refused(native.ask("POST", "/v1/actions/preview", body)) == (404, code)
    held = ask(native, pool).body["id"]
    body = {"action": "lease.move", "target": held}
    assert refused(native.ask("POST", "/v1/actions/preview", body)) == (409, "not_waiting")
    assert lease_action(native, held, "revoke").status == 200
