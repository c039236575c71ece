"""The page of a lease: its story in order, and notices that say what was done."""

import json
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, unquote
from uuid import uuid4

import pytest

from tests.faces.dashboard.support.browserless import confirming, signed_in
from tests.faces.v1.leasing import ask, lease_action, make_pool, waiting_ticket
from tests.faces.v1.native import Native

HOUR = timedelta(hours=1)
MANY = 101
"""More actions than a story has."""


def story(native: Native, lease: str) -> list[str]:
    """Return what has happened to a lease, without ages."""
    body = signed_in(native, "admin").get(f"/ui/leases/{lease}").body
    items = body.partition('<ol class="story">')[2].partition("</ol>")[0].split("<li>")[1:]
    return [item.partition("</span>: ")[2].partition("</li>")[0] for item in items]


def test_stories_have_their_order(native: Native) -> None:
    """Also if several things happened at the same time."""
    pool = make_pool(native)
    lease = ask(native, pool).body["id"]
    native.ask("DELETE", f"/v1/leases/{lease}")
    assert story(native, lease) == ["Asked for by admin", "Granted", "Ended: released"]
    short = make_pool(native, ttl=1.0)
    lost = ask(native, short).body["id"]
    assert native.ask("GET", f"/v1/leases/{lost}?wait=10&until=ended").body["state"] == "ended"
    assert story(native, lost) == ["Asked for by admin", "Granted", "Ended: ttl over"]
    ticket = waiting_ticket(native, pool).body["id"]
    lease_action(native, ticket, "move", priority=3)
    lease_action(native, ticket, "force")
    lease_action(native, ticket, "revoke", reason="test")
    told = story(native, ticket)
    assert [one for one in told if one[0].isupper()] == [
        "Asked for by admin",
        "Granted by force",
        "Ended: revoked (test)",
    ]
    assert sorted(one for one in told if one[0].islower()) == [
        "lease.force by admin",
        "lease.move by admin",
        "lease.revoke by admin",
    ]


def test_what_is_forced_within_the_limit_is_not_said_to_be_over_it(native: Native) -> None:
    """The first of 15 units of a paused pool goes over no limit, only past the pause."""
    pool = make_pool(native, limit=15)
    native.ask("POST", f"/v1/pools/{pool}:pause", {"reason": "test"})
    ticket = ask(native, pool).body["id"]
    lease_action(native, ticket, "force")
    assert "Granted by force" in story(native, ticket)
    browser = signed_in(native, "reader")
    for page in (f"/ui/pools/{pool}", f"/ui/leases/{ticket}", f"/ui/leases?pool={pool}"):
        shown = browser.get(page).document.text
        assert "over the limit" not in shown and "over its limit" not in shown, page
    assert "by force" in browser.get(f"/ui/pools/{pool}").document.text


def test_a_ticket_shows_its_alternatives(native: Native) -> None:
    """Each with what it waits for; the lease that it becomes shows what it was asked for with."""
    first, second, third = (make_pool(native) for _ in range(3))
    held = [ask(native, name).body["id"] for name in (first, second)]
    any_of = [[{"pool": first}], [{"pool": second}, {"pool": third}]]
    ticket = ask(native, any_of=any_of, labels={"job": "<b>x"}).body["id"]
    browser, said = signed_in(native, "reader"), f"1 of {first} or 1 of {second} and 1 of {third}"
    page = browser.get(f"/ui/leases/{ticket}").document.text
    assert said in page
    assert f"1 of 1 unit of {second} is held" in page
    native.ask("DELETE", f"/v1/leases/{held[1]}")
    assert native.ask("GET", f"/v1/leases/{ticket}?wait=10").body["state"] == "granted"
    page = browser.get(f"/ui/leases/{ticket}").document.text
    assert f"granted 1 of {second}, 1 of {third}" in page
    assert "Asked for any of" in page and said in page


def test_a_story_says_what_it_lacks(native: Native) -> None:
    """Whatever was done to others, it has all; of very many actions on it, the newest ones."""
    pool = make_pool(native)
    ticket = waiting_ticket(native, pool).body["id"]
    lease_action(native, ticket, "move", priority=3)
    for number in range(MANY):
        native.ask("POST", f"/v1/pools/{pool}:{'resume' if number % 2 else 'pause'}", {})
    browser = signed_in(native, "admin")
    page = browser.get(f"/ui/leases/{ticket}").document.text
    assert "lease.move" in page
    assert "are not shown" not in page
    for number in range(MANY):
        lease_action(native, ticket, "move", priority=number % 5)
    assert "are not shown" in browser.get(f"/ui/leases/{ticket}").document.text


def test_who_has_changed_it_is_a_link(native: Native) -> None:
    """From a pool, for admins; in the audit log, a target leads to what was done to it."""
    pool, other = make_pool(native), make_pool(native)
    for name in (pool, other):
        native.ask("POST", f"/v1/pools/{name}:pause", {"reason": "test"})
    browser, of_pool = signed_in(native, "admin"), f"/ui/audit?target={quote(pool)}"
    assert of_pool in browser.get(f"/ui/pools/{pool}").document.links
    whole = browser.get("/ui/audit").document
    assert of_pool in map(unquote, whole.links) and other in whole.text
    page = browser.get(of_pool).document
    assert "pool.pause" in page.text and other not in page.text
    rows = json.loads(browser.get(of_pool.replace("audit", "audit.json")).body)["audit"]
    assert [(row["action"], row["target"]) for row in rows] == [
        ("pool.pause", pool),
        ("pool.put", pool),
    ]
    assert "No such actions." in browser.get("/ui/audit?target=nothing").document.text
    operator = signed_in(native, "operator").get(f"/ui/pools/{pool}").document
    assert of_pool not in operator.links


def test_actions_say_what_they_changed(native: Native) -> None:
    """The old value and the new one, or the reason; a machine's are found by its name."""
    pool, host, name = make_pool(native, limit=40), str(uuid4()), f"quay-{uuid4()}"
    native.ask("POST", f"/v1/pools/{pool}:pause", {"reason": "no addresses"})
    native.ask("PUT", f"/v1/pools/{pool}", {"limit": 2, "ttl": 120})
    browser = signed_in(native, "admin")
    text = browser.get(f"/ui/audit?target={quote(pool)}").document.text
    assert "limit: 40 → 2" in text and "ttl: 1m → 2m" in text and "reason: no addresses" in text
    native.ask("POST", "/v1/providers:bulk", {"providers": [{"uuid": host, "name": name}]})
    native.ask("POST", f"/v1/providers/{host}/drain", {"reason": "smoke"})
    page = browser.get(f"/ui/audit?target={name}").document
    assert "No such actions." in page.text and f"provider {name}" in page.text
    assert f"/ui/audit?target={host}" in page.links
    native.ask("POST", f"/v1/providers/{host}/resume", {})
    text = browser.get(f"/ui/audit?target={host}").document.text
    assert "reason: smoke" in text and "drained: smoke → -" in text and "- →" not in text


def test_a_search_for_a_user_leads_to_consumers(native: Native) -> None:
    """Users are not searched, which is said; the name keeps its letters in the address."""
    page = signed_in(native, "reader").get("/ui/find?text=a%26user").document
    assert "Users of consumers are not searched" in page.text
    assert "/ui/consumers?user=a%26user" in page.links


def test_actions_since_a_time_of_day(native: Native) -> None:
    """`23:00` is the last 23:00: what was done since then is found, and nothing before it."""
    pool = make_pool(native)
    browser = signed_in(native, "admin")
    an_hour_ago = datetime.now(UTC) - HOUR  # noqa: TID251 - the server's clock is meant
    address = f"/ui/audit?target={quote(pool)}"
    since = browser.get(f"{address}&since={an_hour_ago:%H:%M}").document.text
    until = browser.get(f"{address}&until={an_hour_ago:%H:%M}").document.text
    assert "pool.put" in since
    assert "No such actions." in until
    assert browser.get(f"{address}&since=25:00").status == 400


def test_an_unknown_start_has_no_invented_reason(native: Native) -> None:
    """Leases have ended, but a paused pool grants nothing, however long they take."""
    pool = make_pool(native)
    native.ask("DELETE", f"/v1/leases/{ask(native, pool).body['id']}")
    native.ask("POST", f"/v1/pools/{pool}:pause", {"reason": "test"})
    ticket = ask(native, pool).body["id"]
    text = signed_in(native, "reader").get(f"/ui/leases/{ticket}").document.text
    assert "is resumed (test)" in text
    assert "Starts inunknown" in "".join(text.split("\n"))
    assert "no lease has ended" not in text


def test_what_had_ended_before_was_not_revoked(native: Native) -> None:
    """A page can be old: the notice says what has really happened, also after a second click."""
    browser, pool = signed_in(native, "operator"), make_pool(native)
    first, second = (ask(native, pool).body["id"] for _ in range(2))
    page = browser.get(f"/ui/leases/{second}")
    fields = next(one.fields for one in page.document.forms if one.action.endswith("/revoke"))
    native.ask("DELETE", f"/v1/leases/{first}")
    native.ask("DELETE", f"/v1/leases/{second}")
    target = f"/ui/leases/{second}/revoke"
    sure = confirming(browser.ask("POST", target, fields), target)
    shown = browser.ask("POST", target, sure.fields).document.text
    assert "It has ended before." in shown
    assert "Nothing was done: it was so before." in shown
    target = f"/ui/leases/{ask(native, pool).body['id']}/revoke"
    sure = confirming(browser.ask("POST", target, fields), target)
    for said in ("Done.", "Nothing was done."):  # the second click would do something else
        assert said in browser.ask("POST", target, sure.fields).document.text


def test_a_ticket_that_waits_no_more_is_shown(native: Native) -> None:
    """A second click, or an old page, leads to the page of the lease and not to an error."""
    browser, pool = signed_in(native, "operator"), make_pool(native)
    ticket = waiting_ticket(native, pool).body["id"]
    page = browser.get(f"/ui/leases/{ticket}")
    fields = {**page.document.forms[-1].fields, "priority": "5"}
    target = f"/ui/leases/{ticket}/force"
    sure = confirming(browser.ask("POST", target, fields), target)
    for said in ("Done.", "Nothing was done."):
        assert said in browser.ask("POST", target, sure.fields).document.text
    for word in ("first", "priority"):
        answer = browser.ask("POST", f"/ui/leases/{ticket}/{word}", fields)
        assert answer.status == 200, answer
        assert "Nothing was done." in answer.document.text
        assert f"/ui/leases/{ticket}" in answer.document.links


@pytest.mark.parametrize("text", ["--5", "9" * 5_000, "-", "1.5", "", "x", "\u00b2", "\u0663"])
def test_what_is_no_priority_is_refused(native: Native, text: str) -> None:
    """It is the reader's mistake, not the server's."""
    ticket = waiting_ticket(native, make_pool(native)).body["id"]
    page = f"/ui/leases/{ticket}"
    answer = signed_in(native, "operator").submit(page, f"{page}/priority", priority=text)
    assert answer.status == 400, answer


def test_a_pool_whose_jobs_all_gave_up_is_shown(native: Native) -> None:
    """It has a past, but no lease of which it could be said how long it waited and lasted."""
    browser, pool = signed_in(native, "reader"), make_pool(native)
    ticket = waiting_ticket(native, pool).body["id"]
    answer = native.ask("DELETE", f"/v1/leases/{ticket}?gave_up=true")
    assert answer.body["cause"] == "gave_up", answer
    page = browser.get(f"/ui/pools/{pool}")
    assert page.status == 200
    assert "1 gave up after" in page.document.text
    assert "Lasted" not in page.document.text
