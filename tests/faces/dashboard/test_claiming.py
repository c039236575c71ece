"""Where it fits, by name; and a claim from the page: shown first, sure, audited, once."""

from urllib.parse import quote, urlencode
from uuid import uuid4

import pytest

from tests.faces.dashboard.support.browserless import Page, signed_in
from tests.faces.dashboard.support.elements import every
from tests.faces.v1.leasing import make_pool
from tests.faces.v1.native import Native

CLASS = "CUSTOM_CLAIMED"


@pytest.fixture(scope="module")
def fleet(native: Native) -> dict[str, str]:
    """Create thirty machines and one that is full; return their UUIDs by name."""
    machines = {f"r{number:02d}-n00": str(uuid4()) for number in range(30)}
    wanted = [
        {"uuid": uuid, "name": name, "inventories": {CLASS: {"total": 96}}}
        for name, uuid in machines.items()
    ]
    body = {"providers": wanted, "create_vocabulary": True}
    assert native.ask("POST", "/v1/providers:bulk", body).body["created"] == 30
    return machines


def form_of(page: Page) -> dict[str, str]:
    """Return the fields of the form that claims."""
    (form,) = [one for one in page.document.forms if one.action == "/ui/fit/claim"]
    return {**form.fields, "project": "shop", "user": "alice", "reason": "by hand"}


def test_places_are_named(native: Native, fleet: dict[str, str]) -> None:
    """Twenty with what would be left, as links; the others are counted, the same by the API."""
    page = signed_in(native, "reader").get(f"/ui/fit?resources={CLASS}:4")
    names = [f"r{number:02d}-n00" for number in range(20)]
    links = [link for link in page.document.links if "/machines/" in link]
    assert links == [f"/ui/fleet/machines/{fleet[name]}" for name in names]
    assert page.document.text.count(f"92 {CLASS}") == 20
    assert "and 10 more" in page.document.text
    assert "Claim" not in page.document.text, "only operators claim"
    answer = native.ask("GET", f"/v1/explain?candidates=resources={CLASS}:4").body
    assert [one["name"] for one in answer["places"]] == names
    assert (answer["more_places"], answer["places_exact"], answer["misses"]) == (10, True, [])
    bound = native.ask(
        "GET", f"/v1/explain?candidates=resources={CLASS}:4", token=native.token("reader", "p1")
    ).body
    assert (bound["found"], bound["places"], bound["more_places"]) == (True, [], 0)
    nowhere = native.ask(
        "GET", f"/v1/explain?candidates=resources={CLASS}:97", token=native.token("reader", "p1")
    ).body
    assert (nowhere["misses"], nowhere["more_misses"]) == ([], 0)


def test_the_nearest_are_named(native: Native, fleet: dict[str, str]) -> None:
    """What does not fit anywhere: the nearest places, with what each lacks."""
    page = signed_in(native, "reader").get(f"/ui/fit?resources={CLASS}%3D97")
    assert "It fits nowhere" in page.document.text
    assert f"/ui/fleet/machines/{fleet['r00-n00']}" in page.document.links
    assert f"does not admit 97 {CLASS}" in page.document.text or "has 96 of" in page.document.text
    assert "and 10 more" in page.document.text


@pytest.mark.parametrize(
    "typed",
    [
        f"/allocation_candidates?limit=1000&resources={CLASS}:4&group_policy=none",
        f"GET /allocation_candidates?resources={CLASS}%3A4&limit=9 HTTP/1.1",
        f"resources={CLASS}:4",
        f"{CLASS}:4",
        f"{CLASS}=4",
    ],
)
@pytest.mark.parametrize("field", ["query", "resources"])
def test_a_query_is_taken_wherever_it_is_pasted(
    native: Native, fleet: dict[str, str], typed: str, field: str
) -> None:
    """As it stands in a log, in either field, with a colon or an equals sign."""
    page = signed_in(native, "reader").get(f"/ui/fit?{urlencode({field: typed})}")
    assert "It fits." in page.document.text, page.document.text
    (first, *_) = every(page, "input", name="resources")
    assert first.attributes["value"].replace("=", ":") == f"{CLASS}:4"


def test_a_claim_is_shown_made_and_audited(native: Native, fleet: dict[str, str]) -> None:
    """The preview says what is taken and left; the consumer's page has it, and the audit log."""
    browser = signed_in(native, "operator")
    found = browser.get(f"/ui/fit?resources={CLASS}:4")
    (address,) = [link for link in found.document.links if f"place={fleet['r05-n00']}" in link]
    preview = browser.get(address)
    assert f"This would take 4 {CLASS} of r05-n00, leaving 92 {CLASS}." in " ".join(
        preview.document.text.split()
    )
    fields = form_of(preview)
    asked = browser.ask("POST", "/ui/fit/claim", fields)
    assert asked.status == 200 and "Are you sure?" in asked.document.text
    assert native.ask("GET", f"/v1/consumers/{fields['consumer']}").status == 404, "not yet"
    made = browser.ask("POST", "/ui/fit/claim", {**fields, "sure": "yes"})
    assert made.status == 303
    consumer = fields["consumer"]
    assert made.headers["location"] == f"/ui/consumers/{consumer}?notice=claimed"
    shown = native.ask("GET", f"/v1/consumers/{consumer}").body
    assert [(one["name"], one["resources"]) for one in shown["allocations"]] == [
        ("r05-n00", {CLASS: 4})
    ]
    page = browser.get(made.headers["location"])
    assert "Claimed." in page.document.text and "r05-n00" in page.document.text
    (row,) = native.ask("GET", f"/v1/audit?target={consumer}").body["entries"]
    assert (row["action"], row["after"]["reason"]) == ("consumer.claim", "by hand")
    again = browser.ask("POST", "/ui/fit/claim", {**fields, "sure": "yes"})
    assert again.headers["location"].endswith("?notice=claimed-before")
    assert len(native.ask("GET", f"/v1/audit?target={consumer}").body["entries"]) == 1


def test_a_claim_is_undone(native: Native, fleet: dict[str, str]) -> None:
    """Its consumer is released from its page, and that by the reshape that has done it."""
    browser = signed_in(native, "operator")
    query = urlencode({"query": f"resources={CLASS}:4", "place": fleet["r12-n00"]})
    fields = {**form_of(browser.get(f"/ui/fit/claim?{query}")), "sure": "yes"}
    assert browser.ask("POST", "/ui/fit/claim", fields).status == 303
    path = f"/ui/consumers/{fields['consumer']}"
    (form,) = [one for one in browser.get(path).document.forms if one.action == f"{path}/release"]
    stale = {**form.fields, "generation": "7", "sure": "yes"}
    assert browser.ask("POST", f"{path}/release", stale).status == 409
    assert native.ask("GET", f"/v1{path.removeprefix('/ui')}").status == 200, "it has changed"
    released = browser.submit(path, f"{path}/release", reason="wrong host")
    assert released.status == 303 and "notice=consumer-released" in released.headers["location"]
    assert native.ask("GET", f"/v1{path.removeprefix('/ui')}").status == 404
    assert "It holds nothing." in browser.get(path).document.text
    reshape = released.headers["location"].partition("?")[0]
    forms = browser.get(released.headers["location"]).document.forms
    assert f"{reshape}/undo" in [one.action for one in forms]
    assert browser.submit(f"{reshape}/undo", f"{reshape}/undo").status == 303
    assert native.ask("GET", f"/v1{path.removeprefix('/ui')}").status == 200
    reader = signed_in(native, "reader").get(path)
    assert not [one for one in reader.document.forms if one.action.endswith("/release")]


def test_what_a_lease_holds_is_not_released(native: Native, fleet: dict[str, str]) -> None:
    """The page names the lease; the form is refused although it was sent."""
    pool, consumer = make_pool(native), str(uuid4())
    held = {
        "consumer": consumer,
        "allocations": {fleet["r13-n00"]: {CLASS: 2}},
        "project_id": "p",
        "user_id": "u",
    }
    body = {"needs": [{"pool": pool}], "key": consumer, "ttl": 3600, "allocations": held}
    lease = native.ask("POST", "/v1/leases", body).body["id"]
    browser, path = signed_in(native, "operator"), f"/ui/consumers/{consumer}"
    page = browser.get(path)
    assert f"/ui/leases/{lease}" in page.document.links
    assert not [one for one in page.document.forms if one.action.endswith("/release")]
    token = page.document.forms[0].fields["form_token"]
    sent = {"form_token": token, "generation": "1", "sure": "yes"}
    assert browser.ask("POST", f"{path}/release", sent).status == 409
    assert native.ask("GET", f"/v1/consumers/{consumer}").status == 200


def test_what_fits_no_more_is_not_claimed(native: Native, fleet: dict[str, str]) -> None:
    """Somebody was faster: nothing is claimed elsewhere, and the page says so."""
    browser, place = signed_in(native, "operator"), fleet["r07-n00"]
    query = {"query": f"resources={CLASS}:90", "place": place}
    fields = form_of(browser.get(f"/ui/fit/claim?{urlencode(query)}"))
    group = {"resources": {CLASS: 50}, "in_tree": place}
    body = {"groups": [group], "project_id": "p", "user_id": "u"}
    assert native.ask("POST", "/v1/claims", body).status == 201
    answer = browser.ask("POST", "/ui/fit/claim", {**fields, "sure": "yes"})
    assert answer.status == 303 and "notice=no-room" in answer.headers["location"]
    text = browser.get(answer.headers["location"]).document.text
    assert "does not fit there any more" in text and "r00-n00" in text
    assert native.ask("GET", f"/v1/consumers/{fields['consumer']}").status == 404
    gone = browser.get(f"/ui/fit/claim?{urlencode(query)}")
    assert "does not fit into this machine" in gone.document.text and not [
        one for one in gone.document.forms if one.action == "/ui/fit/claim"
    ]


def test_only_operators_claim(native: Native, fleet: dict[str, str]) -> None:
    """Neither the page nor its form is for readers or users; a reason is for operators only."""
    query = urlencode({"query": f"resources={CLASS}:4", "place": fleet["r09-n00"]})
    fields = form_of(signed_in(native, "operator").get(f"/ui/fit/claim?{query}"))
    for role in ("reader", "user"):
        browser = signed_in(native, role, "shop" if role == "user" else None)
        assert browser.get(f"/ui/fit/claim?{query}").status == 403
        token = browser.get("/ui").document.forms[0].fields["form_token"]
        sent = {**fields, "sure": "yes", "form_token": token}
        assert browser.ask("POST", "/ui/fit/claim", sent).status == 403
    assert native.ask("GET", f"/v1/consumers/{fields['consumer']}").status == 404
    body = {
        "groups": [{"resources": {CLASS: 1}}],
        "project_id": "p1",
        "user_id": "u",
        "reason": "because",
    }
    assert native.ask("POST", "/v1/claims", body, token=native.token("user", "p1")).status == 403
    del body["reason"]
    assert native.ask("POST", "/v1/claims", body, token=native.token("user", "p1")).status == 201


@pytest.mark.parametrize("missing", ["reason", "project", "user", "question", "place", "consumer"])
def test_incomplete_forms_are_refused(native: Native, fleet: dict[str, str], missing: str) -> None:
    """Nothing is claimed without a reason for others, or anywhere that was not shown."""
    browser = signed_in(native, "operator")
    query = urlencode({"query": f"resources={CLASS}:4", "place": fleet["r11-n00"]})
    fields = {**form_of(browser.get(f"/ui/fit/claim?{query}")), "sure": "yes", missing: " "}
    answer = browser.ask("POST", "/ui/fit/claim", fields)
    assert answer.status == 400, answer
    assert 'role="alert"' in answer.body


def test_hostile_questions_are_text(native: Native, fleet: dict[str, str]) -> None:
    """In addresses of the preview, too."""
    browser = signed_in(native, "operator")
    for text in ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "\u202e"):
        for path in (f"/ui/fit/claim?query={quote(text)}", f"/ui/fit/claim?place={quote(text)}"):
            page = browser.get(f"{path}&resources={CLASS}:1")
            assert page.status < 500 and page.document.inline == []
            assert "<script>alert" not in page.body and "<img src=x" not in page.body
