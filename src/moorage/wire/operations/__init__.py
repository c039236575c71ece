"""The operations of the native API, each said once: for the server, its clients, its description.

`operation.py` says what an operation is. The others have them by room, as data: `admin.py` tokens
and the database, `ledger.py` providers and claims, `pools.py` pools and slots, `leases.py` leases
and tickets, `bookings.py` bookings, `acting.py` actions that are tried first, `fleet.py` agents,
`reporting.py` reporters, `feed.py` the change feed, `imports.py` what moves a ledger, `reshapes.py`
plans that change trees, `finding.py` looks in all of them. The name of an operation in lower case
is its id in the OpenAPI document. Import modules rather than operations: `pools.GET_POOL` says
where to look. They import types of `wire` only when somebody asks for them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from moorage.wire.operations.operation import Operation

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOMS = (
    *("admin", "ledger", "pools", "leases", "bookings", "acting", "fleet"),
    *("reporting", "feed", "imports", "reshapes", "finding"),
)
"""The modules of operations, in the order of the description."""


def operations_by_id(rooms: Sequence[str] = ROOMS) -> dict[str, Operation[Any]]:
    """Return the operations of these modules by id, in the order of the description."""
    return {
        name.lower(): one
        for room in rooms
        for name, one in vars(import_module(f"{__name__}.{room}")).items()
        if isinstance(one, Operation)
    }
