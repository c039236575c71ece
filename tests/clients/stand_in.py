"""Stands in for the fixtures of Placement that other projects import for their functional tests.

The original's fixtures run a Placement inside the test process. Here modules of the same names hold
the address of a running server; a test that sets up `PlacementFixture` finds that server empty.
"""

import logging
import sys
import urllib.request
from types import ModuleType
from typing import Any

import fixtures
from oslotest.log import ConfigureLogging

PACKAGE = "placement.tests.functional.fixtures"
RESET_SECONDS = 60


class Target:
    """The server under test of this process."""

    url = ""


class PlacementFixture(fixtures.Fixture):  # type: ignore[misc]  # fixtures has no types
    """An empty server: `endpoint` is its address, `token` the administrator's of `noauth2`."""

    def __init__(self, token: str = "admin") -> None:
        self.token = token

    def setUp(self) -> None:
        """Empty the server, by the endpoint that exists only with `--testing`."""
        super().setUp()
        self.endpoint = Target.url
        request = urllib.request.Request(
            f"{self.endpoint}/_testing/reset", b"{}", {"X-Auth-Token": self.token}
        )
        with urllib.request.urlopen(request, timeout=RESET_SECONDS):
            pass


class Logging(ConfigureLogging):  # type: ignore[misc]  # oslotest has no types
    """Captures logs from INFO upwards, as the original's fixture does."""

    level: int | None

    def __init__(self) -> None:
        super().__init__()
        if self.level is None:
            self.level = logging.INFO


def install(url: str) -> None:
    """Let this process import the stand-ins under the original's names, bound to a server.

    Raises:
        RuntimeError: something of that name is loaded already, the original or a stand-in.
    """
    if "placement" in sys.modules:
        raise RuntimeError("a package placement is loaded already")
    Target.url = url
    path = ""
    for part in PACKAGE.split("."):
        path = f"{path}.{part}" if path else part
        package = ModuleType(path)
        package.__path__ = []  # nothing is found in it but what is put into sys.modules
        sys.modules[path] = package
    _module("placement", PlacementFixture=PlacementFixture)
    _module("capture", Logging=Logging)


def _module(name: str, **members: Any) -> None:
    """Put a module with these members into the package."""
    module = ModuleType(f"{PACKAGE}.{name}")
    vars(module).update(members)
    sys.modules[module.__name__] = module
    setattr(sys.modules[PACKAGE], name, module)
