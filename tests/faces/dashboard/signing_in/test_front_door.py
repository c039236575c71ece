"""`GET /`: browsers are led to the dashboard, everything else gets Placement's version document."""

import http.client
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.support.server import Server, serve

CHROME = (
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;"
    "q=0.8,application/signed-exchange;v=b3;q=0.7"
)
FIREFOX = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
OLD_FIREFOX = (
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
)
LYNX = "text/html, text/plain, text/sgml, text/css, application/xhtml+xml, */*;q=0.01"
BROWSERS = (CHROME, FIREFOX, OLD_FIREFOX, LYNX)

KEYSTONEAUTH = "application/json"
CLIENTS = (None, "*/*", KEYSTONEAUTH, "application/json, */*", "application/json,text/html,*/*")
"""What curl, keystoneauth, openstacksdk, gophercloud and others send; None: no header."""


def asked(
    server: Server, method: str, path: str, accept: str | None
) -> tuple[int, dict[str, str], bytes]:
    """Send one request; return status, headers and body."""
    parts = urlsplit(server.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    try:
        connection.request(method, path, headers={} if accept is None else {"Accept": accept})
        answer = connection.getresponse()
        named = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, named, answer.read()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a server with the dashboard."""
    with serve(tmp_path_factory.mktemp("door") / "moorage.sqlite") as running:
        yield running


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return one without it."""
    with serve(tmp_path_factory.mktemp("plain") / "moorage.sqlite", "--no-ui") as running:
        yield running


@pytest.mark.parametrize("accept", BROWSERS)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_browsers_are_led_to_the_dashboard(server: Server, method: str, accept: str) -> None:
    """No cache may keep it for a client."""
    status, headers, body = asked(server, method, "/", accept)
    assert (status, headers["location"], body) == (303, "/ui", b"")
    assert (headers["vary"], headers["cache-control"]) == ("accept", "no-store")


@pytest.mark.parametrize("accept", [*CLIENTS, "text/html", "text/html;q=0.1,application/json"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_everything_else_gets_what_it_gets_without_a_dashboard(
    server: Server, plain: Server, method: str, accept: str | None
) -> None:
    """To the byte, with the same headers, apart from what differs by time and request."""

    def kept(found: tuple[int, dict[str, str], bytes]) -> tuple[int, dict[str, str], bytes]:
        status, headers, body = found
        varying = ("date", "x-openstack-request-id", "last-modified")
        return status, {n: v for n, v in headers.items() if n not in varying}, body

    assert kept(asked(server, method, "/", accept)) == kept(asked(plain, method, "/", accept))


@pytest.mark.parametrize("accept", BROWSERS)
def test_without_a_dashboard_browsers_get_the_versions(plain: Server, accept: str) -> None:
    """As from OpenStack Placement."""
    status, headers, body = asked(plain, "GET", "/", accept)
    assert (status, b'"versions"' in body) == (200, True)
    assert "location" not in headers


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_other_methods_are_placements(server: Server, plain: Server, method: str) -> None:
    """They are refused as before."""
    found = [asked(one, method, "/", CHROME)[0] for one in (server, plain)]
    assert found[0] == found[1] != 303


def test_the_start_names_the_command(server: Server, tmp_path: Path) -> None:
    """The second line has the address and the command that opens it; without one there is none."""
    server.wait_for("moorage: the dashboard is at")
    (line,) = [one for one in server.said if "dashboard is at" in one]
    assert f"{server.url}/ui; open it with `moorage dashboard`, or sign in with" in line
