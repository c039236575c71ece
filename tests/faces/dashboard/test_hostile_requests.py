"""Whatever a request has in its address, form and headers: no failure, and always the headers."""

import http.client
import re
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moorage.core.limits import FORM_BYTES_MAX, PAGE_QUERY_BYTES_MAX, PAGE_QUERY_PARAMETERS_MAX
from moorage.faces.dashboard.headers import SAFE
from moorage.faces.dashboard.routes import ENTRIES
from moorage.faces.dashboard.routing import Entry
from tests.faces.dashboard.support.browserless import FORM, Browser, Page, signed_in
from tests.faces.v1.leasing import make_pool, waiting_ticket
from tests.faces.v1.native import Native
from tests.faces.v1.reshaping import Split

OTHER_METHODS = ("HEAD", "OPTIONS", "TRACE", "PUT", "PATCH", "DELETE", "PROPFIND")
FIXED = ("/ui/sign-in", "/ui/sign-out", "/ui/static/x/live.js", "/ui/static/..%2Fapp.py", "/uix")
KNOWN = "{known}"
"""Stands in an address for the name of what exists."""

SUFFIXES = ("", "", ":contents", ":history", ":report", ":rehearse", ":pause", ":what-if", "/", ":")
NAMES = (
    *("cursor", "limit", "since", "by", "agents", "agent_group", "group", "class", "colour"),
    *("find", "pool", "state", "owner", "label", "older", "kind", "after", "interval", "next"),
    *("resources", "required", "member_of", "in_tree", "resources1", "group_policy", "notice"),
    *("reason", "priority", "lasts", "token", "have", "resource_class", "digest", "id"),
)
DIGITS = ("--1", "9" * 4_500, "-", "1e400", "nan", "٣", "²", "1_0", "0x1", "-0", " 1", "3600")
EVIL = (
    *("", "0", "-1", "--1", "9" * 30, "9" * 4_500, "1e400", "nan", "inf", "٣", "²", "1.2", "1.2.3"),
    *("<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "javascript:alert(1)"),
    *("//evil.example", "..", "../../app.py", "%00", "\0", "\n", "\r\nx: y", "\u202e", "\ud7ff"),
    *("VCPU:1", "VCPU:" + "9" * 4_500, "!", "=1", "a=b", "a=", "lease", "late", "trait", "ended"),
    *(
        "00000000-0000-0000-0000-000000000000",
        "1.999999999999",
        "3600",
        "\U000e0041",
        "a\u0301" * 9,
    ),
)
NUMBERS = st.sampled_from(DIGITS)
TEXTS = st.one_of(st.sampled_from(EVIL), st.text(max_size=30))


class Asked(NamedTuple):
    """A request."""

    method: str
    path: str
    query: list[tuple[str, str]]
    form: dict[str, str]
    headers: dict[str, str]


HOSTILE_NAMES = TEXTS.filter(bool).map(lambda text: quote(text, safe=""))
NAMED = [entry for entry in ENTRIES if "{" in entry.path]
NOTHING: st.SearchStrategy[dict[str, str]] = st.builds(dict)
QUERIES = st.lists(st.tuples(st.sampled_from(NAMES), TEXTS), max_size=5)


def addresses(entries: Sequence[Entry]) -> st.SearchStrategy[str]:
    """Return addresses of entries: of what exists, and of others."""
    return st.builds(
        lambda entry, name, end: re.sub(
            r"\{(\w+\+?)\}", lambda one: name + end * (one[1] == "name+"), entry.path
        ),
        st.sampled_from(entries),
        st.one_of(st.just(KNOWN), HOSTILE_NAMES),
        st.sampled_from(SUFFIXES),
    )


READ = st.builds(
    Asked,
    st.sampled_from(["GET", "GET", "HEAD"]),
    st.one_of(
        addresses([entry for entry in ENTRIES if entry.method == "GET"]),
        addresses([entry for entry in NAMED if entry.method == "GET"]),
    ),
    QUERIES,
    NOTHING,
    NOTHING,
)
SUBMITTED = st.builds(
    Asked,
    st.just("POST"),
    addresses([entry for entry in ENTRIES if entry.method == "POST"]),
    QUERIES,
    st.fixed_dictionaries(
        {},
        optional={
            "reason": TEXTS,
            "priority": NUMBERS,
            "lasts": NUMBERS,
            **dict.fromkeys(("limit", "interval", "burst", "jitter", "generation"), NUMBERS),
            **dict.fromkeys(("until", "hold", "digest"), TEXTS),
            "id": TEXTS,
        },
    ),
    NOTHING,
)
ODD = st.builds(
    Asked,
    st.sampled_from(["GET", "POST", *OTHER_METHODS]),
    st.one_of(st.sampled_from(FIXED), addresses(ENTRIES)),
    QUERIES,
    st.dictionaries(st.sampled_from(NAMES), TEXTS, max_size=4),
    st.fixed_dictionaries(
        {},
        optional={
            "Origin": st.sampled_from(["null", "http://[", "https://evil.example", "a:b:c"]),
            "Accept": st.sampled_from(["application/json", "*/*", "text/html"]),
            "Accept-Encoding": st.sampled_from(["gzip", "gzip;q=0", "br"]),
            "Content-Type": st.sampled_from(
                ["application/json", "multipart/form-data; boundary=x"]
            ),
        },
    ),
)


class Known(NamedTuple):
    """A server's reader, and what is there."""

    browser: Browser
    token: str
    pool: str
    ticket: str
    reshape: str

    @property
    def cookie(self) -> str:
        """The header of the session."""
        return "; ".join(f"{name}={value}" for name, value in self.browser.cookies.items())


@pytest.fixture(scope="module")
def known(native: Native) -> Known:
    """Return a reader who may do everything."""
    browser, pool = signed_in(native, "admin"), make_pool(native)
    token = browser.get("/ui").document.forms[0].fields["form_token"]
    reshape = Split(native).committed().body["id"]
    return Known(browser, token, pool, waiting_ticket(native, pool).body["id"], reshape)


def answered(known: Known, asked: Asked) -> Page:
    """Send a request, with the session and its form token."""
    names = {"/pools/": known.pool, "/reshapes/": known.reshape}
    thing = next((one for part, one in names.items() if part in asked.path), known.ticket)
    form = dict(asked.form)
    if asked.path != "/ui/sign-out":
        form["form_token"] = known.token
    query = f"?{urlencode(asked.query)}" if asked.query else ""
    headers = {"Cookie": known.cookie, **asked.headers}
    if asked.method == "POST":
        headers = {"Origin": known.browser.url, "Content-Type": FORM, **headers}
    path = asked.path.replace(KNOWN, thing)
    return raw(known.browser.url, asked.method, path + query, urlencode(form), headers)


def raw(url: str, method: str, target: str, body: str, headers: Mapping[str, str]) -> Page:
    """Send a request whose address is already quoted."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    try:
        connection.request(method, target, body if method == "POST" else None, dict(headers))
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
    finally:
        connection.close()
    return Page(answer.status, {name.lower(): value for name, value in answer.getheaders()}, text)


HARD = settings(
    max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@HARD
@given(asked=READ)
def test_every_page_is_answered_safely(known: Known, asked: Asked) -> None:
    """Whatever its address has."""
    check(answered(known, asked), asked)


@HARD
@given(asked=SUBMITTED)
def test_every_form_is_answered_safely(known: Known, asked: Asked) -> None:
    """Whatever its fields have."""
    check(answered(known, asked), asked)


@HARD
@given(asked=ODD)
def test_every_odd_request_is_answered_safely(known: Known, asked: Asked) -> None:
    """Whatever its method and its headers are."""
    check(answered(known, asked), asked)


def check(page: Page, asked: Asked) -> None:
    """Nothing fails in the server, and each answer has the policy and the other headers."""
    assert page.status < 500, (asked, page.body)
    if asked.path.startswith("/uix"):
        return  # that is Placement's
    for name, value in SAFE:
        assert page.headers[name.decode()] == value.decode(), (name, asked)
    assert ("allow" in page.headers) == (page.status == 405)
    stored = page.headers["cache-control"] != "no-store"
    assert not stored or asked.path.startswith("/ui/static/")
    location = page.headers.get("location", "/ui")
    assert location == "/ui" or location.startswith(("/ui/", "/ui?")), location
    kind = page.headers.get("content-type", "").partition(";")[0]
    if kind == "text/html" and page.body:
        assert page.document.inline == [], asked
        assert "\u202e" not in page.body
    assert asked.method != "HEAD" or page.body == ""


def test_the_fuzzer_sees_a_missing_header(known: Known) -> None:
    """The control: Placement's answers have no policy, so the check above can fail."""
    page = raw(known.browser.url, "GET", "/uix", "", {})
    assert "content-security-policy" not in page.headers


COOKIES = (
    'moorage-1="' + '\\"' * 14_000 + '"',
    'a="' + "\\1" * 14_000,
    "a=b;" * 7_000,
    ";" * 30_000,
    "=" * 30_000,
    "," * 30_000,
)


@pytest.mark.parametrize("cookie", COOKIES, ids=lambda cookie: str(cookie)[:12])
def test_no_cookie_takes_long(known: Known, cookie: str) -> None:
    """Nobody needs a token to send one. `http.cookies` takes seconds for the first."""
    begun = time.perf_counter()
    page = raw(known.browser.url, "GET", "/ui", "", {"Cookie": cookie})
    assert page.status == 303
    assert time.perf_counter() - begun < 0.5


def test_cookies_of_other_servers_do_not_sign_a_reader_out(known: Known) -> None:
    """Another server on the host may have set an invalid one, which browsers send, too."""
    mine = known.cookie
    for other in ('{"a":1}', "a b=c", 'x="', "", "=", "[]=1", "moorage=x"):
        for cookie in (f"{other}; {mine}", f"{mine}; {other}"):
            assert known.browser.get("/ui", Cookie=cookie).status == 200, cookie


def test_long_forms_are_refused(known: Known) -> None:
    """Before they are decoded, also those of strangers; the longest is accepted."""
    url = known.browser.url
    headers = {"Origin": url, "Content-Type": FORM}
    for length, status in ((FORM_BYTES_MAX, {401, 429}), (FORM_BYTES_MAX + 1, {413})):
        body = "token=".ljust(length, "x")
        assert raw(url, "POST", "/ui/sign-in", body, headers).status in status


def test_links_do_not_multiply_long_addresses(known: Known) -> None:
    """Pages repeat their address in hundreds of links, so it is limited; unknown names count."""
    many = "&".join(f"a{number}=" for number in range(PAGE_QUERY_PARAMETERS_MAX + 1))
    assert known.browser.get(f"/ui/fleet?{many}").status == 400
    assert known.browser.get(f"/ui/fleet?{many.partition('&')[2]}").status == 200
    assert known.browser.get("/ui/fleet?a=".ljust(PAGE_QUERY_BYTES_MAX + 11, "x")).status == 414
    assert known.browser.get("/ui/fleet?a=".ljust(PAGE_QUERY_BYTES_MAX + 10, "x")).status == 200
    assert known.browser.get("/ui/sign-in?next=" + "x" * 2 * PAGE_QUERY_BYTES_MAX).status == 200


def test_a_stream_is_not_an_answer_to_head(known: Known) -> None:
    """It would never end, and keep its connection."""
    headers = {"Accept": "text/event-stream", "Cookie": known.cookie}
    page = raw(known.browser.url, "HEAD", "/ui/pools", "", headers)
    assert page.headers["content-type"].startswith("text/html")
