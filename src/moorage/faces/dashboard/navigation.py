"""The links at the top of every page."""

from typing import NamedTuple

from moorage.faces.dashboard.routing import ROOT, PageRequest


class Link(NamedTuple):
    """One link; `current` marks the section that the reader is in."""

    address: str
    text: str
    current: bool


SECTIONS = (
    (ROOT, "Overview", "/v1/pools"),
    (f"{ROOT}/pools", "Pools", "/v1/pools"),
    (f"{ROOT}/leases", "Leases", "/v1/leases"),
    (f"{ROOT}/fleet", "Fleet", "/v1/capacity"),
    (f"{ROOT}/fit", "Where does it fit?", "/v1/explain"),
    (f"{ROOT}/audit", "Audit", "/v1/audit"),
    (f"{ROOT}/changes", "Changes", "/v1/watch"),
)
"""Address, text, and the route that a reader must be permitted to GET."""


def navigation(request: PageRequest) -> list[Link]:
    """Return the links to sections that the reader may see."""
    return [
        Link(address, text, _is_current(address, request.path))
        for address, text, route in SECTIONS
        if request.permits("GET", route)
    ]


def _is_current(address: str, path: str) -> bool:
    return path == address if address == ROOT else f"{path}/".startswith(f"{address}/")
