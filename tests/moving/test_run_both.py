"""The guide "Run both for a week", typed: its proxy keeps both the same while clients write."""

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from textwrap import dedent
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from moorage.integrations.placement.addresses import address_of
from tests.e2e.support.server import Server, serve
from tests.e2e.support.typed import ROOT, Step
from tests.moving.support import engines
from tests.moving.support.generator import fill
from tests.moving.support.original import Asking, Original
from tests.moving.support.pages import KNOWN, normal, steps_in, typed
from tests.moving.support.pair import TOKEN
from tests.proxies.nginx import Nginx

GUIDE = ROOT / "docs/howto/run-both.md"
NGINX = ROOT / ".nginx/nginx"
PROVIDERS, CLIENTS, WRITES = 15, 8, 6
SHOWN = re.compile(r"^    different: .*\n(?:      .*\n)+", re.MULTILINE)
"""A difference as the page shows it."""


def _locations(first: Original, server: Server) -> str:
    """Return the configuration of the guide, with the addresses of both."""
    (found,) = re.findall(r"```nginx\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    original, moorage = (urlsplit(url).netloc for url in (first.url, server.url))
    assert found.count("10.0.0.5:8778") == found.count("10.0.0.6:8778") == 1
    return str(found).replace("10.0.0.5:8778", original).replace("10.0.0.6:8778", moorage)


class Kept:
    """A client that keeps its connection, as those of OpenStack do."""

    def __init__(self, url: str) -> None:
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=60)

    def do(self, method: str, path: str, body: Any = None) -> None:
        """Send a request, which must succeed."""
        headers = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.38"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        self._connection.request(method, path, json.dumps(body) if body else None, headers)
        answer = self._connection.getresponse()
        said = answer.read()
        assert 200 <= answer.status < 300, (method, path, answer.status, said)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _write(proxy: str, client: int) -> None:
    """Do the work of one client, on its own providers."""
    ask = Kept(proxy)
    for number in range(WRITES):
        uuid, consumer = str(uuid4()), str(uuid4())
        ask.do("POST", "/resource_providers", {"name": f"{client}-{number}", "uuid": uuid})
        inventories = {"VCPU": {"total": 8, "allocation_ratio": 1.5}}
        body = {"resource_provider_generation": 0, "inventories": inventories}
        ask.do("PUT", f"/resource_providers/{uuid}/inventories", body)
        claim = {
            "allocations": {uuid: {"resources": {"VCPU": 2}}},
            **{"project_id": "p", "user_id": "u", "consumer_type": "INSTANCE"},
            "consumer_generation": None,
        }
        ask.do("PUT", f"/allocations/{consumer}", claim)
        ask.do("GET", f"/allocations/{consumer}")
        if number % 2:
            ask.do("DELETE", f"/allocations/{consumer}")
            ask.do("DELETE", f"/resource_providers/{uuid}")
    ask.close()


def _changed(server: Server, uuid: str) -> None:
    """Give a provider one VCPU more on our side only."""
    ours = Asking(server.url)
    shown = ours.get(f"/resource_providers/{uuid}/inventories")
    shown["inventories"]["VCPU"]["total"] += 1
    ours.do("PUT", f"/resource_providers/{uuid}/inventories", shown)


def test_both_do_the_same_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight clients write through the proxy, each on its own providers; then nothing differs.

    Each keeps its connection: the proxy sends the next request of a connection when the copy of the
    last one is answered. The control: a difference is printed as the page shows it.
    """
    monkeypatch.setenv("NGINX_PROGRAM", os.environ.get("NGINX_PROGRAM", str(NGINX)))
    database = engines.fresh("mariadb", tmp_path)
    reading = engines.mariadb().account("follows", "SELECT", str(address_of(database).database))
    for name, content in (("placement.url", reading), ("original.token", TOKEN)):
        (tmp_path / name).write_text(f"{content}\n")
        (tmp_path / name).chmod(0o600)
    with (
        Original(database) as original,
        serve(tmp_path / "m.sqlite", "--auth", "noauth2", "--no-access-log") as server,
    ):
        made = fill(original.url, 1, PROVIDERS, 40)
        for one in typed(steps_in(GUIDE, ["Beside", "Mirrored"], {}), tmp_path, server):
            assert (one.as_shown(), one.code) == (True, 0), (one.step.command, one.said)
        with (
            Nginx(tmp_path / "nginx", original.url, _locations(original, server)) as proxy,
            ThreadPoolExecutor(CLIENTS) as clients,
        ):
            list(clients.map(_write, [proxy.url] * CLIENTS, range(CLIENTS)))
        listed = Asking(server.url).get("/resource_providers")["resource_providers"]
        assert len(listed) == PROVIDERS + CLIENTS * WRITES // 2
        compare = steps_in(GUIDE, ["Compare"], {"http://10.0.0.5:8778": original.url})
        every_row = Step(f"{compare[0].command} --database-file placement.url --candidates 0")
        page = GUIDE.read_text()
        (heading,) = KNOWN.findall(page)
        assert f"| {heading} |" in page
        compared, rows = typed([*compare, every_row], tmp_path, server)
        assert (compared.as_shown(), compared.code) == (True, 0), compared.said
        assert " rows, " in rows.said
        assert (rows.said.splitlines()[-1], rows.code) == ("no difference", 0)
        _changed(server, made.providers[0])
        (differing,) = typed(compare, tmp_path, server)
        assert differing.code == 1
        (difference,) = SHOWN.findall(page)
        assert normal(dedent(difference)) in normal(differing.said)
