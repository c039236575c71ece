"""The static files of the dashboard: read once, compressed, with addresses that change."""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from pathlib import Path

from moorage.faces.dashboard.headers import NO_STORE, SAFE, Reply
from moorage.faces.dashboard.routing import ROOT
from moorage.faces.web import RefusalError

STATIC = f"{ROOT}/static/"
FOR_EVER = (b"cache-control", b"public, max-age=31536000, immutable")

FOLDER = Path(__file__).parent / "static"
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
TAG_CHARACTERS = 12


@dataclass(frozen=True, slots=True)
class Asset:
    """One file, plain and compressed."""

    plain: bytes
    compressed: bytes
    media_type: str


@cache
def assets() -> dict[str, Asset]:
    """Return all files by name, such as `live.js` and `vendor/idiomorph.js`."""
    found = {}
    for path in sorted(FOLDER.rglob("*")):
        if path.suffix in MEDIA_TYPES:
            plain = path.read_bytes()
            found[path.relative_to(FOLDER).as_posix()] = Asset(
                plain, gzip.compress(plain, 9, mtime=0), MEDIA_TYPES[path.suffix]
            )
    return found


@cache
def tag() -> str:
    """Return a text that changes whenever any file changes, because modules import each other.

    It is part of their addresses, so browsers may keep files for ever.
    """
    digest = hashlib.sha256()
    for name, asset in assets().items():
        digest.update(f"{name} {len(asset.plain)}\n".encode() + asset.plain)
    return digest.hexdigest()[:TAG_CHARACTERS]


def address_of(name: str) -> str:
    """Return the address of a file. Raises KeyError: there is none of that name."""
    assets()[name]
    return f"{STATIC}{tag()}/{name}"


def static_file(path: str, headers: Mapping[str, str]) -> Reply:
    """Answer with the file at an address. Raises RefusalError: 404."""
    given, _, name = path.removeprefix(STATIC).partition("/")
    asset = assets().get(name)
    if asset is None:
        raise RefusalError(HTTPStatus.NOT_FOUND, f"There is no file {name}.")
    kept = FOR_EVER if given == tag() else NO_STORE
    more = [(b"content-type", asset.media_type.encode()), kept, *SAFE]
    more.append((b"vary", b"accept-encoding"))
    if "gzip" in headers.get("accept-encoding", ""):
        return HTTPStatus.OK, [*more, (b"content-encoding", b"gzip")], asset.compressed
    return HTTPStatus.OK, more, asset.plain
