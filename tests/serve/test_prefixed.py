"""A server below a path: every address in every answer has the prefix, whatever a proxy does.

The answers of one server without a prefix say which addresses there are.
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

from moorage.faces.dashboard.outward import ATTRIBUTES
from moorage.faces.dashboard.pages.claiming import CLAIM
from moorage.faces.dashboard.routes import ENTRIES
from moorage.faces.dashboard.routing import Page
from moorage.faces.placement.routes import routes
from tests.e2e.support.server import NotStarted, serve
from tests.faces.dashboard.support.browserless import Browser
from tests.faces.v1.leasing import make_pool, waiting_ticket
from tests.faces.v1.native import Native, Response
from tests.faces.v1.reshaping import Split

PREFIX = "/placement"
POINTING = ("location", "link", "refresh", "content-location")
"""Headers with addresses."""

_numbers = itertools.count()


class Way(NamedTuple):
    """How requests reach the server: what a proxy makes of `/placement/PATH`."""

    options: tuple[str, ...]
    kept: str
    headers: Mapping[str, str]

    def path(self, path: str) -> str:
        """Return the path that arrives."""
        return self.kept + path


TRUSTING = ("--trusted-proxies", "127.0.0.1")
SAID = {"X_Forwarded_Prefix": PREFIX}
SET = ("--path-prefix", PREFIX)
WAYS = {
    "nginx with a URI, the setting": Way(SET, "", {}),
    "HAProxy or Apache, the setting": Way(SET, PREFIX, {}),
    "nginx with a URI, the header": Way(TRUSTING, "", SAID),
    "the header, and it keeps the prefix": Way(TRUSTING, PREFIX, SAID),
    "both, removed": Way((*SET, *TRUSTING), "", SAID),
    "both, kept": Way((*SET, *TRUSTING), PREFIX, SAID),
}


class Proxied(Native):
    """Calls a server as a proxy does."""

    def __init__(self, url: str, database: Path, way: Way) -> None:
        super().__init__(url, database)
        self.way = way

    def ask(
        self, method: str, path: str, body: Any = None, *, token: str | None = None, **headers: str
    ) -> Response:
        """Send one request through the proxy."""
        sent = {**self.way.headers, **headers}
        return super().ask(method, self.way.path(path), body, token=token, **sent)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    """Return a caller of a server without a prefix, which trusts no proxy."""
    database = tmp_path_factory.mktemp("plain") / "moorage.sqlite"
    with serve(database, "--no-access-log") as server:
        yield Proxied(server.url, database, Way((), "", SAID))


@pytest.fixture(scope="module", params=[*WAYS])
def proxied(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxied]:
    """Return a caller behind each kind of proxy."""
    way = WAYS[request.param]
    database = tmp_path_factory.mktemp("proxied") / "moorage.sqlite"
    with serve(database, "--no-access-log", *way.options) as server:
        yield Proxied(server.url, database, way)


def addresses(answer: Response, host: str) -> list[str]:
    """Return all addresses on this server in an answer, in order."""
    found = [answer.headers[name] for name in POINTING if name in answer.headers]

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for name, one in value.items():
                if name in ("href", "url") and isinstance(one, str):
                    found.append(one)
                walk(one)
        elif isinstance(value, list):
            for one in value:
                walk(one)

    walk(answer.body)
    return [one.replace(host, "") for one in found]


def filled(native: Proxied) -> dict[str, str]:
    """Make one of everything that paths name; return the variables of paths."""
    found = {"uuid": f"6e0f3c52-0000-4000-8000-{next(_numbers):012x}", "name": "CUSTOM_A"}
    placement = {"OpenStack_API_Version": "placement 1.39"}
    body = {"uuid": found["uuid"], "name": f"host-{found['uuid']}"}
    assert native.ask("POST", "/resource_providers", body, **placement).status == 200
    native.ask("PUT", "/resource_classes/CUSTOM_A", **placement)
    native.ask("PUT", "/traits/CUSTOM_A", **placement)
    stock = {"resource_class": "CUSTOM_A", "total": 1}
    where = f"/resource_providers/{found['uuid']}/inventories"
    assert native.ask("POST", where, stock, **placement).status == 201
    return found


BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/resource_providers"): lambda names: {"name": f"more-{next(_numbers)}"},
    ("POST", "/resource_classes"): lambda names: {"name": f"CUSTOM_N{next(_numbers)}"},
    ("POST", "/resource_providers/{uuid}/inventories"): lambda names: {
        "resource_class": "VCPU",
        "total": 1,
    },
}
VERSIONS = (0, 1, 2, 6, 7, 10, 14, 20, 39)
ADDRESSED = {"/", "/resource_providers", "/resource_providers/{uuid}", "/resource_classes"}
ADDRESSED |= {
    "/resource_classes/{name}",
    "/traits/{name}",
    "/resource_providers/{uuid}/inventories",
}
"""Paths of Placement with an address in an answer: the control."""


def walked(native: Proxied) -> dict[tuple[str, str, int], list[str]]:
    """Call every route of Placement at several versions; return the addresses in the answers."""
    found = {}
    for version in VERSIONS:
        names = filled(native)
        for route in routes():
            if route.method == "DELETE" or not route.since <= version <= route.until:
                continue
            path = route.path.replace("{name}", names["name"])
            path = re.sub(r"\{\w+\}", names["uuid"], path)
            make = BODIES.get((route.method, route.path))
            body = make(names) if make else ({} if route.method in ("PUT", "POST") else None)
            if route.method == "PUT" and "{name}" in route.path:
                body = {"name": f"CUSTOM_R{next(_numbers)}"} if version < 7 else None
            answer = native.ask(
                route.method, path, body, OpenStack_API_Version=f"placement 1.{version}"
            )
            shown = [
                re.sub(r"[0-9a-f-]{36}|CUSTOM_\w+", "X", one)
                for one in addresses(answer, native.url)
            ]
            found[route.method, route.path, version] = shown
    return found


def test_every_address_of_placement_has_the_prefix(plain: Proxied, proxied: Proxied) -> None:
    """Location, and `href` in bodies; the link of `GET /` means here, as in the original."""
    without, having = walked(plain), walked(proxied)
    assert without.keys() == having.keys()
    assert {path for (_, path, _), found in without.items() if found} >= ADDRESSED
    for call, expected in without.items():
        assert sorted({*having[call]}) == sorted(
            {PREFIX + one if one else one for one in expected}
        ), call


def test_a_location_is_absolute_and_leads_to_what_was_made(proxied: Proxied) -> None:
    """Through the proxy again, as osc-placement follows it."""
    answer = proxied.ask("POST", "/resource_providers", {"name": f"made-{next(_numbers)}"})
    location = answer.headers["location"]
    assert location.startswith(f"{proxied.url}{PREFIX}/resource_providers/")
    inside = location.removeprefix(proxied.url + PREFIX)
    assert proxied.ask("GET", inside).body["uuid"] == inside.rpartition("/")[2]


def test_the_native_api_names_its_pages_and_its_server(plain: Proxied, proxied: Proxied) -> None:
    """The link of every answer leads to the dashboard, the description to this server."""
    assert plain.ask("GET", "/v1/whoami").headers["link"].startswith("</ui>;")
    assert proxied.ask("GET", "/v1/whoami").headers["link"].startswith(f"<{PREFIX}/ui>;")
    assert plain.ask("GET", "/v1/openapi.json").body["servers"] == [{"url": "/"}]
    described = proxied.ask("GET", "/v1/openapi.json").body
    assert described["servers"] == [{"url": PREFIX}]
    assert described["paths"].keys() == plain.ask("GET", "/v1/openapi.json").body["paths"].keys()


def test_programs_without_addresses_work_too(proxied: Proxied) -> None:
    """Probes, metrics, and an unknown path."""
    assert [proxied.ask("GET", path).status for path in ("/healthz", "/readyz", "/metrics")] == [
        200
    ] * 3
    assert proxied.ask("GET", "/none").status == 404
    assert proxied.ask("GET", "").status == 200, "a prefix without a slash after it"


class Reader(Browser):
    """A browser behind a proxy. Pages must name addresses outside of it."""

    def __init__(self, native: Proxied) -> None:
        super().__init__(native.url)
        self.way = native.way

    def _sent(
        self,
        connection: HTTPConnection,
        method: str,
        path: str,
        form: Mapping[str, str] | None,
        headers: Mapping[str, str],
    ) -> HTTPResponse:
        """Send a request for an address outside of the proxy, also for a stream."""
        assert path.startswith(PREFIX), path
        inside = self.way.path(path.removeprefix(PREFIX))
        return super()._sent(connection, method, inside, form, {**self.way.headers, **headers})


ADDRESS = re.compile(r'[\s](href|src|action|formaction|data-[\w-]+|id)="(/[^"]*)"')


def test_every_address_of_the_dashboard_has_the_prefix(proxied: Proxied) -> None:
    """All pages, their files, forms, redirects and streams, and the way through signing in."""
    pool = make_pool(proxied)
    ticket = waiting_ticket(proxied, pool).body["id"]
    host = filled(proxied)["uuid"]
    reshape = Split(proxied).committed().body["id"]
    day = datetime.now(UTC).date() + timedelta(days=1)  # noqa: TID251  # of the real server
    times = {"start": f"{day}T10:00:00Z", "end": f"{day}T11:00:00Z"}
    booked = {"needs": [{"pool": make_pool(proxied), "units": 1}], "key": "k", **times}
    booking = proxied.ask("POST", "/v1/bookings", booked).body["id"]
    queries = {
        CLAIM: f"?resources=CUSTOM_A:1&place={host}",
        "/ui/bookings/new": f"?{urlencode({'pool': pool, **times})}",
        f"/ui/bookings/{booking}/change": f"?{urlencode(times)}",
    }
    ids = {"machines": host, "reshapes": reshape, "bookings": booking}
    reader = Reader(proxied)
    turned = reader.get(f"{PREFIX}/ui/pools?x=1")
    assert turned.status == 303
    assert turned.headers["location"].startswith(f"{PREFIX}/ui/sign-in?next=%2Fui%2Fpools")
    shown = reader.get(turned.headers["location"])
    (form,) = shown.document.forms
    assert form.action == f"{PREFIX}/ui/sign-in"
    entered = reader.ask("POST", form.action, {**form.fields, "token": proxied.token("admin")})
    assert entered.headers["location"] == f"{PREFIX}/ui/pools?x=1"
    assert f"; Path={PREFIX}; HttpOnly; SameSite=Strict" in entered.headers["set-cookie"]
    assert reader.get(PREFIX, Accept="text/html,*/*").headers["location"] == f"{PREFIX}/ui"
    assert reader.get(f"{PREFIX}/", Accept="*/*").status == 200
    kinds = set()
    for page in ENTRIES:
        if not isinstance(page, Page) or "agents" in page.path:
            continue
        address = page.path.replace("{name+}", pool)
        one = next((ids[kind] for kind in ids if kind in address), ticket)
        address = address.replace("{id}", one).replace("{operation}", "get_pool")
        address += queries.get(address, "")
        answer = reader.get(f"{PREFIX}{address}")
        assert answer.status == 200, address
        for name, value in ADDRESS.findall(answer.body):
            if name == "id":
                continue
            kinds.add(name)
            inside = (f"{PREFIX}/ui", f"{PREFIX}/v1/openapi.json")
            assert value.startswith(inside), (page.path, name, value)
            assert not value.startswith(f"{PREFIX}{PREFIX}"), (page.path, name, value)
        for link in {*answer.document.links} - {"#main"}:
            if link.startswith("/"):
                assert reader.get(link).status == 200, link
        for file in re.findall(r'(?:src|href)="([^"]*/static/[^"]*)"', answer.body):
            assert reader.get(file).status == 200
    assert kinds == {*ATTRIBUTES} - {"formaction"}
    paused = reader.submit(f"{PREFIX}/ui/pools/{pool}", f"{PREFIX}/ui/pools/{pool}:pause")
    assert "Done." in paused.document.text
    for name, value in ADDRESS.findall(paused.body):
        assert name == "id" or value.startswith(f"{PREFIX}/ui"), (name, value)
    (leave,) = [one for one in paused.document.forms if one.action.endswith("/sign-out")]
    left = reader.ask("POST", leave.action, leave.fields)
    assert left.headers["location"].startswith(f"{PREFIX}/ui/sign-in")


def test_an_open_page_is_updated_with_the_prefix(proxied: Proxied) -> None:
    """The stream of a page has its addresses, too."""
    reader = Reader(proxied)
    reader.ask("POST", f"{PREFIX}/ui/sign-in", {"token": proxied.token("admin", name="stream")})
    pool = make_pool(proxied)
    text = next(text for name, text in reader.events(f"{PREFIX}/ui/pools") if name == "main")
    assert f'href="{PREFIX}/ui/pools/{pool}"' in text


def test_what_users_write_is_no_address(proxied: Proxied) -> None:
    """A text that looks like an address in a template stays as it is."""
    reader = Reader(proxied)
    reader.ask("POST", f"{PREFIX}/ui/sign-in", {"token": proxied.token("admin", name="texts")})
    text = ' href="/ui/x" action=/ui'
    pool = make_pool(proxied)
    proxied.ask("POST", f"/v1/pools/{pool}:pause", {"reason": text})
    page = reader.get(f"{PREFIX}/ui/pools/{pool}")
    assert text in page.document.text
    searched = reader.get(f"{PREFIX}/ui/audit?target=/ui/x")
    assert 'value="/ui/x"' in searched.body


def test_a_header_of_anybody_else_changes_nothing(plain: Proxied) -> None:
    """The control: this server trusts no proxy."""
    made = plain.ask("POST", "/resource_providers", {"name": f"made-{next(_numbers)}"})
    assert made.headers["location"].startswith(f"{plain.url}/resource_providers/")


@pytest.mark.parametrize("prefix", ["/ui", "/resource_providers/x"])
def test_a_prefix_of_our_own_paths_is_refused(tmp_path: Path, prefix: str) -> None:
    """It could not be distinguished from a path without the prefix."""
    with pytest.raises(NotStarted, match=f"path_prefix: {prefix} begins like a path of Moorage"):
        serve(tmp_path / "moorage.sqlite", "--path-prefix", prefix)


def test_the_start_names_the_dashboard_and_its_token(tmp_path: Path) -> None:
    """After the line that says that it serves."""
    database = tmp_path / "moorage.sqlite"
    with serve(database, "--path-prefix", PREFIX) as server:
        server.wait_for(
            f"moorage: the dashboard is at {server.url}{PREFIX}/ui; open it with `moorage"
            " dashboard`, or sign in with the"
        )
        (line,) = [line for line in server.said if "dashboard is at" in line]
        assert line.endswith(f"the token in {database}.token\n")
        assert server.said.index(line) == 1 + next(
            n for n, said in enumerate(server.said) if "moorage: serving" in said
        )
