"""Starts a real Keystone, whose catalog names an original."""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from tests.moving.support.original import PYTHON, ROOT
from tests.support.certificates import Certificate
from tests.support.closing import Closing
from tests.support.guard import Guard

PROGRAM = "tests.moving.support.keystone_serving"
MANAGE = PYTHON.parent / "keystone-manage"
PASSWORD = "a %secret@of/admin"
REGION = "one"
OWNER = ("--keystone-user", str(os.geteuid()), "--keystone-group", str(os.getegid()))

SETTINGS = """\
[DEFAULT]
log_file = {folder}/log
[database]
connection = sqlite:///{folder}/keystone.sqlite
[fernet_tokens]
key_repository = {folder}/fernet
[credential]
key_repository = {folder}/credential
"""

LOGIN: Mapping[str, str] = {
    "username": "admin",
    "password": PASSWORD,
    "project_name": "admin",
    "user_domain_id": "default",
    "project_domain_id": "default",
}


class Keystone(Closing):
    """A Keystone at `url`, with the user, the project and the role `admin`. Context manager."""

    def __init__(self, certificate: Certificate) -> None:
        """Make its database and its keys, and start it; it serves HTTPS with a certificate."""
        self._tls = certificate.client()
        self._folder = tempfile.TemporaryDirectory(prefix="moorage-keystone-")
        folder = Path(self._folder.name)
        self._settings = folder / "keystone.conf"
        self._settings.write_text(SETTINGS.format(folder=folder))
        self._manage("db_sync")
        self._manage("fernet_setup", *OWNER)
        self._process = subprocess.Popen(
            [PYTHON, "-m", PROGRAM, folder, certificate.folder],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._guard = Guard(self._process.pid, "KILL")
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("keystone: serving "), (folder / "log").read_text()[-3_000:]
        self.url = line.split()[-1]
        addresses = [f"--bootstrap-{kind}-url={self.url}/v3" for kind in ("public", "internal")]
        self._manage(
            *("bootstrap", "--bootstrap-password", PASSWORD, "--bootstrap-region-id", REGION),
            *addresses,
        )

    def _manage(self, *words: str) -> None:
        done = subprocess.run(
            [MANAGE, "--config-file", self._settings, *words],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def token(self) -> str:
        """Return a token of the administrator."""
        _, token = self._do("/v3/auth/tokens", _login())
        return token

    def offer(self, url: str, interface: str = "public") -> None:
        """Name an original in the catalog."""
        token = self.token()
        service = {"service": {"type": "placement", "name": "placement"}}
        made, _ = self._do("/v3/services", service, token)
        endpoint = {
            "service_id": made["service"]["id"],
            "interface": interface,
            "url": url,
            "region_id": REGION,
        }
        self._do("/v3/endpoints", {"endpoint": endpoint}, token)

    def application_credential(self) -> dict[str, str]:
        """Return what an application proves itself with, in place of the user's password."""
        told, token = self._do("/v3/auth/tokens", _login())
        path = f"/v3/users/{told['token']['user']['id']}/application_credentials"
        made, _ = self._do(path, {"application_credential": {"name": "moorage"}}, token)
        return {
            "application_credential_id": made["application_credential"]["id"],
            "application_credential_secret": made["application_credential"]["secret"],
        }

    def _do(self, path: str, body: Any, token: str = "") -> tuple[Any, str]:
        headers = {"Content-Type": "application/json", "X-Auth-Token": token}
        request = Request(self.url + path, json.dumps(body).encode(), headers)
        with urlopen(request, timeout=60, context=self._tls) as answer:
            return json.load(answer), answer.headers.get("X-Subject-Token", "")

    def close(self) -> None:
        """Stop it, and remove its folder."""
        self._guard.close()
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()


def _login() -> Any:
    """Return the body of a request for a token."""
    domain = {"id": "default"}
    user = {"name": "admin", "password": PASSWORD, "domain": domain}
    identity = {"methods": ["password"], "password": {"user": user}}
    return {
        "auth": {"identity": identity, "scope": {"project": {"name": "admin", "domain": domain}}}
    }
