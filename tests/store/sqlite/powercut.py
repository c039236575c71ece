"""Records what reaches the disk, and the images that a power loss could leave of it.

The recorder is a VFS between SQLite and the file system; it passes everything on and keeps a log.
A completed sync makes durable what was written to its file before it began. Of all later writes any
part may have reached the disk, in any order, in sectors of 512 bytes; a file that grew without its
data has zeros or garbage there. Shared memory is not on the disk.
"""

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import apsw

SECTOR = 512


@dataclass(slots=True)
class Event:
    """An operation on a file; `since` is the position in the log at which a sync began."""

    kind: str  # create, write, truncate, sync, delete, ack
    file: str = ""
    offset: int = 0
    data: bytes = b""
    since: int = 0
    revision: int = 0


class Recorder(apsw.VFS):
    """Logs the operations on all files that are opened through it."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "")
        self.name = name
        self.log: list[Event] = []
        self._guard = threading.Lock()

    def note(self, event: Event) -> None:
        """Add an event to the log."""
        with self._guard:
            self.log.append(event)

    def acknowledge(self, revision: int) -> None:
        """A client got the answer that this revision is durable."""
        self.note(Event("ack", revision=revision))

    def xOpen(self, name, flags):  # type: ignore[no-untyped-def]  # noqa: N802  # named by SQLite
        """Open a file; log it if it is new."""
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        new = path is not None and not os.path.exists(path)
        file = RecordedFile(self, name, flags)
        if new:
            self.note(Event("create", os.path.basename(str(path))))
        return file

    def xDelete(self, filename, syncdir):  # type: ignore[no-untyped-def]  # noqa: N802  # named by SQLite
        """Delete a file, durably with `syncdir`."""
        super().xDelete(filename, syncdir)
        self.note(Event("delete", os.path.basename(filename), since=int(syncdir)))


class RecordedFile(apsw.VFSFile):
    """An open file."""

    def __init__(self, recorder: Recorder, name, flags) -> None:  # type: ignore[no-untyped-def]  # as SQLite hands them over
        super().__init__("", name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        self._recorder = recorder
        self._file = os.path.basename(path)

    def xWrite(self, data, offset):  # type: ignore[no-untyped-def]  # noqa: N802  # named by SQLite
        """Write, then log it."""
        super().xWrite(data, offset)
        self._recorder.note(Event("write", self._file, offset, bytes(data)))

    def xTruncate(self, newsize):  # type: ignore[no-untyped-def]  # noqa: N802  # named by SQLite
        """Truncate, then log it."""
        super().xTruncate(newsize)
        self._recorder.note(Event("truncate", self._file, newsize))

    def xSync(self, flags):  # type: ignore[no-untyped-def]  # noqa: N802  # named by SQLite
        """Sync; only what was recorded before it began is durable afterwards."""
        began = len(self._recorder.log)
        super().xSync(flags)
        self._recorder.note(Event("sync", self._file, since=began))


@dataclass(slots=True)
class DiskFile:
    """One file on the disk, and its pending writes."""

    content: bytearray = field(default_factory=bytearray)
    durable_name: bool = True
    gone: bool = False
    """Deleted, and the deletion is not durable yet."""
    former: bytes | None = None
    """The previous file of this name; it may still be there while this name is not durable."""
    pending: list[tuple[int, Event]] = field(default_factory=list)

    def sync(self, since: int) -> None:
        """Make the operations durable that were pending at position `since` of the log."""
        for at, event in self.pending:
            if at < since:
                _apply(self.content, event)
        self.pending = [(at, event) for at, event in self.pending if at >= since]


class Disk:
    """The durable state after a prefix of the log. `step` takes the next event."""

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self.files = {name: DiskFile(bytearray(data)) for name, data in (files or {}).items()}
        self.acknowledged = 0
        self._at = 0

    def step(self, event: Event) -> None:
        """Take the next event."""
        if event.kind == "ack":
            self.acknowledged = event.revision
        elif event.kind == "create":
            before = self.files.get(event.file)
            former = bytes(before.content) if before else None
            self.files[event.file] = DiskFile(durable_name=False, former=former)
        elif event.kind == "delete":
            if event.since:
                self.files.pop(event.file, None)
            elif event.file in self.files:
                self.files[event.file].gone = True
        elif event.kind == "sync":
            file = self.files[event.file]
            file.sync(event.since)
            if not file.durable_name:
                self._sync_names()
        else:
            self.files[event.file].pending.append((self._at, event))
        self._at += 1

    def _sync_names(self) -> None:
        """Make all names durable: with the first sync of a new log SQLite syncs the folder."""
        self.files = {name: file for name, file in self.files.items() if not file.gone}
        for file in self.files.values():
            file.durable_name, file.former = True, None

    def image(self, random: Random) -> dict[str, bytes]:
        """Return a set of files that could remain after a power loss at this point."""
        found = {}
        for name, file in self.files.items():
            if (not file.durable_name or file.gone) and random.random() < 0.5:
                if file.former is not None:
                    found[name] = file.former
                continue
            content = bytearray(file.content)
            rubbish = random.random() < 0.3
            for event in _survivors([event for _, event in file.pending], random):
                _apply(content, event, random if rubbish else None)
            found[name] = bytes(content)
        return found


def _survivors(events: list[Event], random: Random) -> Iterator[Event]:
    """Choose what had reached the disk: all, nothing, a prefix, any writes, any sectors."""
    way = random.choice(["all", "none", "beginning", "some", "sectors"])
    if way == "none":
        return
    if way == "beginning":
        events = events[: random.randint(0, len(events))]
        yield from events[:-1]
        for event in events[-1:]:
            yield from _sectors(event, random, 0.5)
        return
    chance = random.random()
    for event in events:
        if way == "all" or (way == "some" and random.random() < chance):
            yield event
        elif way == "sectors":
            yield from _sectors(event, random, chance)


def _sectors(event: Event, random: Random, chance: float) -> Iterator[Event]:
    """Split a write at sector boundaries, and yield some of its sectors."""
    if event.kind != "write":
        if random.random() < chance:
            yield event
        return
    at, end = event.offset, event.offset + len(event.data)
    while at < end:
        border = min(end, (at // SECTOR + 1) * SECTOR)
        if random.random() < chance:
            piece = event.data[at - event.offset : border - event.offset]
            yield Event("write", event.file, at, piece)
        at = border


def _apply(content: bytearray, event: Event, random: Random | None = None) -> None:
    if event.kind == "truncate":
        del content[event.offset :]
        return
    gap = event.offset - len(content)
    if gap > 0:
        content.extend(random.randbytes(gap) if random else bytes(gap))
    content[event.offset : event.offset + len(event.data)] = event.data


def write_image(image: dict[str, bytes], folder: Path) -> None:
    """Replace all files of a folder by an image."""
    for old in folder.iterdir():
        old.unlink()
    for name, data in image.items():
        (folder / name).write_bytes(data)
