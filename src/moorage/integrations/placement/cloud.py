"""An entry of clouds.yaml: the token for the original, and its address, from Keystone.

It reads the part that describes how to log in; what openstacksdk adds to it, such as profiles of
vendors, it does not know.
"""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from moorage.extras import needs
from moorage.integrations.placement.source_error import SourceError

FILE_VARIABLE = "OS_CLIENT_CONFIG_FILE"


class Cloud:
    """The original as its Keystone knows it. Every call raises SourceError."""

    def __init__(self, name: str) -> None:
        """Read the entry. Raises SourceError: there is none, or the extra is missing."""
        try:
            from keystoneauth1 import exceptions, loading, session
        except ImportError as error:
            raise SourceError(f"--os-cloud {needs('keystone', error)}") from None
        entry = _entry(name)
        self._name = name
        self._errors = exceptions.ClientException
        self._lock = threading.Lock()
        self._service = {
            "service_type": "placement",
            "interface": entry.get("interface", "public"),
            "region_name": entry.get("region_name"),
        }
        verify: Any = entry.get("cacert") or entry.get("verify", True)
        try:
            loader: Any = loading.get_plugin_loader(entry.get("auth_type", "password"))
            self._auth = loader.load_from_options(**entry.get("auth", {}))
        except (self._errors, TypeError) as error:
            raise SourceError(f"clouds.yaml, {name}: {error}") from None
        self._session = session.Session(auth=self._auth, verify=verify)

    def token(self, again: bool) -> str:
        """Return the token; `again`: a new one, because the last one is not accepted."""
        try:
            with self._lock:
                if again:
                    self._auth.invalidate()
                return str(self._session.get_token())
        except self._errors as error:
            raise SourceError(f"Keystone gives no token for {self._name}: {error}") from None

    def placement_url(self) -> str:
        """Return the address of Placement in the catalog."""
        try:
            found = self._session.get_endpoint(**self._service)
        except self._errors as error:
            raise SourceError(f"Keystone does not answer for {self._name}: {error}") from None
        if not found:
            raise SourceError(f"the catalog of {self._name} has no placement: give --url")
        return str(found)


def _entry(name: str) -> dict[str, Any]:
    for path in _paths():
        try:
            found = yaml.safe_load(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise SourceError(f"cannot read {path}: {error}") from None
        clouds = found.get("clouds") if isinstance(found, dict) else None
        entry = clouds.get(name) if isinstance(clouds, dict) else None
        if not isinstance(entry, dict):
            raise SourceError(f"{path} has no entry {name}")
        return entry
    raise SourceError("there is no clouds.yaml")


def _paths() -> Iterator[Path]:
    """Yield where clouds.yaml may be; the first that is there counts."""
    if named := os.environ.get(FILE_VARIABLE):
        yield Path(named)
    yield Path("clouds.yaml")
    yield Path.home() / ".config/openstack/clouds.yaml"
    yield Path("/etc/openstack/clouds.yaml")
