"""With `--os-cloud`, a real Keystone gives the token for the original, and its address.

The original and Moorage ask the same Keystone whether a token is valid, by the same configuration.
All of it is HTTPS with a certificate that only `clouds.yaml` names.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.e2e.support.server import Server, serve
from tests.moving.support import engines
from tests.moving.support.identity import LOGIN, PASSWORD, REGION, Keystone
from tests.moving.support.original import SETTINGS, Original
from tests.support import warm
from tests.support.certificates import Certificate, certificate

SECONDS_MAX = 280.0

ASKS_KEYSTONE = (
    SETTINGS.replace("noauth2", "keystone")
    + """\
[keystone_authtoken]
auth_type = password
auth_url = KEYSTONE
www_authenticate_uri = KEYSTONE
cafile = CERTIFICATE
"""
    + "".join(f"{name} = {value}\n" for name, value in LOGIN.items())
)

COPY = ("import", "placement", "--report", "report")
VERIFY = ("verify", "placement", "--candidates", "10")


@dataclass(frozen=True)
class Site:
    """A Keystone, an original that asks it, and a server of Moorage that does, too."""

    keystone: Keystone
    original: Original
    server: Server
    certificate: Certificate
    folder: Path

    def clouds(self) -> dict[str, Any]:
        """Return a good entry of clouds.yaml, whose password is in secure.yaml, and bad ones."""
        login = {"auth_url": f"{self.keystone.url}/v3", **LOGIN}
        login.pop("password")
        good = {"auth": login, "region_name": REGION, "cacert": self._authority}
        credential = self.keystone.application_credential()
        return {
            "good": good,
            "program": {
                **good,
                "auth_type": "v3applicationcredential",
                "auth": {"auth_url": login["auth_url"], **credential},
            },
            "careless": {**good, "cacert": "/nowhere", "verify": False},
            "wrong": {**good, "auth": {**login, "password": "SECRET"}},
            "elsewhere": {**good, "interface": "internal"},
            "strict": {name: value for name, value in good.items() if name != "cacert"},
            "lost": {**good, "cacert": "/nowhere/ca.pem"},
        }

    @property
    def _authority(self) -> str:
        return str(self.certificate.folder / "cert.pem")

    def moorage(self, *words: str) -> CompletedProcess[str]:
        """Run a command in the folder that has clouds.yaml."""
        known = {k: v for k, v in os.environ.items() if not k.startswith(("MOORAGE_", "OS_"))}
        variables = {
            "MOORAGE_URL": self.server.url,
            "MOORAGE_TOKEN": self.keystone.token(),
            "HOME": str(self.folder),
        }
        return warm.run(words, SECONDS_MAX, self.folder, {**known, **variables})


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Nothing is imported yet."""
    folder = tmp_path_factory.mktemp("site")
    pem = certificate(folder, "IP:127.0.0.1")
    with Keystone(pem) as keystone:
        settings = ASKS_KEYSTONE.replace("KEYSTONE", f"{keystone.url}/v3")
        settings = settings.replace("CERTIFICATE", str(folder / "cert.pem"))
        database = engines.fresh("sqlite", folder)
        with Original(database, settings=settings, certificate=folder) as original:
            keystone.offer(original.url)
            conf = str(original.folder / "placement.conf")
            with serve(folder / "m.sqlite", "--placement-conf", conf) as server:
                site = Site(keystone, original, server, pem, folder)
                entries = site.clouds()
                (folder / "clouds.yaml").write_text(json.dumps({"clouds": entries}))
                secret = {"auth": {"password": PASSWORD}}
                secrets = {name: secret for name in entries if name not in ("program", "wrong")}
                (folder / "secure.yaml").write_text(json.dumps({"clouds": secrets}))
                yield site


def test_a_cloud_names_the_original_and_gives_its_token(site: Site) -> None:
    """The ledger is imported over the API, and compared: once for each way of logging in."""
    done = site.moorage(*COPY, "--os-cloud", "good")
    assert done.returncode == 0, done.stderr
    assert f"Read from {site.original.url}" in (site.folder / "report.txt").read_text()
    for name in ("good", "program", "careless"):
        done = site.moorage(*VERIFY, "--os-cloud", name)
        assert (done.returncode, "no difference" in done.stdout) == (0, True), (name, done.stderr)


REFUSED = (
    ("wrong", "clouds.yaml, wrong: Keystone refuses the login: "),
    ("elsewhere", "the catalog of elsewhere has no placement (internal, one): give --url"),
    ("strict", "certificate verify failed"),
    ("lost", "clouds.yaml, lost: /nowhere/ca.pem: No such file"),
    ("nobody", "clouds.yaml has no entry nobody; it has careless, elsewhere, good"),
)


@pytest.mark.parametrize(("name", "said"), REFUSED)
def test_a_cloud_that_cannot_be_used(site: Site, name: str, said: str) -> None:
    """One line says why, without the password."""
    done = site.moorage(*VERIFY, "--os-cloud", name)
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert "SECRET" not in done.stderr
    assert PASSWORD not in done.stderr
