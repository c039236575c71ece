"""Open pages stay current, end with their session, and are limited."""

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import pytest

from moorage.faces.dashboard.live import OF_READER_MAX
from tests.e2e.support.carried import eventually
from tests.faces.dashboard.support.browserless import Browser, Document, signed_in
from tests.faces.v1.leasing import ask, make_pool
from tests.faces.v1.native import Native

SHOWN = 4
"""Renderings that each of several readers sees."""


def test_a_page_is_sent_again_when_something_changes(peers: list[Native]) -> None:
    """Also if another process has changed it; the fragment is what the page has in `main`."""
    here, there = peers[0], peers[-1]
    pool = make_pool(here, limit=5)
    browser = signed_in(here, "reader")
    events = browser.events(f"/ui/pools/{pool}")
    name, text = next(events)
    assert name == "main"
    assert Document(text).figures["occupied"] == ["0"]
    whole = browser.get(f"/ui/pools/{pool}").body
    main = re.search(r'<main id="main"[^>]*>\n(.*)</main>', whole, re.DOTALL)
    assert main
    assert without_ages(main[1]) == without_ages(text)
    for occupied in ("1", "2"):
        assert ask(there, pool).status == 201
        document = Document(next(events)[1])
        while document.figures["occupied"] != [occupied]:
            document = Document(next(events)[1])


def without_ages(text: str) -> str:
    """Return a fragment without what depends on the time and on white space."""
    changing = r'<time.*?</time>|The last \S+ as of|data-(start|step|points)="[^"]*"|\s+'
    plot = "<svg.*?</svg>"  # its times pass while the test runs
    return re.sub(f"{plot}|{changing}", " ", text, flags=re.DOTALL).strip()


@pytest.mark.parametrize(
    ("roles", "shared"), [(("reader",) * 3, True), (("reader", "operator", "admin"), False)]
)
def test_readers_with_the_same_rights_share_a_page(
    native: Native, roles: tuple[str, ...], shared: bool
) -> None:
    """While everything changes, a page is rendered once for all of them; the control: others."""
    pool = make_pool(native, limit=1_000)
    readers = [signed_in(native, role) for role in roles]
    shown: list[list[str]] = [[] for _ in readers]

    def follow(number: int) -> None:
        with closing(readers[number].events(f"/ui/pools/{pool}")) as events:
            for name, text in events:
                if name == "main":
                    shown[number] += Document(text).revisions[:1]
                if len(shown[number]) == SHOWN:
                    return

    with ThreadPoolExecutor(len(readers)) as threads:
        followed = [threads.submit(follow, number) for number in range(len(readers))]
        while not all(one.done() for one in followed):
            assert ask(native, pool).status in {201, 202}
    for one in followed:
        one.result()
    # The first one of each is its own: it must not be older than the page that the reader loaded.
    different = {revision for one in shown for revision in one[1:]}
    assert (len(different) <= SHOWN) is shared


def test_pages_do_not_depend_on_the_name_of_a_reader(native: Native) -> None:
    """Only on the rights: a page is rendered once for all who have the same, also for an owner."""
    tokens = [native.token("operator", name=name) for name in ("owner", "other")]
    pool = make_pool(native)
    wanted = {"needs": [{"pool": pool}], "patience": 3600}
    leases = [
        native.ask("POST", "/v1/leases", {**wanted, "key": key}, token=tokens[0]).body["id"]
        for key in ("holds", "waits")
    ]
    browsers = [Browser(native.url) for _ in tokens]
    for browser, token in zip(browsers, tokens, strict=True):
        assert browser.sign_in(token).status == 303
    paths = ["", "/pools", f"/pools/{pool}", "/leases", *(f"/leases/{one}" for one in leases)]
    for path in [*paths, "/fleet", "/fleet/machines", "/fit", "/changes"]:
        texts = set()
        for browser in browsers:
            with closing(browser.events(f"/ui{path}")) as events:
                name, text = next(events)
            assert name == "main", path
            texts.add(re.sub(r'value="[0-9a-f]{64}"', "", without_ages(text)))
        assert len(texts) == 1, path


def test_a_stream_ends_with_the_token(native: Native) -> None:
    """At the next change at the latest."""
    browser = signed_in(native, "service")
    events = browser.events("/ui/pools")
    assert next(events)[0] == "main"
    tokens = native.ask("GET", "/v1/tokens").body["tokens"]
    (token_id,) = [one["id"] for one in tokens if one["name"] == "service"]
    assert native.ask("DELETE", f"/v1/tokens/{token_id}").status == 204
    make_pool(native)
    assert [name for name, _ in events][-1] == "signed-out"


def test_a_stream_does_not_keep_a_session(native: Native) -> None:
    """Signing out ends it."""
    browser = signed_in(native, "reader")
    events = browser.events("/ui/pools")
    assert next(events)[0] == "main"
    assert browser.submit("/ui", "/ui/sign-out").status == 303
    make_pool(native)
    assert [name for name, _ in events][-1] == "signed-out"


def test_a_reader_who_is_not_signed_in_gets_a_stream_that_says_so(native: Native) -> None:
    """A redirect to the sign-in page would leave an open page waiting for ever."""
    browser = signed_in(native, "reader")
    browser.cookies.clear()
    assert [name for name, _ in browser.events("/ui/pools")] == ["signed-out"]


def test_a_page_that_is_gone_says_so_and_comes_back(peers: list[Native]) -> None:
    """A pool is deleted, also by another process, and made again."""
    here, there = peers[0], peers[-1]
    pool = make_pool(here, limit=5)
    events = signed_in(here, "reader").events(f"/ui/pools/{pool}")
    assert next(events)[0] == "main"
    assert there.ask("DELETE", f"/v1/pools/{pool}").status == 204
    told = next((name, text) for name, text in events if name != "main")
    assert told == ("failed", f"There is no pool '{pool}'.")
    assert there.ask("PUT", f"/v1/pools/{pool}", {"limit": 6}).status == 200
    text = next(text for name, text in events if name == "main")
    assert Document(text).figures["units"] == ["6"]


def test_a_reader_has_a_limited_number_of_open_pages(native: Native) -> None:
    """One more gets no event, until another is closed; those of other readers do."""
    token = native.token("reader", name="greedy")
    browsers = [Browser(native.url) for _ in range(2)]
    for one in browsers:
        assert one.sign_in(token).status == 303
    with ExitStack() as stack:
        streams = []
        for number in range(OF_READER_MAX):
            events = browsers[number % 2].events(f"/ui/pools?number={number}")
            streams.append(stack.enter_context(closing(events)))
            assert next(events)[0] == "main"
        assert [*browsers[0].events("/ui/pools")] == []
        with closing(signed_in(native, "reader").events("/ui/pools")) as others:
            assert next(others)[0] == "main"
        streams[0].close()
        eventually(lambda: first_of(browsers[1]))


def first_of(browser: Browser) -> tuple[str, str] | None:
    """Return the first event of one more open page."""
    with closing(browser.events("/ui/pools")) as events:
        return next(events, None)
