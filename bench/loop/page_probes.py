"""Requests to every page of the dashboard and to all its data."""

from collections.abc import Iterator

from bench.wire import signed_in
from moorage.faces.dashboard.routes import ENTRIES
from moorage.faces.dashboard.routing import Action


def paths() -> set[tuple[str, str]]:
    """Return the methods and paths of everything that the dashboard shows."""
    return {(one.method, one.path) for one in ENTRIES if not isinstance(one, Action)}


def pages(cookie: str, pool: str, machine: str) -> Iterator[tuple[str, bytes]]:
    """Yield the path of each page and a request; ids of what is no machine lead nowhere."""
    for _, path in sorted(paths()):
        address = path.replace("{name+}", pool).replace("{id}", machine)
        yield path, signed_in("GET", address, cookie)
