"""Behind a real nginx at `/placement`, as DevStack mounts it: the stock client, and a browser."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pytest

from tests.e2e.support.server import serve
from tests.faces.dashboard.support.browserless import Browser
from tests.faces.v1.leasing import ask
from tests.faces.v1.native import Native
from tests.proxies.nginx import Nginx

CLIENT = Path(".venv-client/bin/openstack").absolute()
PREFIX = "/placement"
SETTING = ("--path-prefix", PREFIX)
TRUSTING = ("--trusted-proxies", "127.0.0.1")

REMOVED = """
        location /placement/ {
            proxy_pass http://UPSTREAM/;
            proxy_set_header Host $http_host;
            %s
        }
        location = /placement {
            proxy_pass http://UPSTREAM/;
            proxy_set_header Host $http_host;
            %s
        }
"""
KEPT = """
        location /placement {
            proxy_pass http://UPSTREAM;
            proxy_set_header Host $http_host;
        }
"""
HOST_LOST = """
        location /placement/ {
            proxy_pass http://UPSTREAM/;
        }
"""
"""nginx's own rewriting of Location then works on answers with the prefix, too."""

(DENIED,) = re.findall(
    r"^    (location ~ /metrics.*?^    \}$)",
    Path("docs/howto/operate.md").read_text(),
    re.DOTALL | re.MULTILINE,
)
"""What the guide says of the metrics."""

METRICS = ("/metrics", "/%6detrics", f"{PREFIX}/metrics", f"{PREFIX}//metrics")

HEADER = "proxy_set_header X-Forwarded-Prefix /placement;"


class Mounted(NamedTuple):
    """A configuration of nginx, and options of the server behind it."""

    locations: str
    options: tuple[str, ...]


CONFIGURATIONS = {
    "with a URI, the setting": Mounted(REMOVED % ("", ""), SETTING),
    "with a URI, the header": Mounted(REMOVED % (HEADER, HEADER), TRUSTING),
    "with a URI, both": Mounted(REMOVED % (HEADER, HEADER), (*SETTING, *TRUSTING)),
    "without a URI, the setting": Mounted(KEPT, SETTING),
    "with a URI, the host is lost": Mounted(HOST_LOST, SETTING),
}


class Site(NamedTuple):
    """A server behind nginx."""

    url: str
    native: Native
    database: Path


def mounted(folder: Path, how: Mounted) -> Iterator[Site]:
    """Serve behind nginx."""
    database = folder / "moorage.sqlite"
    with (
        serve(database, "--no-access-log", *how.options) as server,
        Nginx(folder / "nginx", server.url, how.locations) as proxy,
    ):
        yield Site(proxy.url, Native(server.url, database), database)


@pytest.fixture(scope="module", params=[*CONFIGURATIONS])
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """Return a server behind each configuration."""
    yield from mounted(tmp_path_factory.mktemp("site"), CONFIGURATIONS[request.param])


def openstack(site: Site, version: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the stock client, as it comes."""
    environment = {
        "PATH": os.environ["PATH"],
        "OS_AUTH_TYPE": "admin_token",
        "OS_ENDPOINT": f"{site.url}{PREFIX}",
        "OS_TOKEN": site.native.secret,
        "OS_PLACEMENT_API_VERSION": version,
    }
    command = [str(CLIENT), *words, "-f", "value"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("version", ["1.0", "1.20", "1.39"])
def test_the_stock_client_creates_a_provider(site: Site, version: str) -> None:
    """Before 1.20 it follows Location."""
    uuid = str(uuid4())
    made = openstack(
        site, version, "resource", "provider", "create", "--uuid", uuid, f"host-{uuid}"
    )
    assert made.returncode == 0, made.stderr
    assert uuid in made.stdout
    shown = openstack(site, version, "resource", "provider", "show", uuid)
    assert uuid in shown.stdout


def test_a_browser_signs_in_and_sees_its_files(site: Site) -> None:
    """Every redirect, address and cookie stays below the prefix."""
    reader = Browser(site.url)
    turned = reader.get(f"{PREFIX}/", Accept="text/html,*/*;q=0.8")
    assert turned.status == 303
    at = re.sub(r"\Ahttp://[^/]+", "", turned.headers["location"])
    assert at == f"{PREFIX}/ui"
    sign_in = re.sub(r"\Ahttp://[^/]+", "", reader.get(at).headers["location"])
    assert sign_in.startswith(f"{PREFIX}/ui/sign-in")
    (form,) = reader.get(sign_in).document.forms
    entered = reader.ask("POST", form.action, {**form.fields, "token": site.native.secret})
    if entered.status == 403:
        assert "keep the header Host" in entered.body
        return
    assert entered.headers["location"].endswith(f"{PREFIX}/ui")
    page = reader.get(f"{PREFIX}/ui")
    assert page.status == 200
    for address in re.findall(r'(?:href|src)="(/[^"]*)"', page.body):
        assert reader.get(address).status == 200, address


def test_a_job_learns_where_its_ticket_is(site: Site) -> None:
    """The link in the log of a job that waits leads through nginx."""
    site.native.ask("PUT", "/v1/pools/p", {"limit": 1})
    environment = {
        "PATH": os.environ["PATH"],
        "MOORAGE_URL": f"{site.url}{PREFIX}",
        "MOORAGE_TOKEN": site.native.secret,
    }
    moorage = Path(".venv/bin/moorage").absolute()
    assert ask(site.native, "p").status == 201
    waits = subprocess.Popen(
        [moorage, "run", "-p", "p", "--", "true"],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert waits.stderr is not None
    line = next(line for line in waits.stderr if "waits in line" in line)
    waits.terminate()
    waits.communicate()
    assert f"see {site.url}{PREFIX}/ui/leases/" in line


def test_without_prefix_and_header_the_client_fails(tmp_path: Path) -> None:
    """The control."""
    for site in mounted(tmp_path, Mounted(REMOVED % ("", ""), ())):
        made = openstack(site, "1.0", "resource", "provider", "create", "host")
        assert made.returncode != 0


@pytest.mark.parametrize("rule, status", [(DENIED, 403), ("", 200)], ids=["guide", "control"])
def test_metrics_are_not_published(tmp_path: Path, rule: str, status: int) -> None:
    """However their path is written; without the rule of the guide they are."""
    whole = "location / { proxy_pass http://UPSTREAM; }\n"
    for site in mounted(tmp_path, Mounted(REMOVED % ("", "") + whole + rule, SETTING)):
        assert {path: Browser(site.url).get(path).status for path in METRICS} == dict.fromkeys(
            METRICS, status
        )
