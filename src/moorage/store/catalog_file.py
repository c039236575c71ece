"""The file that spares a restart from reading all rows: the catalog as of a revision, in parts.

It is never a source of truth, and may be deleted at any time. It is used only if everything about
it is right: its checksums, which cover every byte, and its origin (`Origin`). It is written to
another file first, which then replaces it.
"""

import errno
import os
import stat
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.resources import files
from itertools import chain
from zlib import crc32

import msgspec
from msgspec import Struct, msgpack

from moorage import __version__
from moorage.core.clock import Instant
from moorage.core.ledger.search.catalog.packed_catalog import LAYOUT
from moorage.store.directories import sync_directory
from moorage.store.formats import FORMAT
from moorage.store.migrations import migrations

_MAGIC = b"Moorage catalog\n"

_HEAD = struct.Struct("<II")
"""Before each part: its length, and the checksum of everything up to its end. An empty part is the
last one."""

SYNCED_BYTES = 4 * 1024 * 1024
"""Bytes that are synced at a time: commits may wait for the disk only as long as these take."""

FREE_BYTES = 1024 * 1024 * 1024
"""Bytes that remain free on the disk; the database needs them more."""


class Doubtful(Exception):
    """The file is not used. The message says why, as part of a sentence."""


class Origin(Struct, frozen=True):
    """From what a file was made."""

    release: str
    layout: str
    """A checksum of what the form of its parts, the meaning of rows, and the code depend on."""
    began_at: Instant
    """When the ledger was created: it tells databases apart."""
    epoch: int
    revision: int
    at: Instant
    """When the revision was written: it tells histories apart."""
    providers: int

    @classmethod
    def of(
        cls, began_at: Instant, epoch: int, revision: int, at: Instant, providers: int
    ) -> "Origin":
        """Return the origin of a file that this release writes."""
        return cls(__version__, _layout(), began_at, epoch, revision, at, providers)

    def foreign(self) -> str | None:
        """Return why this release does not use the file; None if it does."""
        if (self.release, self.layout) != (__version__, _layout()):
            return f"another build wrote it ({self.release})"
        return None


@cache
def _layout() -> str:
    schema = [one.checksum for one in migrations("sqlite")]
    return sha256(msgspec.json.encode([LAYOUT, FORMAT, schema, _code()])).hexdigest()


def _code() -> str:
    """Return a checksum of the code that makes a catalog of rows: a fault in it may be mended."""
    found = sha256()
    for package in ("moorage.core.ledger", "moorage.store.ledger"):
        folders = [files(package)]
        while folders:
            for entry in sorted(folders.pop().iterdir(), key=str):
                if entry.name.endswith(".py"):
                    found.update(entry.read_bytes())
                elif entry.is_dir() and entry.name != "__pycache__":
                    folders.append(entry)
    return found.hexdigest()


def write(
    path: str, origin: Origin, parts: Iterable[bytes], rest: Callable[[], None] = lambda: None
) -> None:
    """Replace the file. `rest` is called after each part, to let others run.

    Raises OSError; then the file is as it was.
    """
    partial = f"{path}.partial"
    _remove(partial)
    file = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            _fill(file, origin, parts, rest)
            os.fsync(file)
        finally:
            os.close(file)
        os.rename(partial, path)
    except BaseException:
        _remove(partial)
        raise
    sync_directory(path)


def read(path: str, use: Callable[[Origin], None], take: Callable[[bytes], None]) -> None:
    """Read the file: pass its origin to `use`, which may raise, and then each part to `take`.

    Raises Doubtful, also after some parts were taken; FileNotFoundError: there is none; OSError.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags), "rb", buffering=SYNCED_BYTES) as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise Doubtful("it is not a regular file")
        if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise Doubtful("others may have written it")
        if stream.read(len(_MAGIC)) != _MAGIC:
            raise Doubtful("it is something else")
        parts = _parts(stream.read, status.st_size)
        try:
            use(msgpack.decode(next(parts), type=Origin))
        except (msgspec.DecodeError, StopIteration) as error:
            raise Doubtful("its beginning cannot be read") from error
        for part in parts:
            take(part)


def _parts(read_bytes: Callable[[int], bytes], size: int) -> Iterator[bytes]:
    checksum, left = crc32(_MAGIC), size - len(_MAGIC)
    while True:
        head = read_bytes(_HEAD.size)
        left -= len(head)
        if len(head) < _HEAD.size:
            raise Doubtful("it is incomplete")
        length, expected = _HEAD.unpack(head)
        if length > left:
            raise Doubtful("it is incomplete or damaged")
        part = read_bytes(length)
        left -= len(part)
        checksum = crc32(part, crc32(head[:4], checksum))
        if checksum != expected:
            raise Doubtful("it is damaged")
        if not part:
            break
        yield part
    if left:
        raise Doubtful("it goes on after its end")


def _fill(file: int, origin: Origin, parts: Iterable[bytes], rest: Callable[[], None]) -> None:
    _write(file, _MAGIC)
    checksum, unsynced = crc32(_MAGIC), SYNCED_BYTES
    for part in chain([msgpack.encode(origin)], parts, [b""]):
        if unsynced >= SYNCED_BYTES:
            os.fdatasync(file)
            unsynced = 0
            free = os.fstatvfs(file)
            if free.f_bavail * free.f_frsize < FREE_BYTES:
                raise OSError(errno.ENOSPC, "too little space is free on the disk")
        length = len(part).to_bytes(4, "little")
        checksum = crc32(part, crc32(length, checksum))
        _write(file, length + checksum.to_bytes(4, "little") + part)
        unsynced += len(part)
        rest()


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _write(file: int, content: bytes) -> None:
    while content:
        content = content[os.write(file, content) :]
