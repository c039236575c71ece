"""One request for any of several pools over HTTP: answers, the feed, lists, scopes, refusals."""

from uuid import uuid4

from tests.faces.v1.leasing import ask, lease_action, make_pool, refused
from tests.faces.v1.native import Native, Response


def any_of(native: Native, *pools: str, **wanted: object) -> Response:
    """Ask for a unit of any of some pools."""
    return ask(native, any_of=[[{"pool": name}] for name in pools], **wanted)


def pools_of(lease: dict[str, list[dict[str, str]]]) -> list[str]:
    """Return the pools in the needs of a lease."""
    return [need["pool"] for need in lease["needs"]]


def two(native: Native) -> tuple[str, str, str, str]:
    """Return two full pools, and the leases that hold them."""
    one, other = make_pool(native), make_pool(native)
    return one, other, ask(native, one).body["id"], ask(native, other).body["id"]


def test_the_answer_tells_what_was_granted(native: Native) -> None:
    """`needs` are those of the alternative; `any_of` says what was asked for."""
    one, other, _, holder = two(native)
    ticket = any_of(native, one, other)
    assert ticket.status == 202
    assert pools_of(ticket.body) == [one, other]
    waiting = ticket.body["waiting"]
    assert [pools_of(each) for each in waiting["alternatives"]] == [[one], [other]]
    assert {each["code"] for each in waiting["alternatives"]} == {"limit"}
    assert waiting["reason"].startswith(f"any of 2: {one}: first in line; limit")
    assert native.ask("GET", f"/v1/pools/{other}").body["first"]["id"] == ticket.body["id"]
    contents = native.ask("GET", f"/v1/pools/{other}:contents").body
    assert [each["id"] for each in contents["tickets"]] == [ticket.body["id"]]
    native.ask("DELETE", f"/v1/leases/{holder}")
    lease = native.ask("GET", f"/v1/leases/{ticket.body['id']}").body
    assert (lease["state"], pools_of(lease)) == ("granted", [other])
    assert [[need["pool"] for need in each] for each in lease["any_of"]] == [[one], [other]]
    assert lease["choose"] == "least_loaded"
    assert native.ask("GET", f"/v1/pools/{one}").body["waiting"] == 0
    page = native.ask("GET", f"/v1/leases?pool={one}&state=granted").body["leases"]
    assert lease["id"] not in [each["id"] for each in page]
    verified = native.ask("GET", f"/v1/leases/verify?pool={other}&token={lease['token']}").body
    assert verified["current"] is True


def test_the_feed_has_the_alternatives(native: Native) -> None:
    """In the values of the ticket and of the lease."""
    one, other, holder, _ = two(native)
    after = native.ask("GET", f"/v1/leases?pool={one}").body["as_of"]
    ticket = any_of(native, one, other).body
    native.ask("DELETE", f"/v1/leases/{holder}")
    changes = native.ask("GET", f"/v1/watch?after={after}&kinds=lease").body["changes"]
    values = [each["value"] for each in changes if each["key"] == ticket["id"]]
    assert [pools_of(value) for value in values] == [[one, other], [one]]
    for value in values:
        assert [[need["pool"] for need in each] for each in value["alternatives"]] == [
            [one],
            [other],
        ]


def test_the_order_may_be_chosen(native: Native) -> None:
    """`choose: order` takes the first, however much it is used."""
    one, other = make_pool(native, limit=9), make_pool(native, limit=9)
    ask(native, one)
    assert pools_of(any_of(native, one, other).body) == [other]
    ordered = any_of(native, one, other, choose="order").body
    assert (pools_of(ordered), ordered["choose"]) == ([one], "order")


def test_refusals_say_what_is_wrong(native: Native) -> None:
    """Duplicates, no needs at all, too many, a pool that does not exist, and `force`."""
    one, other = make_pool(native), make_pool(native)
    again = any_of(native, one, one)
    assert refused(again) == (400, "invalid")
    assert f"twice: {one}" in again.body["detail"]
    assert refused(ask(native)) == (400, "invalid")
    assert refused(any_of(native, *[one] * 17))[1] == "invalid"
    assert refused(any_of(native, one, "no/such"))[1] == "pool_unknown"
    assert refused(any_of(native, one, other, force=True)) == (400, "invalid")
    assert refused(any_of(native, one, other, choose="random"))[0] == 400
    too_many = ask(native, any_of=[[{"pool": each, "units": 2}] for each in (one, other)])
    assert refused(too_many) == (422, "units_above_limit")


def test_a_scope_must_cover_all_alternatives(native: Native) -> None:
    """A janitor of one pool may not end what may be granted in another."""
    one, other, _, holder = two(native)
    wanted = {"name": str(uuid4()), "role": "janitor", "scope": {"pool": [one]}}
    token = native.ask("POST", "/v1/tokens", wanted).body["token"]
    ticket = any_of(native, one, other).body
    address = f"/v1/leases/{ticket['id']}"
    assert native.ask("DELETE", address, token=token).status == 403
    listed = native.ask("GET", f"/v1/leases?pool={one}&state=waiting", token=token).body
    assert [each["id"] for each in listed["leases"]] == [ticket["id"]]
    native.ask("DELETE", f"/v1/leases/{holder}")
    assert native.ask("DELETE", address, token=token).status == 403


def test_operators_see_the_alternatives_in_the_audit(native: Native) -> None:
    """A forced ticket had these alternatives."""
    one, other, _, _ = two(native)
    ticket = any_of(native, one, other).body
    forced = lease_action(native, ticket["id"], "force").body
    assert (forced["state"], len(forced["needs"])) == ("granted", 1)
    row = native.ask("GET", "/v1/audit?limit=1").body["entries"][0]
    assert row["before"]["any_of"] == [{one: 1}, {other: 1}]


def test_slots_by_one_label_or_another(native: Native) -> None:
    """Alternatives may be labels in one pool."""
    pool = f"gpus/{uuid4()}"
    assert native.ask("PUT", f"/v1/pools/{pool}", {"native_slots": True}).status == 200
    for name, model in (("g1", "a100"), ("g2", "h100")):
        slot = {"names": [f"{name}-{pool[-6:]}"], "labels": {"model": model}}
        assert native.ask("POST", f"/v1/pools/{pool}:slots", slot).status == 204
    models = [[{"pool": pool, "labels": {"model": each}}] for each in ("h100", "a100")]
    first = ask(native, any_of=models, choose="order").body
    assert first["slots"][pool][0].startswith("g2")
    second = ask(native, any_of=models).body
    assert second["slots"][pool][0].startswith("g1")
    third = ask(native, any_of=models).body
    assert third["state"] == "waiting"
    native.ask("DELETE", f"/v1/leases/{second['id']}")
    lease = native.ask("GET", f"/v1/leases/{third['id']}").body
    assert lease["needs"][0]["labels"] == {"model": "a100"}
