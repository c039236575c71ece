"""The page of a pool says which of its units are borrowed, and that there are bookings of it."""

from uuid import uuid4

from tests.faces.dashboard.support.browserless import signed_in
from tests.faces.dashboard.test_bookings import book, tomorrow
from tests.faces.v1.leasing import ask, make_pool
from tests.faces.v1.native import Native


def test_a_pool_that_borrows_is_not_over_its_limit(native: Native) -> None:
    """Four of two units in use look like a fault, unless the page says whose they are."""
    cohort = f"c{uuid4().hex[:8]}"
    lender = make_pool(native, limit=3, cohort=cohort, lending=2)
    pool = make_pool(native, limit=2, cohort=cohort, borrowing=5)
    browser = signed_in(native, "reader")
    assert "borrowed" not in browser.get(f"/ui/pools/{pool}").document.text
    for _ in range(4):
        assert ask(native, pool).body["state"] == "granted"
    text = browser.get(f"/ui/pools/{pool}").document.text
    assert f"4 of 2 in use · 2 of them borrowed from cohort {cohort}" in " ".join(text.split())
    assert "over its limit" not in text
    assert f"{cohort}: lends all that it does not use, borrows up to 5" in text
    lending = browser.get(f"/ui/pools/{lender}").document.text
    assert f"{cohort}: lends up to 2, borrows up to 0" in lending


def test_a_pool_with_bookings_leads_to_them(native: Native) -> None:
    """Units that are kept are not in use, so the calendar says why nobody gets them."""
    pool = make_pool(native)
    browser, calendar = signed_in(native, "reader"), f"/ui/bookings?pool={pool}"
    assert calendar not in browser.get(f"/ui/pools/{pool}").document.links
    book(native, pool, tomorrow())
    assert calendar in browser.get(f"/ui/pools/{pool}").document.links
