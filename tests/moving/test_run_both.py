"""The guide "Run both for a week": its proxy keeps both sides the same while clients write."""

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from tests.moving.support.original import Asking
from tests.moving.support.pair import Pair, pair
from tests.proxies.nginx import Nginx

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs/howto/run-both.md"
NGINX = ROOT / ".nginx/nginx"
CLIENTS, WRITES = 8, 6


def _locations(both: Pair) -> str:
    """Return the configuration of the guide, with the addresses of both."""
    (found,) = re.findall(r"```nginx\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    original, moorage = (urlsplit(url).netloc for url in (both.original.url, both.server.url))
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


def test_both_do_the_same_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight clients write through the proxy, each on its own providers; then nothing differs.

    Each keeps its connection: the proxy sends the next request of a connection when the copy of the
    last one is answered.
    """
    monkeypatch.setenv("NGINX_PROGRAM", os.environ.get("NGINX_PROGRAM", str(NGINX)))
    with (
        pair(15, 40, "mariadb") as both,
        Nginx(tmp_path / "nginx", both.original.url, _locations(both)) as proxy,
    ):

        def write(client: int) -> None:
            ask = Kept(proxy.url)
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

        with ThreadPoolExecutor(CLIENTS) as clients:
            list(clients.map(write, range(CLIENTS)))
        words = ("verify", "placement", "--url", both.original.url, "--source-token", "admin")
        said = both.done(*words, "--database", both.original.database, "--candidates", "60")
        assert "no difference" in said
        listed = Asking(both.server.url).get("/resource_providers")["resource_providers"]
        assert len(listed) == 15 + CLIENTS * WRITES // 2
