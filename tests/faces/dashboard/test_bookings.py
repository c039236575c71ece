"""The calendar of bookings: days by pool, and forms that show first what they would do."""

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest

from tests.faces.dashboard.support.browserless import Browser, Page, signed_in
from tests.faces.v1.native import Native

DAY = timedelta(days=1)


@pytest.fixture
def pool(native: Native) -> str:
    """Create a pool of two units that users may book."""
    name = f"c{uuid4().hex[:8]}"
    wanted = {"limit": 2, "book_ahead": 90 * 86400, "book_hours": 100}
    assert native.ask("PUT", f"/v1/pools/{name}", wanted).status == 200
    return name


def tomorrow() -> datetime:
    """Return noon of tomorrow, in UTC."""
    today = datetime.now(UTC)  # noqa: TID251  # as the real server shows it
    return (today + DAY).replace(hour=12, minute=0, second=0, microsecond=0)


def book(native: Native, pool: str, start: datetime, hours: float = 2, **more: Any) -> str:
    """Book a unit; return the id of the booking."""
    wanted = {
        "key": str(uuid4()),
        "needs": [{"pool": pool, "units": 1}],
        "start": start.isoformat(),
        "end": (start + timedelta(hours=hours)).isoformat(),
    }
    made = native.ask("POST", "/v1/bookings", wanted | more)
    assert made.status == 201, made
    booking: str = made.body["id"]
    return booking


def new(pool: str, start: datetime, hours: float = 2, **more: str) -> str:
    """Return the address at which a new booking is shown first."""
    end = start + timedelta(hours=hours)
    fields = {"pool": pool, "units": "1", "start": f"{start:%Y-%m-%dT%H:%M}"}
    return f"/ui/bookings/new?{urlencode({**fields, 'end': f'{end:%Y-%m-%dT%H:%M}', **more})}"


def confirmed(browser: Browser, page: Page, action: str) -> Page:
    """Send the form that a preview has; return the page that follows."""
    assert page.status == 200, page
    (form,) = [one for one in page.document.forms if one.action == action and one.method == "post"]
    answer = browser.ask("POST", action, form.fields)
    assert answer.status == 303, answer
    return browser.get(answer.headers["location"])


def text(page: Page) -> str:
    """Return what a page says, with single spaces."""
    assert page.status == 200, page
    assert page.document.inline == []
    return " ".join(page.document.text.split())


def of_pool(native: Native, pool: str) -> list[dict[str, Any]]:
    """Return the bookings of a pool."""
    found: list[dict[str, Any]] = native.ask("GET", f"/v1/bookings?pool={pool}").body["bookings"]
    return found


def test_days_by_pool(native: Native, pool: str) -> None:
    """A window over midnight is on both days; closures say so; other weeks have nothing."""
    start = tomorrow().replace(hour=22)
    first = book(native, pool, start, hours=4, note="release tests")
    closed = book(native, pool, start + 2 * DAY, hours=26, closure=True)
    browser = signed_in(native, "reader")
    page = browser.get(f"/ui/bookings?pool={pool}&from={start:%Y-%m-%d}")
    said = text(page)
    assert "22:00–24:00 1 admin" in said  # noqa: RUF001  # as the real server shows it
    assert "00:00–02:00 1 admin" in said  # noqa: RUF001  # as the real server shows it
    assert "all day 1 closed" in said
    links = [link for link in page.document.links if link.startswith("/ui/bookings/0")]
    assert [link.rpartition("/")[2] for link in links] == [first] * 2 + [closed] * 2
    assert "Look at it first" not in said, "readers do not book"
    later = browser.get(f"/ui/bookings?pool={pool}&from={start + 7 * DAY:%Y-%m-%d}")
    assert "Nothing of this pool is booked on these days." in text(later)


def test_a_booking_is_shown_first_and_made_once(native: Native, pool: str) -> None:
    """The preview changes nothing; sending its form twice makes one booking."""
    browser = signed_in(native, "operator")
    page = browser.get(new(pool, tomorrow(), note="a <b> & c", owner="x/alice"))
    assert "These units are free" in text(page)
    assert of_pool(native, pool) == []
    after = confirmed(browser, page, "/ui/bookings/new")
    confirmed(browser, page, "/ui/bookings/new")
    (made,) = of_pool(native, pool)
    assert (made["owner"], made["note"], made["start"]) == (
        "x/alice",
        "a <b> & c",
        tomorrow().isoformat().replace("+00:00", "Z"),
    )
    said = text(after)
    assert "Booked." in said
    assert f"--booking {made['id']}" in said
    entries = native.ask("GET", f"/v1/audit?target={made['id']}").body["entries"]
    assert [one["action"] for one in entries] == ["booking.create"]


def test_what_is_not_free_is_said_with_other_times(native: Native, pool: str) -> None:
    """They are links to the same question; who has the units is listed."""
    other = book(native, pool, tomorrow(), needs=[{"pool": pool, "units": 2}])
    browser = signed_in(native, "operator")
    page = browser.get(new(pool, tomorrow() + timedelta(hours=1)))
    said = text(page)
    assert "not free for the whole time" in said
    assert f"/ui/bookings/{other}" in page.document.links
    (free,) = [link for link in page.document.links if link.startswith("/ui/bookings/new?")]
    assert "These units are free" in text(browser.get(free))
    (form,) = [one for one in page.document.forms if one.action == "/ui/bookings/new"]
    refused = browser.ask("POST", "/ui/bookings/new", form.fields)
    assert refused.status == 409
    assert len(of_pool(native, pool)) == 1


def test_a_closure_and_a_series(native: Native, pool: str) -> None:
    """Without a number of units it closes all."""
    browser = signed_in(native, "operator")
    fields = {"closure": "yes", "units": "", "every": "week", "count": "3"}
    page = browser.get(new(pool, tomorrow(), **fields))
    assert "all of" in text(page)
    confirmed(browser, page, "/ui/bookings/new")
    (made,) = of_pool(native, pool)
    assert (made["closure"], made["needs"]) == (True, [{"pool": pool, "units": None}])
    assert len(made["windows"]) == 3


def test_a_change_is_shown_first(native: Native, pool: str) -> None:
    """A page that is older than another change does nothing."""
    booking = book(native, pool, tomorrow())
    browser = signed_in(native, "operator")
    later = tomorrow() + timedelta(hours=3)
    fields = {
        "start": f"{later:%Y-%m-%dT%H:%M}",
        "end": f"{later + DAY:%Y-%m-%dT%H:%M}",
        "note": "n",
    }
    path = f"/ui/bookings/{booking}/change"
    page = browser.get(f"{path}?{urlencode(fields)}")
    assert "Nothing is done yet" in text(page)
    assert of_pool(native, pool)[0]["generation"] == 1
    assert "Changed." in text(confirmed(browser, page, path))
    (changed,) = of_pool(native, pool)
    assert (changed["note"], changed["start"]) == ("n", later.isoformat().replace("+00:00", "Z"))
    assert "changed meanwhile" in text(confirmed(browser, page, path))
    assert of_pool(native, pool) == [changed]


def test_a_cancellation_says_what_ends(native: Native, pool: str) -> None:
    """The tickets that wait for it; nothing ends before it is confirmed."""
    booking = book(native, pool, tomorrow())
    wanted = {"key": "t", "needs": [{"pool": pool}], "booking": booking}
    ticket = native.ask("POST", "/v1/leases", wanted).body["id"]
    browser = signed_in(native, "operator")
    path = f"/ui/bookings/{booking}/cancel"
    page = browser.get(path)
    assert "1 ticket that waits for it would end" in text(page)
    assert f"/ui/leases/{ticket}" in page.document.links
    assert of_pool(native, pool)[0]["state"] == "coming"
    assert "Cancelled." in text(confirmed(browser, page, path))
    assert of_pool(native, pool) == []
    assert native.ask("GET", f"/v1/leases/{ticket}?until=ended").body["state"] == "ended"
    assert "cancelled already" in text(browser.get(path))


def test_only_the_owner_and_operators_have_the_forms(native: Native, pool: str) -> None:
    """The server refuses others whatever they send; the control is the owner."""
    booking = book(native, pool, tomorrow(), owner="shop/user")
    page = f"/ui/bookings/{booking}"
    for role, forms in (("reader", False), ("operator", True)):
        assert ("Cancel it" in text(signed_in(native, role).get(page))) == forms
    strangers = Browser(native.url)
    strangers.sign_in(native.token("user", "shop", name="stranger"))
    assert "Cancel it" not in text(strangers.get(page))
    preview = strangers.get(f"{page}/cancel")
    (form,) = [one for one in preview.document.forms if one.action == f"{page}/cancel"]
    assert strangers.ask("POST", f"{page}/cancel", form.fields).status == 403
    owner = Browser(native.url)
    owner.sign_in(native.token("user", "shop", name="user"))
    assert "Cancel it" in text(owner.get(page))
    assert "Cancelled." in text(confirmed(owner, owner.get(f"{page}/cancel"), f"{page}/cancel"))


@pytest.mark.parametrize(
    "query",
    [
        "",
        "pool=p",
        "pool=p&start=x&end=y",
        "pool=p&start=2030-01-01T10:00&end=2030-01-01T09:00",
        "pool=p&start=0001-01-01T00:00%2B14:00&end=9999-12-31T23:59-14:00",
        "pool=p&units=many&start=2030-01-01T10:00&end=2030-01-01T11:00",
        "pool=p&start=2020-01-01T10:00&end=2020-01-01T11:00",
    ],
)
def test_what_cannot_be_read_is_refused(native: Native, query: str) -> None:
    """With a page that says why."""
    page = signed_in(native, "operator").get(f"/ui/bookings/new?{query}")
    assert page.status == 400


@pytest.mark.parametrize("day", ["x", "0001-01-01", "9999-12-31", "2026-02-30"])
def test_days_that_there_are_not(native: Native, day: str) -> None:
    """Also those whose neighbours no calendar has."""
    assert signed_in(native, "reader").get(f"/ui/bookings?from={day}").status == 400


def test_the_calendar_file(native: Native, pool: str) -> None:
    """As the page: of one pool if the address names it."""
    booking = book(native, pool, tomorrow())
    page = signed_in(native, "reader").get(f"/ui/bookings.ics?pool={pool}")
    assert page.headers["content-type"].startswith("text/calendar")
    assert f"UID:{booking}-" in page.body
    assert page.body.count("BEGIN:VEVENT") == 1
