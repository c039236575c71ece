"""Bookings over HTTP: who may book, series, changes, offers, and leases that use a booking."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from tests.faces.v1.native import Native, Response

DAY = timedelta(days=1)


@pytest.fixture
def pool() -> str:
    """Return the name for a new pool."""
    return f"p{uuid4().hex[:8]}"


def now() -> datetime:
    """Return the time of the real server."""
    return datetime.now(UTC)  # noqa: TID251  # the time of the real server


def put(native: Native, name: str, **wanted: Any) -> None:
    """Create a pool."""
    assert native.ask("PUT", f"/v1/pools/{name}", wanted).status == 200


def book(native: Native, *needs: dict[str, Any], **more: Any) -> Response:
    """Book units, by default two hours from now for an hour."""
    today = now()
    wanted = {
        "key": str(uuid4()),
        "start": (today + timedelta(hours=2)).isoformat(),
        "end": (today + timedelta(hours=3)).isoformat(),
        "needs": [*needs],
    }
    return native.ask("POST", "/v1/bookings", wanted | more)


def code(answer: Response) -> tuple[int, str]:
    """Return the status and the code of a refusal."""
    return answer.status, answer.body["code"]


def test_a_booking_is_made_shown_listed_and_cancelled(native: Native, pool: str) -> None:
    """It has one window; repeating the request and the cancellation changes nothing."""
    put(native, pool, limit=2)
    made = book(native, {"pool": pool}, note="release tests")
    assert made.status == 201, made.body
    one = made.body
    assert (one["state"], one["owner"], one["note"]) == ("coming", "admin", "release tests")
    assert one["needs"] == [{"pool": pool, "units": 1}]
    assert (one["lead"], one["no_show"], one["repeat"]) == (0.0, 900.0, None)
    assert one["windows"] == [one["next"]]
    assert native.ask("GET", f"/v1/bookings/{one['id']}").body == one
    assert native.ask("GET", f"/v1/bookings?pool={pool}").body["bookings"] == [one]
    assert native.ask("GET", f"/v1/bookings?pool={pool}q").body["bookings"] == []
    assert native.ask("GET", f"/v1/pools/{pool}").body["booked_until"] == one["end"]
    gone = native.ask("DELETE", f"/v1/bookings/{one['id']}")
    assert (gone.status, gone.body["state"], gone.body["next"]) == (200, "cancelled", None)
    assert native.ask("DELETE", f"/v1/bookings/{one['id']}").body == gone.body
    assert native.ask("GET", f"/v1/bookings?pool={pool}").body["bookings"] == []
    assert native.ask("GET", "/v1/bookings?over=true&limit=1000").body["bookings"][-1] == gone.body
    assert native.ask("GET", f"/v1/pools/{pool}").body["booked_until"] is None


def test_a_repeated_request_gives_the_same_booking(native: Native, pool: str) -> None:
    """The key stands for one request: another one with it is refused."""
    put(native, pool, limit=1)
    wanted = {"key": str(uuid4()), "needs": [{"pool": pool}]}
    wanted |= {"start": (now() + DAY).isoformat()}
    wanted |= {"end": (now() + 2 * DAY).isoformat()}
    first = native.ask("POST", "/v1/bookings", wanted)
    again = native.ask("POST", "/v1/bookings", wanted)
    assert first.status == again.status == 201
    assert first.body == again.body
    assert code(native.ask("POST", "/v1/bookings", wanted | {"note": "x"})) == (409, "key_reused")


def test_units_that_are_not_free_are_refused(native: Native, pool: str) -> None:
    """A lease without an end has its unit for ever; `force` books all the same."""
    put(native, pool, limit=1)
    lease = native.ask("POST", "/v1/leases", {"needs": [{"pool": pool}], "key": str(uuid4())})
    assert lease.status == 201
    refused = book(native, {"pool": pool})
    assert code(refused) == (409, "booked")
    assert "offers" in refused.body["detail"]
    assert book(native, {"pool": pool}, force=True).status == 201
    assert code(book(native, {"pool": f"{pool}q"})) == (422, "pool_unknown")
    assert code(book(native, {"pool": pool, "units": 2})) == (422, "units_above_limit")


def test_a_lease_is_not_extended_into_a_booking(native: Native, pool: str) -> None:
    """Its hold may only be set to an end before the start."""
    put(native, pool, limit=1)
    asked = {"needs": [{"pool": pool}], "key": str(uuid4()), "hold": 60}
    lease = native.ask("POST", "/v1/leases", asked).body["id"]
    assert book(native, {"pool": pool}).status == 201
    assert native.ask("PATCH", f"/v1/leases/{lease}", {"hold": 7000}).status == 200
    assert code(native.ask("PATCH", f"/v1/leases/{lease}", {"hold": 7300})) == (409, "booked")
    assert code(native.ask("PATCH", f"/v1/leases/{lease}", {"hold": None})) == (409, "booked")


def test_a_booking_that_runs_is_used_by_its_id(native: Native, pool: str) -> None:
    """The lease ends with the window; who borrows reads for whom it ends."""
    put(native, pool, limit=2)
    today = now()
    one = book(
        native,
        {"pool": pool},
        start=today.isoformat(),
        end=(today + timedelta(hours=1)).isoformat(),
    ).body
    used = {"needs": [{"pool": pool}], "key": str(uuid4()), "booking": one["id"]}
    lease = native.ask("POST", "/v1/leases", used)
    assert lease.status == 201, lease.body
    assert (lease.body["booking"], lease.body["hold_until"]) == (one["id"], one["end"])
    assert native.ask("GET", f"/v1/bookings/{one['id']}").body["next"]["state"] == "taken"
    later = book(native, {"pool": pool, "units": 2}).body
    endless = native.ask("POST", "/v1/leases", {"needs": [{"pool": pool}], "key": str(uuid4())})
    assert endless.status == 202
    assert endless.body["waiting"]["code"] == "booked"
    assert "hold" in endless.body["waiting"]["reason"]
    asked = {"needs": [{"pool": pool}], "key": str(uuid4()), "borrow": 600}
    borrower = native.ask("POST", "/v1/leases", asked)
    assert borrower.status == 201
    assert (borrower.body["yields_to"], borrower.body["hold_until"]) == (
        later["id"],
        later["start"],
    )
    assert later["id"] in borrower.body["notice"]
    renewed = native.ask("POST", f"/v1/leases/{borrower.body['id']}/renew", {})
    assert renewed.body["notice"] == borrower.body["notice"]


def test_a_series_by_local_time(native: Native, pool: str) -> None:
    """Windows keep their local times over a change of the clock; a day can be left out."""
    put(native, pool, limit=1)
    year = now().year + 1
    start = f"{year}-03-01T07:00:00+00:00"
    series = {"every": "week", "zone": "Europe/Berlin", "count": 8}
    one = book(
        native, {"pool": pool}, start=start, end=f"{year}-03-01T08:00:00+00:00", repeat=series
    )
    assert one.status == 201, one.body
    hours = [window["start"][11:16] for window in one.body["windows"]]
    assert len(hours) == 8
    assert hours[0] == "07:00"
    assert hours[-1] == "06:00"  # summer time
    day = one.body["windows"][1]["start"][:10]
    change = {"skip": [day], "note": "no holiday", "generation": 1}
    changed = native.ask("PATCH", f"/v1/bookings/{one.body['id']}", change)
    assert changed.status == 200, changed.body
    assert len(changed.body["windows"]) == 7
    assert changed.body["repeat"]["skip"] == [day]
    again = native.ask("PATCH", f"/v1/bookings/{one.body['id']}", change)
    assert code(again) == (412 if again.status == 412 else 409, "booking_generation")


@pytest.mark.parametrize(
    "repeat",
    [
        {"every": "day"},
        {"every": "day", "count": 1, "until": "2099-01-01"},
        {"every": "day", "count": 367},
        {"every": "day", "until": "2099-01-01"},
        {"every": "day", "until": "soon"},
        {"every": "day", "count": 2, "zone": "Mars/Base"},
        {"every": "day", "count": 2, "zone": "../../etc/passwd"},
        {"every": "day", "count": 2, "zone": ""},
        {"every": "day", "count": 2, "zone": "a/" * 300 + "b"},
        {"every": "day", "count": 2, "days": ["mo"]},
        {"every": "week", "count": 2, "days": ["xx"]},
        {"every": "week", "count": 2, "days": ["mo"] * 8},
        {"every": "week", "count": 0},
        {"every": "day", "count": 1, "skip": ["2026-13-01"]},
        {"every": "month", "count": 1},
    ],
)
def test_invalid_series(native: Native, pool: str, repeat: dict[str, Any]) -> None:
    """Each is refused with a reason."""
    put(native, pool, limit=1)
    assert book(native, {"pool": pool}, repeat=repeat).status == 400


def test_no_request_names_more_pools_than_a_booking_may_have(native: Native, pool: str) -> None:
    """It is refused before any of them is read; the control names as many as it may."""
    names = [f"{pool}{n}" for n in range(17)]
    asked = "&".join(f"needs={name}" for name in names)
    assert code(native.ask("GET", f"/v1/offers?{asked}")) == (400, "invalid")
    assert code(book(native, *({"pool": name} for name in names))) == (400, "invalid")
    fewer = "&".join(f"needs={name}" for name in names[1:])
    assert code(native.ask("GET", f"/v1/offers?{fewer}")) == (422, "pool_unknown")


def test_a_page_of_bookings_ends_early_if_they_have_many_windows(native: Native, pool: str) -> None:
    """All its windows are made at once; the next page goes on."""
    put(native, pool, limit=40)
    start = now() + timedelta(hours=2)
    short = {"start": start.isoformat(), "end": (start + timedelta(minutes=1)).isoformat()}
    series = {"every": "day", "count": 366}
    for n in range(15):
        name = f"{pool}/{n // 5}"
        put(native, name, limit=40)
        assert book(native, {"pool": name}, **short, repeat=series).status == 201
    found = native.ask("GET", "/v1/bookings?limit=1000&owner=admin").body
    windows = sum(len(one["windows"]) for one in found["bookings"])
    assert windows <= 5_000
    assert found["next"] is not None
    more = native.ask("GET", f"/v1/bookings?limit=1000&cursor={found['next']}").body
    assert more["bookings"]
    assert native.ask("GET", f"/v1/bookings?limit=1000&pool={name}").body["next"] is None


def test_offers(native: Native, pool: str) -> None:
    """Windows are as long as they can be; a gang needs all its pools at once."""
    put(native, pool, limit=2)
    put(native, f"{pool}q", limit=1)
    today = now()
    one = book(native, {"pool": pool, "units": 2}).body
    query = f"needs={pool}%3D1&duration=3600"
    found = native.ask("GET", f"/v1/offers?{query}").body["offers"]
    assert found[0]["end"] == one["start"]
    assert found[1]["start"] == one["end"]
    lease = {"needs": [{"pool": f"{pool}q"}], "key": str(uuid4()), "hold": 3600}
    assert native.ask("POST", "/v1/leases", lease).status == 201
    both = native.ask("GET", f"/v1/offers?{query}&needs={pool}q").body["offers"]
    assert len(both) == 1  # the hour before the booking is too short by what has passed since
    assert both[0]["start"] == one["end"]
    end = (today + timedelta(hours=5)).isoformat().replace("+", "%2B")
    start = today.isoformat().replace("+", "%2B")
    bounded = native.ask("GET", f"/v1/offers?needs={pool}&between={start}/{end}").body["offers"]
    assert len(bounded) == 2
    assert code(native.ask("GET", "/v1/offers?needs=missing")) == (422, "pool_unknown")
    assert code(native.ask("GET", f"/v1/offers?needs={pool}%3Dx")) == (400, "invalid")
    assert code(native.ask("GET", f"/v1/offers?needs={pool}&between=now")) == (400, "invalid")
    assert code(native.ask("GET", f"/v1/offers?needs={pool}&limit=51")) == (400, "invalid")
    assert code(native.ask("GET", "/v1/offers")) == (400, "invalid")
