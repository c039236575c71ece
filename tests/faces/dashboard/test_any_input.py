"""Whatever stands in an address or a form, the server answers or says what is wrong with it."""

from urllib.parse import urlencode
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.faces.dashboard.routes import ENTRIES
from moorage.faces.dashboard.routing import Action, Data, Page
from tests.faces.dashboard.support.browserless import Browser, Document, signed_in
from tests.faces.v1.leasing import make_pool, waiting_ticket
from tests.faces.v1.native import Native

EXAMPLES = 200
PARAMETERS = (
    *("after", "agent_group", "agents", "burst", "by", "class", "cursor", "group", "group_policy"),
    *("have", "in_tree", "interval", "kind", "label", "limit", "member_of", "notice", "older"),
    *("owner", "pool", "required", "resource_class", "resources", "since", "state"),
    *("place", "project", "provider", "query", "tree", "type", "user"),
    *("closure", "count", "end", "every", "from", "note", "start", "units"),
)
WORDS = (
    *("", "0", "-0", "--5", "+1", "1e999", "nan", "inf", "-", ".", "1.5", "1.0", "2.0.0", "x=y"),
    *(
        "=",
        "a:b",
        "VCPU:1",
        "resources=VCPU:1",
        "waiting",
        "class",
        "trait",
        "%",
        "%00",
        "/",
        "../..",
        "'\"<>&",
    ),
    *("9" * 5_000, "1." + "9" * 40, "VCPU:" + "9" * 30, str(UUID(int=1)), "\u0663", "\u00b2"),
    *("\u202e", "\U0001f4a9"),
    *("2026-12-31", "2026-12-31T14:00", "0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00"),
)
TEXTS = st.sampled_from(WORDS) | st.text(max_size=20) | st.integers().map(str)
QUERIES = st.dictionaries(st.sampled_from(PARAMETERS), TEXTS, max_size=2)
FIELDS = (
    *("digest", "id", "lasts", "priority", "reason"),
    *("consumer", "generation", "place", "project", "question", "type", "user"),
    *("closure", "count", "end", "every", "key", "note", "pool", "start", "units"),
)


@pytest.fixture(scope="module")
def browser(native: Native) -> Browser:
    """Return an operator's browser."""
    return signed_in(native, "admin")


@pytest.fixture(scope="module")
def names(native: Native) -> dict[str, str]:
    """Return what stands in addresses: a pool with a ticket, an operation."""
    pool = make_pool(native)
    ticket = str(waiting_ticket(native, pool).body["id"])
    return {"{name+}": pool, "{id}": ticket, "{operation}": "create_lease"}


def address(path: str, names: dict[str, str]) -> str:
    """Return the address of an entry of the table."""
    for place, name in names.items():
        path = path.replace(place, name)
    return path


def by_path(entry: Page | Data | Action) -> str:
    """Return the name of a test."""
    return entry.path


@settings(max_examples=EXAMPLES)
@given(
    entry=st.sampled_from([one for one in ENTRIES if isinstance(one, Page | Data)]), query=QUERIES
)
def test_any_address_has_an_answer(
    browser: Browser, names: dict[str, str], entry: Page | Data, query: dict[str, str]
) -> None:
    """Also one that no page links to."""
    page = browser.get(f"{address(entry.path, names)}?{urlencode(query)}")
    assert page.status < 500, page
    if isinstance(entry, Page):
        assert Document(page.body).inline == []


@pytest.mark.parametrize("entry", [one for one in ENTRIES if isinstance(one, Action)], ids=by_path)
def test_any_form_has_an_answer(browser: Browser, names: dict[str, str], entry: Action) -> None:
    """Also one that no page has."""
    token = browser.get("/ui").document.forms[0].fields["form_token"]
    for word in WORDS:
        form = {**dict.fromkeys(FIELDS, word), "form_token": token}
        page = browser.ask("POST", address(entry.path, names), form)
        assert page.status < 500, (word, page)
