"""The links at the top of every page."""

from typing import NamedTuple

from moorage.faces.dashboard.routing import ROOT, PageRequest
from moorage.wire.operations import admin, feed, leases, ledger, pools


class Link(NamedTuple):
    """One link; `current` marks the section that the reader is in."""

    address: str
    text: str
    current: bool


SECTIONS = (
    (ROOT, "Overview", pools.LIST_POOLS),
    (f"{ROOT}/pools", "Pools", pools.LIST_POOLS),
    (f"{ROOT}/leases", "Leases", leases.LIST_LEASES),
    (f"{ROOT}/fleet", "Fleet", ledger.GET_CAPACITY),
    (f"{ROOT}/fit", "Where does it fit?", ledger.EXPLAIN_BY_QUERY),
    (f"{ROOT}/audit", "Audit", admin.LIST_AUDIT),
    (f"{ROOT}/changes", "Changes", feed.WATCH),
)
"""Address, text, and the operation that a reader must be permitted to call."""


def navigation(request: PageRequest) -> list[Link]:
    """Return the links to sections that the reader may see."""
    return [
        Link(address, text, _is_current(address, request.path))
        for address, text, operation in SECTIONS
        if request.permits(operation)
    ]


def _is_current(address: str, path: str) -> bool:
    return path == address if address == ROOT else f"{path}/".startswith(f"{address}/")
