"""Each target of a form refuses what was not sent from the session's own pages."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from moorage.faces.dashboard.routes import ENTRIES
from moorage.faces.dashboard.routing import Action, Trial
from tests.faces.dashboard.support.browserless import Browser, Page, confirming, signed_in
from tests.faces.v1.leasing import ask, make_pool, waiting_ticket
from tests.faces.v1.native import Native
from tests.faces.v1.reshaping import Split

SIGN_OUT = "/ui/sign-out"
TRIALS = [one.path for one in ENTRIES if isinstance(one, Trial)]
TARGETS = [SIGN_OUT, *(one.path for one in ENTRIES if isinstance(one, Action)), *TRIALS]
CLAIM = "/ui/fit/claim"
BOOKINGS = "/ui/bookings"
BOOKED = "every-form"
"""The pool of new bookings."""


def foreign_origins(url: str) -> Iterator[str]:
    """Yield values of the header `Origin` that pages of other sites, or no pages, have."""
    host = url.removeprefix("http://")
    name, _, port = host.partition(":")
    yield from ("", "null", "http://", "http://[", "http://[::1", "https://evil.example", host)
    yield from (f"http://{name}", f"http://{name}:{int(port) ^ 1}", f"http://x@{host}", f"//{host}")
    yield from (f"ftp://{host}", f"file://{host}", f"{url}/", f"{url}, {url}", f"{url}.evil", "a:b")
    yield from (f"chrome-extension://{host}", f"http://localhost:{port}", f"{url}\\@evil")


@pytest.fixture(scope="module")
def operator(native: Native) -> Browser:
    """Return a reader who may use all buttons."""
    native.ask("PUT", f"/v1/pools/{BOOKED}", {"limit": 100})
    return signed_in(native, "operator")


def token_of(browser: Browser) -> str:
    """Return the form token of a session."""
    token: str = browser.get("/ui").document.forms[0].fields["form_token"]
    return token


HANDS = ("keep", "offer", "withdraw", "accept", "decline")
"""Forms of granted leases."""


def offered(native: Native, path: str) -> str:
    """Return a lease, offered to the operator unless the form is to offer it."""
    lease: str = ask(native, make_pool(native)).body["id"]
    if not path.endswith("/offer"):
        native.ask("POST", f"/v1/leases/{lease}/offer", {"to": "operator"})
    return lease


def booked(native: Native) -> str:
    """Return a booking of a new pool."""
    wanted = {"key": str(uuid4()), "needs": [{"pool": make_pool(native)}], **HOURS}
    made = native.ask("POST", "/v1/bookings", wanted)
    assert made.status == 201, made
    booking: str = made.body["id"]
    return booking


def target_of(native: Native, path: str) -> str:
    """Return an address that a form may have: of a pool, of a ticket, of a reshape or a claim."""
    if path == CLAIM:
        host = str(uuid4())
        held = {"uuid": host, "name": host, "inventories": {"VCPU": {"total": 1}}}
        native.ask("POST", "/v1/providers:bulk", {"providers": [held]})
        return f"{path}?place={host}"
    if "/machines/" in path:
        host = str(uuid4())
        native.ask("POST", "/v1/providers:bulk", {"providers": [{"uuid": host, "name": host}]})
        if path.endswith("/resume"):
            native.ask("POST", f"/v1/providers/{host}/drain", {"reason": "r"})
        return path.replace("{id}", host)
    if "/consumers/" in path:
        return path.replace("{id}", Split(native).guest)
    if "/reshapes/" in path:
        return path.replace("{id}", Split(native).committed().body["id"])
    if path.rpartition("/")[2] in HANDS:
        return path.replace("{id}", offered(native, path))
    if path.startswith(BOOKINGS):
        return path.replace("{id}", booked(native)) if "{id}" in path else path
    pool = make_pool(native)
    waiting_ticket(native, pool)
    ticket = ask(native, pool).body["id"]  # the second in line, so that it can be the first
    if path.endswith("/owners/revoke"):
        ask(native, pool, token=native.token("user", "forms", name="owner"))
    if path.endswith(":resume"):
        native.ask("POST", f"/v1/pools/{pool}:pause", {"reason": "r"})
    return path.replace("{name+}", pool).replace("{id}", ticket)


def hours() -> dict[str, str]:
    """Return the start and the end of two hours of next week."""
    start = datetime.now(UTC) + timedelta(days=7)  # noqa: TID251  # the time of the real server
    return {"start": start.isoformat(), "end": (start + timedelta(hours=2)).isoformat()}


HOURS = hours()


def actions(native: Native) -> int:
    """Return how many operations the audit log has."""
    return len(native.ask("GET", "/v1/audit?limit=1000").body["entries"])


def digest_of(native: Native, target: str) -> str:
    """Return the digest of what undoing a reshape would do; empty for other forms."""
    if "/reshapes/" not in target:
        return ""
    path = target.removeprefix("/ui").removesuffix("/undo")
    plan = native.ask("POST", f"/v1{path}:undo", {"dry_run": True}).body["plan"]
    return str(plan["digest"])


def sent(browser: Browser, target: str, token: str, digest: str = "", **headers: str) -> Page:
    """Send a form with valid fields."""
    fields = {
        "reason": "r",
        "priority": "1",
        "owner": "forms/owner",
        "digest": digest,
        "generation": "1",
    }
    fields |= {"hold": "2h", "limit": "7", "interval": "3", "burst": "2"}
    fields |= {"sure": "yes", "form_token": token}
    if target.rpartition("/")[2] in HANDS:
        fields |= {"until": "2h", "to": "forms/owner", "lasts": "10m"}
    if target.startswith(BOOKINGS):
        fields |= {**HOURS, "note": "another", "units": "1", "key": str(uuid4())}
        fields |= {"pool": BOOKED} if target == f"{BOOKINGS}/new" else {}
    if target.startswith(CLAIM):
        place = target.partition("place=")[2]
        fields |= {"question": "resources=VCPU:1", "place": place, "consumer": str(uuid4())}
        fields |= {"project": "p", "user": "u"}
    return browser.ask("POST", target, fields, **headers)


@pytest.mark.parametrize("path", TARGETS)
def test_no_form_of_another_page_is_accepted(native: Native, operator: Browser, path: str) -> None:
    """Whatever its origin; nothing was done. The control, from an own page, is accepted."""
    target, token = target_of(native, path), token_of(operator)
    digest = digest_of(native, target)
    other = token_of(signed_in(native, "operator"))
    before = actions(native)
    for origin in foreign_origins(operator.url):
        assert sent(operator, target, token, digest, Origin=origin).status == 403, origin
    for wrong in ("", token[:-1], token.upper(), f"{token} ", "ä" * 64, other):
        assert sent(operator, target, wrong, digest).status == 403, wrong
    without = Browser(operator.url)
    assert sent(without, target, token, digest).status == 401, "without a session"
    assert actions(native) == before, "something was done"
    if path == SIGN_OUT:
        operator = signed_in(native, "operator")
        token = token_of(operator)
    answer = sent(operator, target, token, digest)
    if "/agents/" in path:
        assert answer.status == 404, "there are no agents here"
    elif path in TRIALS:
        assert actions(native) == before, "a preview has done something"
        fields = confirming(answer, target).fields
        assert "Done." in operator.ask("POST", target, fields).document.text
        assert actions(native) > before, "the control did nothing"
    else:
        assert answer.status == 303, answer
        assert actions(native) > before, "the control did nothing"


@pytest.mark.parametrize("path", TARGETS)
def test_readers_cannot_send_any_form(native: Native, path: str) -> None:
    """Also with the form token of their session; only signing out is theirs."""
    reader = signed_in(native, "reader")
    target, token = target_of(native, path), token_of(reader)
    assert sent(reader, target, token, digest_of(native, target)).status == (
        303 if path == SIGN_OUT else 403
    )


def test_nobody_is_signed_in_from_another_site(native: Native) -> None:
    """Otherwise a reader could be signed in as somebody else without noticing."""
    token = native.token("reader")
    for origin in foreign_origins(native.url):
        answer = Browser(native.url).sign_in(token, Origin=origin)
        assert (answer.status, "set-cookie" in answer.headers) == (403, False), origin


def test_what_a_page_says_after_an_action_is_not_in_its_address(native: Native) -> None:
    """Otherwise a link could show any text as if the server had said it."""
    browser = signed_in(native, "reader")
    for text in ("Call+1234", "<b>", "released "):
        assert 'class="notice"' not in browser.get(f"/ui?notice={text}").body
    assert "No late release" in browser.get("/ui?notice=holder-gone").document.text


@pytest.mark.parametrize("priority", ["--5", "9" * 5_000, "-", "", "1_0", "٣", "²", "1e3", "1.0"])
def test_only_whole_numbers_are_priorities(
    native: Native, operator: Browser, priority: str
) -> None:
    """Others are refused with a reason."""
    ticket = waiting_ticket(native, make_pool(native)).body["id"]
    fields = {"form_token": token_of(operator), "priority": priority}
    answer = operator.ask("POST", f"/ui/leases/{ticket}/priority", fields)
    assert answer.status == 400
    assert "must be a whole number" in answer.document.text
