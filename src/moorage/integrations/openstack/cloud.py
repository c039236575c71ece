"""An entry of clouds.yaml: a token, and the addresses of services, from Keystone.

It reads the part that describes how to log in, and secrets from secure.yaml; what openstacksdk adds
to it, such as profiles of vendors, it does not know.
"""

import logging
import os
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from moorage.extras import needs
from moorage.integrations.openstack.cloud_error import CloudAwayError, CloudError
from moorage.integrations.pem_files import PemError, trusting

FILE_VARIABLE = "OS_CLIENT_CONFIG_FILE"
SECRETS_VARIABLE = "OS_CLIENT_SECURE_FILE"


class Cloud:
    """A cloud as its Keystone knows it. Every call raises CloudError."""

    def __init__(self, name: str) -> None:
        """Read the entry. Raises CloudError: there is none, or the extra is missing."""
        try:
            from keystoneauth1 import exceptions, loading, session
        except ImportError as error:
            raise CloudError(f"--os-cloud {needs('keystone', error)}") from None
        entry = _entry(name)
        self._name = name
        self._errors = exceptions.ClientException
        self._unauthorized = exceptions.Unauthorized
        self._not_found = exceptions.EndpointNotFound
        self._lock = threading.Lock()
        self._service = {
            "interface": entry.get("interface", "public"),
            "region_name": entry.get("region_name"),
        }
        self._verify: bool | str = bool(entry.get("verify", True))
        if self._verify and (authorities := entry.get("cacert")):
            self._verify = str(Path(str(authorities)).expanduser())
        try:
            loader: Any = loading.get_plugin_loader(entry.get("auth_type", "password"))
            self._auth = loader.load_from_options(**entry.get("auth", {}))
        except (self._errors, TypeError) as error:
            raise CloudError(f"clouds.yaml, {name}: {error}") from None
        self.trusted = self._trusted()
        """How to reach all servers of this cloud over TLS; None: as any others."""
        self._session = session.Session(auth=self._auth, verify=self._verify)
        # What it warns of is in its errors, too, which are printed.
        logging.getLogger("keystoneauth").setLevel(logging.CRITICAL)

    def _trusted(self) -> ssl.SSLContext | None:
        if self._verify is True:
            return None
        if isinstance(self._verify, str):
            try:
                return trusting(self._verify)
            except PemError as error:
                raise CloudError(f"clouds.yaml, {self._name}: {error}") from None
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context

    def token(self, again: bool) -> str:
        """Return the token; `again`: a new one, because the last one is not accepted."""
        try:
            with self._lock:
                if again:
                    self._auth.invalidate()
                return str(self._session.get_token())
        except self._errors as error:
            raise self._failed(error) from None

    def _failed(self, error: Exception) -> CloudError:
        if isinstance(error, self._unauthorized):
            return CloudError(f"clouds.yaml, {self._name}: Keystone refuses the login: {error}")
        return CloudAwayError(f"Keystone does not answer for {self._name}: {error}")

    def placement_url(self) -> str:
        """Return the address of Placement in the catalog."""
        return self.endpoint("placement", ": give --url")

    def endpoint(self, service: str, hint: str = "") -> str:
        """Return the address of a type of service in the catalog; `hint`: if there is none."""
        try:
            found = self._session.get_endpoint(service_type=service, **self._service)
        except self._not_found:
            found = None
        except self._errors as error:
            raise self._failed(error) from None
        if not found:
            words = (self._service["interface"], self._service["region_name"])
            place = ", ".join(str(word) for word in words if word)
            raise CloudError(f"the catalog of {self._name} has no {service} ({place}){hint}")
        return str(found)


def _entry(name: str) -> dict[str, Any]:
    found = _clouds(FILE_VARIABLE, "clouds.yaml")
    if found is None:
        raise CloudError(
            "there is no clouds.yaml here, in ~/.config/openstack or in /etc/openstack;"
            f" {FILE_VARIABLE} names another one"
        )
    path, clouds = found
    entry = clouds.get(name)
    if not isinstance(entry, dict):
        known = ", ".join(sorted(map(str, clouds))) or "none"
        raise CloudError(f"{path} has no entry {name}; it has {known}")
    secrets = _clouds(SECRETS_VARIABLE, "secure.yaml")
    return entry if secrets is None else _merged(entry, secrets[1].get(name))


def _clouds(variable: str, name: str) -> tuple[Path, dict[str, Any]] | None:
    """Return the entries of the first file that is there; None: none is."""
    for path in _paths(variable, name):
        try:
            found = yaml.safe_load(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise CloudError(f"cannot read {path}: {' '.join(str(error).split())}") from None
        clouds = found.get("clouds") if isinstance(found, dict) else None
        return path, clouds if isinstance(clouds, dict) else {}
    return None


def _merged(entry: Any, secrets: Any) -> Any:
    """Return an entry with its secrets, which may be in any part of it."""
    if not isinstance(entry, dict) or not isinstance(secrets, dict):
        return entry if secrets is None else secrets
    return entry | {key: _merged(entry.get(key), value) for key, value in secrets.items()}


def _paths(variable: str, name: str) -> Iterator[Path]:
    """Yield where a file may be; the first that is there counts."""
    if named := os.environ.get(variable):
        yield Path(named)
    yield Path(name)
    yield Path.home() / ".config/openstack" / name
    yield Path("/etc/openstack") / name
