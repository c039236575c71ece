"""Behind a real HAProxy that is configured as in the guide."""

import os
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing
from http.client import HTTPSConnection
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from tests.e2e.support.server import Server, serve
from tests.faces.v1.native import Native
from tests.proxies.haproxy import CONFIGURATION, HaProxy

CLIENT = Path(".venv-client/bin/openstack").absolute()
DENIED = "    http-request deny if { path,url_dec -m end /metrics }\n"
METRICS = ("/metrics", "/%6detrics", "/placement/metrics", "/placement/metrics?x=1")
TRUSTED = ("--trusted-proxies", "127.0.0.1", "--path-prefix", "/placement")


class Site(NamedTuple):
    """A server behind HAProxy."""

    url: str
    certificate: Path
    server: Server
    native: Native


def proxied(folder: Path, configuration: str) -> Iterator[Site]:
    """Serve behind HAProxy."""
    database = folder / "moorage.sqlite"
    with (
        serve(database, *TRUSTED) as server,
        HaProxy(folder / "haproxy", server.url, configuration) as proxy,
    ):
        yield Site(proxy.url, proxy.certificate, server, Native(server.url, database))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Return a server behind the configuration of the guide."""
    yield from proxied(tmp_path_factory.mktemp("site"), CONFIGURATION)


def status_of(site: Site, path: str, headers: Mapping[str, str] | None = None) -> int:
    """Return the status of an answer. The path is sent as it is."""
    context = ssl.create_default_context(cafile=site.certificate)
    address = urlsplit(site.url).netloc
    with closing(HTTPSConnection(address, timeout=30.0, context=context)) as connection:
        connection.request("GET", path, headers=dict(headers or {}))
        return connection.getresponse().status


def test_the_stock_client_creates_a_provider(site: Site) -> None:
    """Before 1.20 it follows Location, whose scheme is that of the client's connection."""
    environment = {
        "PATH": os.environ["PATH"],
        "OS_AUTH_TYPE": "admin_token",
        "OS_ENDPOINT": site.url,
        "OS_TOKEN": site.native.secret,
        "OS_CACERT": str(site.certificate),
        "OS_PLACEMENT_API_VERSION": "1.0",
    }
    command = [str(CLIENT), "resource", "provider", "create", "host", "-f", "value"]
    made = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert "host" in made.stdout


def test_the_log_names_the_client_and_not_the_proxy(site: Site) -> None:
    """A client's own header is removed, whatever it says."""
    forged = {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "http"}
    assert status_of(site, "/resource_classes?seen=77", forged) == 401
    site.server.wait_for("seen=77")
    (line,) = (line for line in site.server.said if "seen=77" in line)
    assert "127.0.0.1" in line and "203.0.113.7" not in line


@pytest.mark.parametrize(
    "configuration, status",
    [(CONFIGURATION, 403), (CONFIGURATION.replace(DENIED, ""), 200)],
    ids=["guide", "control"],
)
def test_metrics_are_not_published(tmp_path: Path, configuration: str, status: int) -> None:
    """However their path is written; without the rule of the guide they are."""
    for site in proxied(tmp_path, configuration):
        answers = {path: status_of(site, path) for path in METRICS}
        assert answers == dict.fromkeys(METRICS, status)
