"""What one owner may have, and how all of it ends: with one call, or with its token."""

import pytest

from tests.faces.v1.leasing import ask, make_pool, refused
from tests.faces.v1.native import Native, Response


def token(native: Native, role: str, project: str | None, name: str) -> tuple[str, str]:
    """Create a token; return its id and its secret."""
    made = native.ask("POST", "/v1/tokens", {"name": name, "role": role, "project_id": project})
    assert made.status == 201, made
    return made.body["id"], made.body["token"]


def states(native: Native, *leases: Response) -> list[str]:
    """Return the states of some leases and tickets, or the causes of their ends."""
    found = [native.ask("GET", f"/v1/leases/{one.body['id']}?until=ended").body for one in leases]
    return [one["cause"] or one["state"] for one in found]


def test_no_owner_fills_a_line_by_default(native: Native) -> None:
    """A tenth of the line is one owner's and one project's; the answer says when to retry."""
    pool = make_pool(native, queue_max=110)
    assert native.ask("GET", f"/v1/pools/{pool}").body["owner_queue_max"] == 11
    ask(native, pool)
    _, bob = token(native, "user", "filling", "bob")
    _, eve = token(native, "user", "filling", "eve")
    _, other = token(native, "user", "another", "bob")
    assert [ask(native, pool, token=bob, patience=3600).status for _ in range(11)] == [202] * 11
    answer = ask(native, pool, token=bob)
    assert refused(answer) == (429, "owner_queue_full")
    assert int(answer.headers["retry-after"]) >= 1
    assert "a tenth of queue_max" in answer.body["detail"]
    answer = ask(native, pool, token=eve)
    assert refused(answer) == (429, "owner_queue_full")
    assert "project 'filling'" in answer.body["detail"]
    assert ask(native, pool, token=other).status == 202
    wanted = {"limit": 1, "queue_max": 110, "queue_max_per_owner": 12}
    assert native.ask("PUT", f"/v1/pools/{pool}", wanted).body["owner_queue_max"] == 12
    assert [ask(native, pool, token=eve).status for _ in range(2)] == [202, 429]


@pytest.mark.parametrize("leases", [False, True])
def test_a_revoked_token_leaves_no_tickets(native: Native, leases: bool) -> None:
    """Its tickets end at once, whatever their patience; its leases only if asked for."""
    pool, project = make_pool(native), f"revoked-{leases}"
    token_id, secret = token(native, "user", project, "ci")
    _, other = token(native, "user", project, "other")
    held = ask(native, pool, token=secret, ttl=600)
    waits = [ask(native, pool, token=secret, patience=3600) for _ in range(3)]
    kept = ask(native, pool, token=other, patience=3600)
    query = "?revoke_leases=true" if leases else ""
    assert native.ask("DELETE", f"/v1/tokens/{token_id}{query}").status == 204
    assert states(native, *waits) == ["revoked"] * 3
    expected = ["revoked", "granted"] if leases else ["granted", "waiting"]
    assert states(native, held, kept) == expected
    rows = native.ask("GET", f"/v1/audit?target={project}/ci").body["entries"]
    assert {row["action"] for row in rows} == {"lease.revoke_owner"}
    assert sum(row["after"]["tickets"] for row in rows) == 3
    assert sum(row["after"]["leases"] for row in rows) == int(leases)


def test_tickets_live_on_with_another_token_of_their_owner(native: Native) -> None:
    """A token that was replaced, or is one of two with the same name, takes nothing along."""
    pool = make_pool(native)
    ask(native, pool)
    first, secret = token(native, "user", "twins", "ci")
    second, _ = token(native, "user", "twins", "ci")
    ticket = ask(native, pool, token=secret, patience=3600)
    native.ask("DELETE", f"/v1/tokens/{first}")
    assert states(native, ticket) == ["waiting"]
    native.ask("POST", f"/v1/tokens/{second}/rotate", {"grace": 0})
    assert states(native, ticket) == ["waiting"]
    native.ask("DELETE", f"/v1/tokens/{second}")
    assert states(native, ticket) == ["waiting"], "its successor is valid"


def test_everything_of_an_owner_ends_with_one_call(native: Native) -> None:
    """Of an owner or a project, in all pools or one, waiting or all; others' requests stay."""
    pool, second = make_pool(native), make_pool(native, limit=5)
    _, ann = token(native, "user", "all", "ann")
    _, ben = token(native, "user", "all", "ben")
    _, eve = token(native, "user", "all-others", "eve")
    held = ask(native, pool, token=ann)
    waits = [ask(native, pool, token=one) for one in (ann, ann, ben, eve)]
    more = ask(native, second, token=ann)

    def revoke(secret: str | None = None, **body: object) -> Response:
        return native.ask("POST", "/v1/leases/revoke", body, token=secret)

    assert refused(revoke(eve, owner="all/ann")) == (403, "forbidden")
    assert refused(revoke(eve, owner="all-others/*")) == (403, "forbidden")
    answer = revoke(owner="all/ann", state="waiting", pool=pool).body
    assert (answer["tickets"], answer["leases"], answer["more"]) == (2, 0, False)
    assert states(native, held, *waits, more) == [
        *("granted", "revoked", "revoked", "waiting", "waiting"),
        "granted",
    ]
    answer = revoke(owner="all/*", reason="gone").body
    assert (answer["tickets"], answer["leases"]) == (1, 2)
    assert states(native, held, waits[2], waits[3], more) == [
        *("revoked", "revoked", "granted", "revoked"),
    ]
    assert revoke(eve, owner="all-others/eve").body["leases"] == 1
    assert states(native, waits[3]) == ["released"]
    assert refused(revoke(owner="")) == (400, "invalid")
    assert revoke(owner="nobody", pool="no/such/pool").status == 404
