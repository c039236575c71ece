"""A server that starts from Placement's own configuration, with a Keystone."""

import json
import os
import subprocess
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.config.files import KOLLA, OPENSTACK_ANSIBLE, SECRETS, written
from tests.e2e.support.server import serve
from tests.faces.auth.keystone_server import PASSWORD, serve_keystone

CLIENT = Path(__file__).resolve().parents[2] / ".venv-client/bin/openstack"


def status_of(url: str, token: str = "") -> int:
    """Return the status of the answer to a GET."""
    try:
        with urlopen(Request(url, headers={"X-Auth-Token": token} if token else {})) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


def openstack(url: str, *words: str) -> str:
    """Run the stock client as a service; return its output."""
    given = {"OS_AUTH_TYPE": "admin_token", "OS_ENDPOINT": url, "OS_TOKEN": "nova"}
    versions = {"OS_PLACEMENT_API_VERSION": "1.39", "PYTHONUTF8": "1"}
    done = subprocess.run(
        [str(CLIENT), *words],
        env={"PATH": os.environ["PATH"], **given, **versions},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("text", [KOLLA, OPENSTACK_ANSIBLE])
def test_of_a_deployment_project(tmp_path: Path, text: str) -> None:
    """It answers as the original does: Keystone's users get in, and others do not.

    The user that validates tokens is found by the ids of the domains, as these projects have them.
    """
    with serve_keystone() as keystone:
        keystone.admit("nova", "service", project={"id": "service", "name": "service"})
        keystone.admit("reader", "reader", project={"id": "p"})
        url = keystone.url.removesuffix("/v3")
        file = written(tmp_path, text, url, PASSWORD)
        with serve(tmp_path / "m.sqlite", "--placement-conf", str(file)) as server:
            for token, status in (("nova", 200), ("reader", 403), ("nobody", 401)):
                assert status_of(f"{server.url}/resource_providers", token) == status, token
            assert status_of(f"{server.url}/") == 200
            name = "node-1 ⚓"
            listed = openstack(server.url, "resource", "provider", "create", name, "-f", "json")
            assert json.loads(listed)["name"] == name
            said = "\n".join(server.said)
        assert keystone.domains == {("id", "default")}
    assert "[placement_database] connection" in said
    assert not any(secret in said for secret in SECRETS)
