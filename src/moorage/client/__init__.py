"""The client: runs on other machines and talks to a Moorage server over HTTP.

`Client` in `client.py` is what Python programs use, `AsyncClient` the same for asyncio; `leasing/`
has their leases. `ledger.py`, `finding.py`, `reshapes.py`, `imports.py`, `admission.py` with
`slots.py` and `bookings.py`, `fleet.py`, `reporting.py` and `boskos.py` are the typed native API;
`calling.py` calls its operations. `plans/` makes reshape plans. `watch.py` follows all changes;
`transport.py` sends requests and classifies failures, with `tokens.py`, `proxies.py` and `tls.py`;
`targets.py` decides which server a command addresses, `contexts.py` reads the file of those signed
in to; `decoding.py` converts answers to the dataclasses of `wire`, on old Pythons with
`old_hints.py`; `run/` runs commands that need a lease, `agent/` reports what a machine has.
`main.py` is the command line of both as a single file, from the table in `commands.py`. Standard
library only, Python 3.9 or later; may import: `wire`, never the server.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moorage.client.admission import Admission as Admission
    from moorage.client.client import AsyncClient as AsyncClient
    from moorage.client.client import Client as Client
    from moorage.client.decoding import UndecodableError as UndecodableError
    from moorage.client.fleet import Fleet as Fleet
    from moorage.client.imports import Imports as Imports
    from moorage.client.leasing.asynchronous import AsyncHolding as AsyncHolding
    from moorage.client.leasing.errors import AskedToStopError as AskedToStopError
    from moorage.client.leasing.errors import ConfigurationError as ConfigurationError
    from moorage.client.leasing.errors import LeaseLostError as LeaseLostError
    from moorage.client.leasing.errors import NotInTimeError as NotInTimeError
    from moorage.client.leasing.errors import RevokedError as RevokedError
    from moorage.client.leasing.errors import SupersededError as SupersededError
    from moorage.client.leasing.errors import TooManyLeasesError as TooManyLeasesError
    from moorage.client.leasing.errors import WithdrawnError as WithdrawnError
    from moorage.client.leasing.holding import Holding as Holding
    from moorage.client.ledger import Ledger as Ledger
    from moorage.client.reporting import Reporting as Reporting
    from moorage.client.reshapes import PlanRefusedError as PlanRefusedError
    from moorage.client.reshapes import Reshapes as Reshapes
    from moorage.client.run.lease.acquire import NotGrantedError as NotGrantedError
    from moorage.client.transport import MoorageError as MoorageError
    from moorage.client.transport import RefusedError as RefusedError
    from moorage.client.transport import UnreachableError as UnreachableError
    from moorage.client.watch import ChangesGoneError as ChangesGoneError
    from moorage.client.watch import Watch as Watch

_MODULES = {
    "Admission": "admission",
    "AskedToStopError": "leasing.errors",
    "AsyncClient": "client",
    "AsyncHolding": "leasing.asynchronous",
    "ChangesGoneError": "watch",
    "Client": "client",
    "ConfigurationError": "leasing.errors",
    "Fleet": "fleet",
    "Holding": "leasing.holding",
    "Imports": "imports",
    "LeaseLostError": "leasing.errors",
    "Ledger": "ledger",
    "MoorageError": "transport",
    "NotGrantedError": "run.lease.acquire",
    "NotInTimeError": "leasing.errors",
    "PlanRefusedError": "reshapes",
    "RefusedError": "transport",
    "Reporting": "reporting",
    "Reshapes": "reshapes",
    "RevokedError": "leasing.errors",
    "SupersededError": "leasing.errors",
    "TooManyLeasesError": "leasing.errors",
    "UndecodableError": "decoding",
    "UnreachableError": "transport",
    "Watch": "watch",
    "WithdrawnError": "leasing.errors",
}
"""The modules of the exported names: loaded at first use, because the single file has few."""

__all__ = [*_MODULES]  # noqa: PLE0604 # these are names


def __getattr__(name: str) -> Any:
    """Load an exported name."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """List the exported names, too."""
    return sorted({*globals(), *__all__})
