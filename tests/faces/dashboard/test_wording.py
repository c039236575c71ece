"""What pages say and where links lead: nouns agree with numbers, lists are the right ones."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from moorage.faces.dashboard.pages.fleet import FILTERS
from moorage.faces.dashboard.pages.overview import alarms_of
from moorage.faces.dashboard.rendering import plural
from moorage.wire.admission import Overstay, Pool
from moorage.wire.fleet import AgentGroup
from tests.cli.tables.building import built
from tests.faces.dashboard.support.browserless import signed_in
from tests.faces.dashboard.support.elements import every
from tests.faces.v1.leasing import ask, make_pool
from tests.faces.v1.native import Native

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def group(**counts: int) -> AgentGroup:
    """Return a group of agents, some of which are silent."""
    return AgentGroup(
        name="a/b c",
        desired={},
        members=9,
        late=counts.get("late", 0),
        lost=counts.get("lost", 0),
        suspect_network=False,
        suspect_since=None,
        waits_until=None,
    )


def test_alarms_lead_to_the_agents_that_they_name() -> None:
    """The address has the parameter by which the page of the fleet selects a group."""
    found = [*alarms_of([], [group(lost=1, late=2)], NOW)]
    assert [one.text for one in found] == ["1 agent of a/b c is lost", "2 agents of a/b c are late"]
    assert [one.address for one in found] == [
        "/ui/fleet?agents=lost&agent_group=a%2Fb+c#agents",
        "/ui/fleet?agents=late&agent_group=a%2Fb+c#agents",
    ]
    assert {"lost", "late"} <= FILTERS.keys()


def test_the_alarm_of_a_pause_says_when_it_ends(native: Native) -> None:
    """A pause that nobody remembers has no end, and the overview says so."""
    forgotten, short = make_pool(native), make_pool(native)
    native.ask("POST", f"/v1/pools/{forgotten}:pause", {})
    native.ask("POST", f"/v1/pools/{short}:pause", {"lasts": 7_200})
    text = signed_in(native, "reader").get("/ui").document.text
    assert f"{forgotten} is paused by admin until somebody resumes it: no reason given" in text
    assert re.search(rf"{short} is paused by admin for (2h|1h59m)\S* more: no reason given", text)


@pytest.mark.parametrize(("count", "noun"), [(0, "units"), (1, "unit"), (2, "units")])
def test_nouns_agree_with_their_numbers(count: int, noun: str) -> None:
    """One unit, several units, and no units."""
    assert plural(count, "unit") == noun


def test_one_unit_is_not_units(native: Native) -> None:
    """The page of a pool with one lease and one ticket."""
    pool = make_pool(native, limit=2)
    ask(native, pool)
    page = signed_in(native, "reader").get(f"/ui/pools/{pool}").document
    assert "1 with 1 unit\n" in page.text
    assert "0 waiting for 0 units\n" in page.text


def test_the_list_begins_with_leases_that_last(native: Native) -> None:
    """Ended ones, which would come first, are shown if asked for."""
    pool = make_pool(native)
    ended = ask(native, pool).body["id"]
    native.ask("DELETE", f"/v1/leases/{ended}")
    granted = ask(native, pool).body["id"]
    waiting = ask(native, pool).body["id"]
    reader = signed_in(native, "reader")
    wanted = {"": {granted}, "&state=waiting": {waiting}, "&state=ended": {ended}}
    wanted["&state=all"] = {granted, waiting, ended}
    for query, ids in wanted.items():
        links = reader.get(f"/ui/leases?pool={pool}{query}").document.links
        found = {one.rpartition("/")[2] for one in links if one.startswith("/ui/leases/")}
        assert found == ids, query
    assert reader.get("/ui/leases?state=odd").status == 400


def test_labels_that_are_addresses_are_links(native: Native) -> None:
    """Such as that of a CI job; other labels are text."""
    pool = make_pool(native)
    labels = {"build": "https://ci.example/7", "job": "javascript:x"}
    lease = ask(native, pool, labels=labels).body["id"]
    page = signed_in(native, "reader").get(f"/ui/leases/{lease}")
    assert page.document.links.count("https://ci.example/7") == 1
    assert not [one for one in page.document.links if "script" in one]
    assert [one for one in every(page, "span") if "javascript:x" in one.text]


def test_a_refused_form_leads_back_to_its_page(native: Native) -> None:
    """The message is for people, and one link leads to the page with the form."""
    pool = make_pool(native)
    ask(native, pool)
    ticket = ask(native, pool).body["id"]
    browser = signed_in(native, "operator")
    here = f"/ui/leases/{ticket}"
    form = next(one for one in browser.get(here).document.forms if one.action == f"{here}/priority")
    refused = browser.ask("POST", form.action, {**form.fields, "priority": "high"})
    assert refused.status == 400
    assert "The priority must be a whole number." in refused.document.text
    assert here in refused.document.links
    assert browser.get(here).status == 200
    gone = browser.get("/ui/leases/none")
    links = [one.text for one in every(gone, "a")]
    assert "Overview" in links and "Back" not in links, "the control: no form was sent"


def test_a_role_that_nothing_exceeds_is_named_alone(native: Native) -> None:
    """Nobody has a higher role than an administrator."""
    answer = native.ask("GET", "/v1/audit", token=native.token("operator"))
    assert answer.status == 403
    assert answer.body["detail"] == "This needs the role 'admin'."
    answer = native.ask("DELETE", "/v1/pools/none", token=native.token("reader"))
    assert answer.body["detail"] == "This needs the role 'operator' or a higher one."


def test_an_old_holder_before_a_line_is_an_alarm() -> None:
    """It names holder and age, and leads to the lease; a line that does not move is grave."""
    held = {"lease": "l-1", "holder": "alice", "granted_at": NOW - timedelta(hours=5)}
    old = Overstay(**held, usual=240.0, blocks=True)
    for one in (old, replace(old, blocks=False)):
        (alarm,) = alarms_of([built(Pool, name="p", waiting=3, overstay=one)], [], NOW)
        assert alarm.grave is one.blocks
        assert alarm.text.startswith(
            "p: alice has units that have been held for 5h, usually at most 4m"
        )
        assert alarm.text.endswith("; 3 tickets waiting")
        assert alarm.address == "/ui/leases/l-1"
    assert [*alarms_of([built(Pool, name="p", waiting=3)], [], NOW)] == []
