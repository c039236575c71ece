"""Leases where no server is set and nothing is limited: the block runs, and a line says so."""

from __future__ import annotations

import logging
from typing import Any

from moorage.client.leasing.errors import ConfigurationError
from moorage.client.leasing.holding import Holding
from moorage.client.leasing.options import HoldingOptions
from moorage.client.run.lease.api import Leases

LOG = logging.getLogger("moorage.client")

DRY_RUN = "dry run, the block runs without a lease, and without a limit"


class NoServer:
    """In place of a connection. Whatever is asked of it raises ConfigurationError."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ConfigurationError(self.reason)


class DryRun(Holding):
    """A lease that is none: it is granted at once, never lost, and has no slots."""

    def __init__(self, options: HoldingOptions, reason: str) -> None:
        super().__init__(Leases(NoServer(reason)), options)
        self._why = reason

    @property
    def id(self) -> str:
        """Empty."""
        return ""

    @property
    def token(self) -> str:
        """Empty."""
        return ""

    @property
    def pools(self) -> tuple[str, ...]:
        """No pools."""
        return ()

    @property
    def slots(self) -> dict[str, list[str]]:
        """No slots."""
        return {}

    def acquire(self) -> Holding:
        """Say that nothing is limited."""
        LOG.warning("%s: %s", self._why, DRY_RUN)
        return self

    def turn(self) -> Holding:
        """See `acquire`."""
        return self.acquire()


def holding(leases: Leases | NoServer, options: HoldingOptions) -> Holding:
    """Return the lease for a block: of a server, or of none."""
    if isinstance(leases, NoServer):
        return DryRun(options, leases.reason)
    return Holding(leases, options)
