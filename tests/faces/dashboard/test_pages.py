"""All pages: who may see them, their headers, and what is never in them."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode
from uuid import uuid4

import pytest

from moorage.faces.dashboard.routes import ENTRIES
from moorage.faces.dashboard.routing import Page
from tests.faces.dashboard.support.browserless import Browser, signed_in
from tests.faces.v1.leasing import ask, make_pool, waiting_ticket
from tests.faces.v1.native import Native
from tests.faces.v1.reshaping import PLACEMENT, Split

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "{{ 7 * 7 }}",
    "javascript:alert(1)",
    "https://x.example/\"onclick='alert(1)'",
    "\u202eevil\u202c",
    "\U0001f4a9" * 40,
    "x" * 250,
)
EXPORTED = (
    *("pools", "leases", "fleet/capacity", "fleet/agents", "fleet/machines", "reshapes", "audit"),
    *("changes", "consumers", "projects"),
)
"""Every table that is windowed by a cursor."""

SAFE = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


def addresses(native: Native) -> dict[str, str]:
    """Return an address of each page, of a server with one of each thing that has a page."""
    pool = make_pool(native)
    ticket = waiting_ticket(native, pool).body["id"]
    host = native.provider(pool.replace("/", "-"))
    split = Split(native)
    reshape = split.committed().body["id"]
    start = datetime.now(UTC) + timedelta(days=1)  # noqa: TID251  # by the clock of the real server
    times = {"start": start.isoformat(), "end": (start + timedelta(hours=2)).isoformat()}
    wanted = {"needs": [{"pool": pool, "units": 1}], "key": str(uuid4()), "force": True, **times}
    booking = native.ask("POST", "/v1/bookings", wanted).body["id"]
    ids = {
        "/machines/": host,
        "/reshapes/": reshape,
        "/consumers/": split.guest,
        "/bookings/": booking,
    }
    found = {}
    for page in ENTRIES:
        if isinstance(page, Page):
            address = page.path.replace("{name+}", pool).replace("{operation}", "create_lease")
            one = next((one for part, one in ids.items() if part in address), ticket)
            found[page.path] = address.replace("{id}", one)
            if address.endswith("/claim"):
                found[page.path] = f"{address}?resources=VGPU:1"
            if address.endswith(("/bookings/new", "/change")):
                found[page.path] += "?" + urlencode({"pool": pool, **times})
    return found


def test_every_page_is_safe_and_well_formed(native: Native) -> None:
    """Pages have the policy, no inline script or style, and well-formed elements."""
    browser = signed_in(native, "admin")
    for path, address in addresses(native).items():
        if "agents" in path:
            continue  # there are none here; see test_fleet.py
        page = browser.get(address)
        assert page.status == 200, (address, page.body)
        assert page.document.inline == [], address
        policy = page.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "require-trusted-types-for 'script'" in policy
        assert {name: page.headers[name] for name in SAFE} == SAFE


def test_errors_have_the_same_headers(native: Native) -> None:
    """Also what is answered without a session, and files."""
    browser = signed_in(native, "reader")
    for address, status in (
        ("/ui/nothing", 404),
        ("/ui/pools/there/is/none", 404),
        ("/ui/leases/none", 404),
        ("/ui/leases?older=x", 400),
        ("/ui/static/x/none.js", 404),
        ("/ui/static/x/../../app.py", 404),
        ("/ui/%00", 400),
    ):
        page = browser.get(address.replace("%00", "\0"))
        assert page.status == status, (address, page.body)
        assert {name: page.headers[name] for name in SAFE} == SAFE
    assert browser.ask("DELETE", "/ui/pools").status == 405
    assert browser.ask("HEAD", "/ui/pools").body == ""


def test_the_filter_of_leases_knows_the_pools(native: Native) -> None:
    """It offers their names, and an unknown one is not just an empty list."""
    pool = make_pool(native)
    browser = signed_in(native, "reader")
    page = browser.get(f"/ui/leases?pool={pool}")
    assert f'<option value="{pool}">' in page.body
    assert "No such leases or tickets." in page.document.text
    unknown = browser.get("/ui/leases?pool=%3Cnone%3E").document.text
    assert "There is no pool <none>." in unknown


def test_errors_keep_the_navigation(native: Native) -> None:
    """A reader goes on from a page that has failed, and can sign out; others are led nowhere."""
    browser = signed_in(native, "reader")
    for address in ("/ui/nothing", "/ui/leases/none", "/ui/leases?older=x"):
        page = browser.get(address)
        assert page.status >= 400
        assert {"/ui/pools", "/ui/fleet", "/ui/api"} <= {*page.document.links}, address
        assert page.document.inline == []
    (out,) = page.document.forms
    assert browser.ask("POST", out.action, out.fields).status == 303
    assert browser.get("/ui/nothing").status == 303


@pytest.mark.parametrize("project", [None, "p1"])
def test_a_page_shows_only_what_its_reader_may_ask(native: Native, project: str | None) -> None:
    """Links lead only to pages that the reader may see; those of a project see no audit log."""
    browser = signed_in(native, "reader", project)
    overview = browser.get("/ui").document
    for link in overview.links:
        if link.startswith("/ui"):
            assert browser.get(link).status == 200, link
    assert ("/ui/audit" in overview.links) == (
        native.ask("GET", "/v1/audit", token=native.token("reader", project)).status == 200
    )
    assert browser.get("/ui/audit").status == (200 if "/ui/audit" in overview.links else 403)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_are_shown_as_text(native: Native, text: str) -> None:
    """In labels, reasons and names, on every page that shows them, and in notices."""
    browser, pool = signed_in(native, "admin"), make_pool(native)
    answer = native.ask("POST", f"/v1/pools/{pool}:pause", {"reason": text[:200]})
    if not text.isprintable():
        assert answer.status == 400, "what a terminal or a browser would obey is never stored"
        return
    labels = {"job": text, "holder": text, "build": text}
    ticket = ask(native, pool, labels=labels)
    assert ticket.status == 202, ticket
    pages = ["/ui", "/ui/pools", f"/ui/pools/{pool}", f"/ui/leases/{ticket.body['id']}"]
    pages += ["/ui/leases?label=job%3Dx", "/ui/audit", "/ui/changes?kind=lease"]
    for path in pages:
        page = browser.get(path)
        assert page.status == 200, path
        assert page.document.inline == [], path
        assert "<script>alert" not in page.body
        assert "<img src=x" not in page.body
    for path in ("/ui?notice=", "/ui/fit?resources=", "/ui/leases?owner="):
        page = browser.get(path + "%3Cscript%3Ealert(1)%3C%2Fscript%3E")
        assert page.document.inline == [], path
    native.ask("DELETE", f"/v1/leases/{ticket.body['id']}")


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_of_the_ledger_are_text(native: Native, text: str) -> None:
    """Placement allows any character in names of providers, projects and users."""
    browser, name = signed_in(native, "admin"), f"{text[:150]}{uuid4()}"
    host, guest = str(uuid4()), str(uuid4())
    made = native.ask("POST", "/resource_providers", {"name": name, "uuid": host}, **PLACEMENT)
    assert made.status == 200, made
    stock = {"resource_provider_generation": 0, "inventories": {"PCPU": {"total": 4}}}
    native.ask("PUT", f"/resource_providers/{host}/inventories", stock, **PLACEMENT)
    held = {
        "allocations": {host: {"resources": {"PCPU": 1}}},
        "project_id": text,
        "user_id": text,
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    placed = native.ask("PUT", f"/allocations/{guest}", held, **PLACEMENT)
    assert placed.status == 204, placed
    paths = [f"/ui/fleet/machines/{host}", f"/ui/consumers/{guest}", f"/ui/consumers?tree={host}"]
    paths += [
        f"/ui/fit?resources=PCPU:1&in_tree={host}",
        f"/ui/fit?resources=PCPU:9&in_tree={host}",
    ]
    paths += [
        f"/ui/fit/claim?resources=PCPU:1&place={host}",
        "/ui/projects",
        "/ui/projects?by=user",
    ]
    paths += [f"/ui/projects?{urlencode({'project': text})}"]
    paths += [f"/ui/consumers?{urlencode({'project': text, 'user': text})}"]
    for path in paths:
        page = browser.get(path)
        assert page.status == 200, path
        assert page.document.inline == [], path
        assert "<script>alert" not in page.body and "<img src=x" not in page.body
        assert "\u202e" not in page.body
    for link in browser.get(paths[0]).document.links:
        if link.startswith(("/ui/projects", "/ui/consumers")):
            shown = browser.get(link)
            assert (shown.status, guest[:8] in shown.body or "PCPU" in shown.body) == (200, True)
    native.ask("DELETE", f"/allocations/{guest}", **PLACEMENT)


@pytest.mark.parametrize("page", EXPORTED)
def test_every_table_is_exported(native: Native, page: str) -> None:
    """Its page has links to both forms, with the same rows; without rows there is a header."""
    browser = signed_in(native, "admin")
    ask(native, make_pool(native))
    native.provider(f"exported-{page}")
    shown = browser.get(f"/ui/{page.removesuffix('/capacity').removesuffix('/agents')}").document
    assert {f"/ui/{page}.csv", f"/ui/{page}.json"} <= set(shown.links)
    answer = json.loads(browser.get(f"/ui/{page}.json").body)
    rows = answer[page.rpartition("/")[2]]
    header, *lines = csv.reader(io.StringIO(browser.get(f"/ui/{page}.csv").body))
    assert len(lines) == len(rows)
    assert all(set(row) <= set(header) for row in rows)


def test_exports_execute_nothing(native: Native) -> None:
    """A cell that a spreadsheet would take for a formula is text."""
    browser, pool = signed_in(native, "admin"), make_pool(native)
    ask(native, pool, key="=HYPERLINK(1)")
    table = browser.get(f"/ui/leases.csv?pool={pool}")
    assert table.headers["content-type"] == "text/csv; charset=utf-8"
    assert table.headers["content-disposition"] == 'attachment; filename="leases.csv"'
    assert ",'=HYPERLINK(1)," in table.body
    assert '"key": "=HYPERLINK(1)"' in browser.get(f"/ui/leases.json?pool={pool}").body


def test_changes_begin_with_the_oldest_if_others_are_gone(native: Native) -> None:
    """A cursor of another epoch, or of changes that are not kept; the page says so."""
    pool, browser = make_pool(native), signed_in(native, "reader")
    for after, said in (("7.1", True), ("1.0", False), ("", False)):
        text = browser.get(f"/ui/changes?after={after}&kind=pool").document.text
        assert (pool in text, "no longer kept" in text) == (True, said), after


@pytest.mark.parametrize(
    "key",
    ["=1", "+1", "-1", "@A1", " =1", "\u3000@A1", "\uff1d1", "\uff0b1", "\uff0d1", "\uff20A1"],
)
def test_no_cell_begins_like_a_formula(native: Native, key: str) -> None:
    """Not after blanks either, nor with the wide signs; the control, another text, stays."""
    browser, pool = signed_in(native, "reader"), make_pool(native)
    assert ask(native, pool, key=key).status == 201
    assert ask(native, pool, key=f"a{key}").status == 202
    cells = [
        cell
        for row in csv.reader(browser.get(f"/ui/leases.csv?state=all&pool={pool}").body.split("\n"))
        for cell in row
    ]
    blank = key[:1] if key[:1].isspace() else ""
    assert f"{blank}'{key.lstrip()}" in cells
    assert f"a{key}" in cells
    assert not [
        cell for cell in cells if cell.lstrip()[:1] in set("=+-@\uff1d\uff0b\uff0d\uff20") - {""}
    ]


def test_without_the_dashboard_there_is_none(tmp_path_factory: pytest.TempPathFactory) -> None:
    """`--no-ui` leaves the address to Placement, which has no such resource."""
    from tests.e2e.support.server import serve

    database = tmp_path_factory.mktemp("without") / "moorage.sqlite"
    with serve(database, "--no-ui", "--no-access-log") as server:
        native = Native(server.url, database)
        assert Browser(native.url).get("/ui").status == 401
        assert native.ask("GET", "/ui").status == 404
