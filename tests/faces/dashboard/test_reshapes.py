"""The pages of reshapes: two trees, amounts, consumers; undone only as it was shown."""

import csv
import io
import json
from typing import Any
from uuid import uuid4

import pytest

from moorage.faces.dashboard.pages.reshape_view import (
    LEAVE_OUT_SHOWN,
    PROVIDERS_SHOWN,
    ROWS_SHOWN,
    returning_of,
    view_of,
)
from moorage.wire.reshapes import (
    ReshapeDelta,
    ReshapeEffect,
    ReshapeGenerations,
    ReshapeLevel,
    ReshapeNode,
    ReshapeNote,
    ReshapePlaceChange,
    ReshapePlanned,
    ReshapeProviderChange,
    ReshapeSummary,
)
from tests.faces.dashboard.support.browserless import Browser, Page, signed_in
from tests.faces.dashboard.support.elements import every
from tests.faces.v1.leasing import ask, make_pool
from tests.faces.v1.native import Native
from tests.faces.v1.reshaping import PLACEMENT, Split

HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)> ' onmouseover='alert(1)",
    "{{ 7 * 7 }} {% raw %}",
    "javascript:alert(1)",
    "\u202eevil\u202c \u2066x\u2069",
    "a\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301",
    "=HYPERLINK(1)",
    "x" * 120,
)


def committed(split: Split, **more: Any) -> Any:
    """Commit the plan; return the reshape."""
    answer = split.committed(**more)
    assert answer.status == 201, answer
    return answer.body


def undo_form(browser: Browser, path: str) -> dict[str, str]:
    """Return the fields of the form that undoes a reshape."""
    page = browser.get(f"{path}/undo")
    assert page.status == 200, page
    (form,) = [one for one in page.document.forms if one.action == f"{path}/undo"]
    return form.fields


def line(page: Page, side: str, provider: str) -> str | None:
    """Return the text of a provider in one of the trees; None: it is not there."""
    found = every(page, "li", id=f"{side}-{provider}")
    return " ".join(found[0].text.split()) if found else None


def cells(page: Page, row: str) -> list[str]:
    """Return the texts of a row."""
    (found,) = every(page, "tr", id=row)
    return [" ".join(one.text.split()) for one in found.inner if one.tag in ("td", "th")]


def test_the_list_has_the_newest_first(native: Native) -> None:
    """With who, why, and what was touched; each leads to its page, and all can be exported."""
    first, second = Split(native), Split(native)
    older = committed(first, reason="older")["id"]
    newer = committed(second, reason="<b>newer</b>")["id"]
    page = signed_in(native, "reader").get("/ui/reshapes")
    assert page.status == 200, page
    rows = [one.attributes["id"] for one in every(page, "tr") if "id" in one.attributes]
    assert rows[:2] == [f"reshape-{newer}", f"reshape-{older}"]
    assert cells(page, rows[0])[0] == newer[:8]
    assert cells(page, rows[0])[3:] == ["2", "1", "", "", "<b>newer</b>"]
    assert {f"/ui/reshapes/{newer}", "/ui/reshapes.csv", "/ui/reshapes.json"} <= {
        *page.document.links
    }
    exported = json.loads(signed_in(native, "reader").get("/ui/reshapes.json").body)
    assert [one["id"] for one in exported["reshapes"]][:2] == [newer, older]


def test_pages_of_the_list_follow_each_other(native: Native) -> None:
    """The address has a cursor as the API has it; a wrong one is refused."""
    for _ in range(2):
        committed(Split(native))
    browser = signed_in(native, "reader")
    following = native.ask("GET", "/v1/reshapes?limit=1").body
    page = browser.get(f"/ui/reshapes?cursor={following['next']}")
    assert page.status == 200
    assert f"reshape-{following['reshapes'][0]['id']}" not in page.body
    assert "First page" in page.document.text
    assert browser.get("/ui/reshapes?cursor=odd").status == 400


def test_a_reshape_is_two_trees(native: Native) -> None:
    """What changes is said in words: what is new, where amounts change, who moves."""
    split = Split(native)
    done = committed(split, reason="split it")
    path = f"/ui/reshapes/{done['id']}"
    browser = signed_in(native, "reader")
    page = browser.get(path)
    assert page.status == 200, page
    assert line(page, "before", split.host) == f"host {split.host} amounts change"
    assert line(page, "before", split.child) is None
    assert line(page, "after", split.host) == f"host {split.host} amounts changed"
    assert line(page, "after", split.child) == f"level 2: host child {split.child} new"
    assert cells(page, f"place-{split.host}-VGPU")[2:] == [
        "removed",
        "before 4 →, after none",
        "before 0 →, after none",
        "before 3 →, after none",
        "before 1 →, after none",
    ]
    assert cells(page, f"place-{split.child}-VGPU")[2:4] == ["new", "before none →, after 4"]
    assert cells(page, f"move-{split.guest}-{split.child}-VGPU")[3] == "+3"
    assert cells(page, f"move-{split.guest}-{split.host}-VGPU")[3] == "-3"
    assert "split it" in page.document.text
    assert f"/ui/fleet/machines/{split.child}" in page.document.links
    audit = f"/ui/audit?target={done['id']}"
    assert audit not in page.document.links
    admin = signed_in(native, "admin")
    assert audit in admin.get(path).document.links
    assert "reshape.commit" in admin.get(audit).document.text


def test_moves_and_amounts_are_downloaded_as_a_whole(native: Native) -> None:
    """Both forms have the names of the native API."""
    split = Split(native)
    path = f"/ui/reshapes/{committed(split)['id']}"
    browser = signed_in(native, "reader")
    links = {*browser.get(path).document.links}
    for table in ("consumers", "places"):
        assert {f"{path}/{table}.csv", f"{path}/{table}.json"} <= links
        answer = json.loads(browser.get(f"{path}/{table}.json").body)
        assert answer["complete"] is True
        header, *lines = csv.reader(io.StringIO(browser.get(f"{path}/{table}.csv").body))
        assert len(lines) == len(answer[table]) == 2
        assert "class" in header
        assert all(set(row) == set(header) for row in answer[table])


def test_only_operators_see_the_button(native: Native) -> None:
    """Readers see neither it nor what undoing would do."""
    path = f"/ui/reshapes/{committed(Split(native))['id']}"
    for role, there in (("reader", False), ("operator", True), ("admin", True)):
        browser = signed_in(native, role)
        forms = [one.action for one in browser.get(path).document.forms]
        assert (f"{path}/undo" in forms) is there
        assert browser.get(f"{path}/undo").status == (200 if there else 403)


def test_undoing_shows_asks_and_does(native: Native) -> None:
    """Looking does nothing; then a reason and a confirmation; then the new reshape is shown."""
    split = Split(native)
    done = committed(split)
    path = f"/ui/reshapes/{done['id']}"
    browser = signed_in(native, "operator")
    shown = browser.get(f"{path}/undo")
    assert line(shown, "before", split.child) == (
        f"level 2: host child {split.child} gone afterwards"
    )
    assert line(shown, "after", split.child) is None
    assert cells(shown, f"place-{split.host}-VGPU")[2] == "new"
    assert native.ask("GET", f"/v1{path[3:]}").body["undone_by"] is None
    fields = {**undo_form(browser, path), "reason": "<i>wrong</i> host"}
    asked = browser.ask("POST", f"{path}/undo", fields)
    assert asked.status == 200
    assert "Undo this reshape?" in asked.document.text
    assert native.ask("GET", f"/v1{path[3:]}").body["undone_by"] is None
    (sure,) = asked.document.forms
    answers = [browser.ask("POST", f"{path}/undo", sure.fields) for _ in range(2)]
    assert [one.status for one in answers] == [303, 303], "a second click is a repetition"
    assert answers[0].headers["location"] == answers[1].headers["location"]
    after = browser.get(answers[0].headers["location"])
    assert "Undone by this reshape." in after.document.text
    assert "<i>wrong</i> host" in after.document.text
    assert path in after.document.links
    undone_by = native.ask("GET", f"/v1{path[3:]}").body["undone_by"]
    assert answers[0].headers["location"].startswith(f"/ui/reshapes/{undone_by}?")
    old = browser.get(path)
    assert f"/ui/reshapes/{undone_by}" in old.document.links
    assert f"/ui/fleet/machines/{split.child}" not in old.document.links
    assert f"{path}/undo" not in [one.action for one in old.document.forms]
    assert "was undone by" in browser.get(f"{path}/undo").document.text
    other = {**sure.fields, "id": str(uuid4())}
    late = browser.ask("POST", f"{path}/undo", other)
    assert late.headers["location"] == f"{path}?notice=undone-before"


def test_what_was_not_shown_is_not_done(native: Native) -> None:
    """If it would do something else by now, the reader looks again; without a look, nothing."""
    split = Split(native)
    path = f"/ui/reshapes/{committed(split)['id']}"
    browser = signed_in(native, "operator")
    fields = {**undo_form(browser, path), "sure": "yes"}
    without = {name: value for name, value in fields.items() if name != "digest"}
    assert browser.ask("POST", f"{path}/undo", without).status == 400
    other = {**fields, "digest": "0" * 64}
    answer = browser.ask("POST", f"{path}/undo", other)
    assert answer.headers["location"] == f"{path}/undo?notice=undo-differs"
    assert "Look at it again" in browser.get(answer.headers["location"]).document.text
    assert native.ask("GET", f"/v1{path[3:]}").body["undone_by"] is None
    assert browser.ask("POST", f"{path}/undo", fields).status == 303, "the control"
    assert native.ask("GET", f"/v1{path[3:]}").body["undone_by"] is not None


def leased(native: Native, host: str) -> tuple[str, str]:
    """Let a lease have a unit of a host; return the lease and its consumer."""
    consumer = str(uuid4())
    held = {"consumer": consumer, "allocations": {host: {"VGPU": 1}}}
    wanted = {**held, "project_id": "p", "user_id": "u"}
    answer = ask(native, make_pool(native), allocations=wanted)
    assert answer.status == 201, answer
    return answer.body["id"], consumer


def choices(page: Page) -> dict[str, tuple[str, bool]]:
    """Return what is said of each consumer that can be left out, and whether it is."""
    found = {}
    for one in every(page, "li"):
        for box in one.all("input", name="leave_out"):
            why = one.text.partition(box.attributes["value"])[2].strip(" :\n")
            found[box.attributes["value"]] = (why, "checked" in box.attributes)
    return found


def test_whom_an_undo_creates_again_is_said(native: Native) -> None:
    """The page lets the reader leave them out; the control: a split creates nobody again."""
    split = Split(native)
    browser = signed_in(native, "operator")
    plain = browser.get(f"/ui/reshapes/{committed(split)['id']}/undo")
    assert "created again" not in plain.document.text
    assert choices(plain) == {}
    split.plan = {"vacate": {split.guest: [split.child]}, "release": [split.guest]}
    page = browser.get(f"/ui/reshapes/{committed(split)['id']}/undo")
    assert "1 consumer would be created again" in page.document.text
    assert choices(page) == {split.guest: ("no lease has it", False)}


def test_consumers_of_ended_leases_are_left_out_by_a_click(native: Native) -> None:
    """Otherwise it is refused; the page with the chosen ones undoes it without them."""
    split = Split(native)
    lease, mine = leased(native, split.host)
    removed = [split.guest, mine]
    split.plan = {"vacate": {one: [split.host] for one in removed}, "release": removed}
    path = f"/ui/reshapes/{committed(split)['id']}/undo"
    assert native.ask("DELETE", f"/v1/leases/{lease}").status == 200
    browser = signed_in(native, "operator")
    refused = browser.get(path)
    assert "It cannot be undone." in refused.document.text
    ended, guest = ("its lease has ended", False), ("no lease has it", False)
    assert [*choices(refused).items()] == [(mine, ended), (split.guest, guest)]
    (form,) = [one for one in refused.document.forms if one.action == path]
    assert form.method == "get", "there is no button that undoes it"
    for address in (f"{path}?leave_out={mine}", f"{path}?leave_out={mine.upper()}+"):
        page = browser.get(address)
        assert page.status == 200
        assert choices(page) == {mine: ("left out", True), split.guest: guest}
        assert "It cannot be undone." not in page.document.text
    (form,) = [one for one in page.document.forms if one.method == "post" and one.action == path]
    fields = {**form.fields, "sure": "yes"}
    assert fields["leave_out"] == mine
    other = {**fields, "leave_out": f"{mine} {split.guest}"}
    answer = browser.ask("POST", path, other)
    again = f"leave_out={mine}+{split.guest}&notice=undo-differs"
    assert answer.headers["location"] == f"{path}?{again}"
    both = browser.get(answer.headers["location"])
    assert {*choices(both).values()} == {("left out", True)}
    asked = browser.ask("POST", path, form.fields)
    (sure,) = asked.document.forms
    assert sure.fields == fields, "the question keeps whom it leaves out"
    assert browser.ask("POST", path, sure.fields).headers["location"].endswith("reshape-undone")
    held = {one: native.ask("GET", f"/v1/consumers/{one}").status for one in removed}
    assert held == {split.guest: 200, mine: 404}


def test_who_cannot_be_left_out_can_be_taken_back(native: Native) -> None:
    """What is no UUID is refused; many more than a page lets choose are counted."""
    split = Split(native)
    path = f"/ui/reshapes/{committed(split)['id']}/undo"
    browser = signed_in(native, "operator")
    assert browser.get(f"{path}?leave_out=odd").status == 400
    page = browser.get(f"{path}?leave_out={split.guest}")
    assert "the reshape has not removed it" in page.document.text
    assert choices(page) == {split.guest: ("left out", True)}
    gone = {f"{number:032x}": None for number in range(LEAVE_OUT_SHOWN + 7)}
    note = ReshapeNote(code="created_again", message="", consumers=gone)
    plan = ReshapePlanned(
        digest="",
        effects=[],
        summary=ReshapeSummary(providers=[], places=[], consumers=[]),
        violations=[],
        generations=ReshapeGenerations(),
        revision=None,
        notes=[note],
    )
    shown = returning_of(plan, ["a"])
    assert [one.left_out for one in shown.rows] == [True, *[False] * (LEAVE_OUT_SHOWN - 1)]
    assert shown.more == 8
    address = "&".join(f"leave_out={uuid4()}" for _ in range(LEAVE_OUT_SHOWN))
    assert browser.get(f"{path}?{address}").status == 200, "all of them fit into an address"


def test_violations_name_their_places(native: Native) -> None:
    """What was changed since is listed, and there is no button; one pressed before does nothing."""
    split = Split(native)
    path = f"/ui/reshapes/{committed(split)['id']}"
    browser = signed_in(native, "operator")
    fields = {**undo_form(browser, path), "sure": "yes"}
    traits = {"resource_provider_generation": 1, "traits": ["HW_CPU_X86_AVX2"]}
    where = f"/resource_providers/{split.child}"
    traits["resource_provider_generation"] = native.ask("GET", where, **PLACEMENT).body[
        "generation"
    ]
    assert native.ask("PUT", f"{where}/traits", traits, **PLACEMENT).status == 200
    page = browser.get(f"{path}/undo")
    assert page.status == 200
    (table,) = every(page, "div", aria_label="Violations")
    assert "changed_since" in table.text
    assert f"host child {split.child}" in table.text
    assert [one.action for one in page.document.forms if one.method == "post"] == ["/ui/sign-out"]
    answer = browser.ask("POST", f"{path}/undo", fields)
    assert answer.headers["location"] == f"{path}/undo?notice=undo-differs"
    assert native.ask("GET", f"/v1{path[3:]}").body["undone_by"] is None


def test_an_open_list_and_an_open_reshape_are_current(peers: list[Native]) -> None:
    """Another process commits and undoes; open pages here show it."""
    here, there = peers[0], peers[-1]
    browser = signed_in(here, "reader")
    events = browser.events("/ui/reshapes")
    name, text = next(events)
    assert name == "main"
    done = committed(Split(there))
    assert done["id"] not in text
    while done["id"] not in text:
        _, text = next(events)
    events.close()
    page = browser.events(f"/ui/reshapes/{done['id']}")
    _, text = next(page)
    assert "Undone by" not in text
    assert there.ask("POST", f"/v1/reshapes/{done['id']}:undo").status == 200
    while "Undone by" not in text:
        _, text = next(page)
    page.close()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text(native: Native, name: str) -> None:
    """In lists, trees, plans, violations and exports; reasons, too."""
    split = Split(native, name)
    split.plan["rename"] = {split.host: f"{name} renamed {split.host}"}
    reason = name if name.isprintable() and len(name) != 13 else "odd"
    done = committed(split, reason=reason)
    path = f"/ui/reshapes/{done['id']}"
    browser = signed_in(native, "admin")
    for address in ("/ui/reshapes", path, f"{path}/undo", f"/ui/audit?target={done['id']}"):
        page = browser.get(address)
        assert page.status == 200, address
        assert page.document.inline == [], address
        for raw in ("<script>alert", "<img src=x", "\u202e", "\u2066"):
            assert raw not in page.body, address
    assert "becomes " in (line(browser.get(path), "before", split.host) or "")
    assert "was " in (line(browser.get(path), "after", split.host) or "")
    for table in ("consumers.csv", "places.json"):
        assert browser.get(f"{path}/{table}").status == 200


def test_unknown_reshapes_are_not_found(native: Native) -> None:
    """An id that is none is refused, as by the API."""
    browser = signed_in(native, "operator")
    for path in ("", "/undo", "/consumers.csv", "/places.json"):
        assert browser.get(f"/ui/reshapes/{uuid4()}{path}").status == 404
        assert browser.get(f"/ui/reshapes/odd{path}").status == 400


def node(name: str, parent: str | None = None) -> ReshapeNode:
    """Return a provider."""
    return ReshapeNode(name=name, parent=parent)


def chain(count: int, *, changed: int) -> list[ReshapeProviderChange]:
    """Return providers, each below the one before; only one is renamed."""
    found = []
    for number in range(count):
        before = node(f"p{number:05}", str(number - 1) if number else None)
        after = node("renamed", before.parent) if number == changed else before
        found.append(ReshapeProviderChange(provider=str(number), before=before, after=after))
    return found


def test_large_reshapes_are_bounded() -> None:
    """What changes is shown first, however deep; the rest is counted."""
    level = ReshapeLevel(total=1, reserved=0, used=0, free=1)
    same = [
        ReshapePlaceChange(provider="0", class_=f"A{number:04}", before=level, after=level)
        for number in range(ROWS_SHOWN)
    ]
    gone = ReshapePlaceChange(provider="0", class_="Z", before=level, after=None)
    deltas = [
        ReshapeDelta(consumer=str(number), provider="0", class_="Z", amount=-1)
        for number in range(10_000)
    ]
    summary = ReshapeSummary(
        providers=chain(10_000, changed=9_999), places=[*same, gone], consumers=deltas
    )
    traits = [f"CUSTOM_{number}" for number in range(300)]
    effect = ReshapeEffect(kind="traits_set", provider="0", before=[], after=traits)
    view = view_of(summary, [effect])
    for side, name in ((view.before, "p09999"), (view.after, "renamed")):
        assert len(side.rows) == PROVIDERS_SHOWN
        assert side.more == 10_000 - PROVIDERS_SHOWN
        assert (side.rows[-1].name, side.rows[-1].depth) == (name, 9_999)
    assert (view.places.rows[0].resource_class, view.places.rows[0].note) == ("Z", "removed")
    assert view.places.more == 1
    assert (len(view.consumers.rows), view.consumers.more) == (ROWS_SHOWN, 9_900)
    assert len(view.others.rows[0].after) < 310
    assert view.others.rows[0].after.endswith("…")


def test_notes_say_what_becomes_of_a_provider() -> None:
    """It moves, gets another name, or goes; what stays as it is has no note."""
    changes = [
        ReshapeProviderChange(provider="a", before=node("a"), after=node("a")),
        ReshapeProviderChange(provider="b", before=node("b"), after=node("b")),
        ReshapeProviderChange(provider="c", before=node("c", "a"), after=node("d", "b")),
        ReshapeProviderChange(provider="e", before=node("e", "a"), after=None),
        ReshapeProviderChange(provider="f", before=node("f", "a"), after=node("f")),
    ]
    view = view_of(ReshapeSummary(providers=changes, places=[], consumers=[]), [])
    assert [(one.provider, one.depth, one.note) for one in view.before.rows] == [
        ("a", 0, ""),
        ("c", 1, "becomes d, moves to b"),
        ("e", 1, "gone afterwards"),
        ("f", 1, "moves to the top"),
        ("b", 0, ""),
    ]
    assert [(one.provider, one.depth, one.note) for one in view.after.rows] == [
        ("a", 0, ""),
        ("b", 0, ""),
        ("c", 1, "was c, moved from a"),
        ("f", 0, "moved from a"),
    ]


def test_other_changes_are_those_that_no_other_table_has() -> None:
    """Of an inventory only the figures that change; totals are in the table of amounts."""
    before = {"total": 4, "reserved": 0, "min_unit": 1, "max_unit": 4, "allocation_ratio": 1.0}
    after = {**before, "total": 8, "max_unit": 2}
    effects = [
        ReshapeEffect(kind="inventory_set", provider="a", class_="X", before=before, after=after),
        ReshapeEffect(
            kind="inventory_set",
            provider="a",
            class_="Y",
            before=before,
            after=before | {"total": 9},
        ),
        ReshapeEffect(kind="inventory_set", provider="a", class_="Z", before=None, after=after),
        ReshapeEffect(kind="aggregates_set", provider="a", before=["g"], after=[]),
        ReshapeEffect(kind="provider_renamed", provider="a", before="a", after="b"),
        ReshapeEffect(kind="provider_drained", provider="a", before=None, after="drained: fan"),
    ]
    rows = view_of(ReshapeSummary(providers=[], places=[], consumers=[]), effects).others.rows
    assert [(one.what, one.before, one.after) for one in rows] == [
        ("figures of X", "max_unit 4", "max_unit 2"),
        ("aggregates", "g", ""),
        ("withheld", "", "drained: fan"),
    ]
