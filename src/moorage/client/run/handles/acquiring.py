"""`moorage lease acquire` and `moorage lease retry`: leases that are stored in a file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from uuid import uuid4

from moorage.client.run.api_types import Lease, LeaseRequest
from moorage.client.run.handles.file import (
    TTL_SECONDS,
    EntryKey,
    Handle,
    HandleEntry,
    HandleError,
    released_text,
)
from moorage.client.run.handles.giving_back import give_back_entry
from moorage.client.run.lease.acquire import (
    ABANDONED,
    WITHDRAWN,
    Acquiring,
    NotGrantedError,
)
from moorage.client.run.lease.api import ANSWER_SECONDS, Leases
from moorage.client.run.lease.nesting import OwnLeases, check_own, leases_around
from moorage.client.run.lease.renewer import FAILURES, GONE, give_back
from moorage.client.run.lease.waiting import InterruptedWaitError, await_grant
from moorage.client.run.parse import duration_of, patience_of, server_of, starters_of, wish_of
from moorage.client.run.printing import drop_output, print_result
from moorage.client.run.process.signals import ENDING, SignalCollector
from moorage.client.run.process.starters import Starters
from moorage.client.run.progress import Progress
from moorage.client.transport import RefusedError

Words = Mapping[str, Any]

STDOUT = 1


class Attempt(NamedTuple):
    """One command: its file and its arguments, for whom it works, and the incoming signals."""

    handle: Handle
    leases: Leases
    words: Words
    notices: Progress
    starters: Starters
    signals: SignalCollector

    @property
    def timeout(self) -> float:
        """How long to try to release a lease, in seconds."""
        seconds: float = duration_of(self.words, "release_timeout", 5.0)
        return seconds

    def check(self) -> None:
        """Raise NotGrantedError if nobody needs the result any more."""
        if (why := self.starters.gone()) is not None:
            raise NotGrantedError(ABANDONED, why)


def acquire(words: Words, notices: Progress) -> int:
    """`moorage lease acquire`; return the exit code. Raises NotGrantedError and others."""
    starters = starters_of(words, STDOUT)
    # The shell that has called this one keeps the lease; this process ends at once.
    wish = wish_of(words, os.getppid())
    usual = TTL_SECONDS if wish.hold is None else max(wish.hold, 60.0)
    wish = wish._replace(usual_ttl=usual)
    leases = server_of(words)
    if leases is None:
        notices.say("no server is set (MOORAGE_URL, --url): dry run, nothing is acquired")
        print_result(words["handle"] or "", {"leases": []}, words)
        return 0
    if (why := starters.gone()) is not None:  # before anything is asked for, or stored
        raise NotGrantedError(ABANDONED, why)
    handle = Handle(words["handle"] or _temporary())
    with handle.locked():
        entry = None if words["another"] else _like(handle.entries(), wish)
        if entry is None:
            entry = HandleEntry(str(uuid4()), wish)
            handle.put(entry)
    with SignalCollector() as signals:
        this = Attempt(handle, leases, words, notices, starters, signals)
        got = _get(this, EntryKey(handle, entry))
        _print(this, handle.path, [] if entry.answered and got.id == entry.id else [got])
    return 0


def _get(this: Attempt, keys: EntryKey) -> HandleEntry:
    """Wait until the lease of an entry is granted; store and return it. Raises NotGrantedError."""
    handle, leases, words, notices, _, signals = this
    before, timeout = keys.entry, this.timeout
    patience = patience_of(words)

    def waits(ticket: Lease) -> bool:
        own = OwnLeases(leases_around(os.environ))
        return check_own(leases, before.wish, ticket, own, acquiring.notes.append)

    acquiring = Acquiring(
        leases, before.wish, keys, patience, lambda: attempted(leases, before), waits=waits
    )

    def check() -> None:
        this.check()
        if not handle.has(keys.entry):
            raise NotGrantedError(WITHDRAWN, released_text(handle))

    try:
        grant = await_grant(acquiring, notices, signals, timeout, check)
    except (NotGrantedError, InterruptedWaitError) as failure:
        # If the server has not answered a retry at all, the entry keeps its previous lease.
        if not acquiring.uncertain and not (before.retrying and acquiring.lease is None):
            with handle.locked():
                handle.drop(keys.entry)
            raise
        stays = (
            f"{handle.path} is kept: run the same command with --handle to continue, or"
            " `moorage lease release` to give the lease back"
        )
        if isinstance(failure, NotGrantedError):
            raise NotGrantedError(failure.why, f"{failure} ({stays})") from None
        notices.say(stays)
        raise
    got = keys.entry.granted(grant.lease)
    with handle.locked():
        kept = handle.change(keys.entry, got)
    if not kept:
        give_back(leases, grant.lease, timeout)
        raise NotGrantedError(WITHDRAWN, released_text(handle))
    return got


def _print(this: Attempt, text: str, got: Iterable[HandleEntry]) -> None:
    """Print the result; if nobody gets it, release what this command `got`.

    Raises NotGrantedError and InterruptedWaitError then.
    """
    try:
        this.check()
        for number in this.signals.wait(0.0):
            if number in ENDING:
                raise InterruptedWaitError(number)
        print_result(text, shown(this.handle), this.words)
    except InterruptedWaitError as interrupted:
        interrupted.withdrawn = _returned(this, got)
        raise
    except NotGrantedError as failure:
        raise NotGrantedError(failure.why, _without(this, str(failure), got)) from None
    except (OSError, ValueError) as error:  # ValueError: it was closed
        said = f"cannot print the result: {getattr(error, 'strerror', None) or error}"
        drop_output()
        raise NotGrantedError(ABANDONED, _without(this, said, got)) from None


def _without(this: Attempt, said: str, got: Iterable[HandleEntry]) -> str:
    done = "nothing is held" if _returned(this, got) else f"{this.handle.path} is kept"
    return f"{said}; {done}"


def _returned(this: Attempt, got: Iterable[HandleEntry]) -> bool:
    """Release leases; return whether all are released."""
    all_of_them = True
    for entry in got:
        try:
            give_back_entry(this.handle, entry, this.leases, this.timeout)
        except (*FAILURES, HandleError) as failure:
            this.notices.say(f"cannot release lease {entry.id}: {failure}")
            all_of_them = False
    return all_of_them


def attempted(leases: Leases, entry: HandleEntry) -> Lease:
    """Send the newest attempt of an entry again, and return its lease; it is safe to repeat.

    Raises the errors of `Leases`.
    """
    if entry.retrying:
        try:
            return leases.retry(str(entry.id), entry.token, entry.key, ANSWER_SECONDS)
        except RefusedError as refusal:
            if refusal.code not in GONE:
                raise
    return leases.ask(entry.wish, entry.key, ANSWER_SECONDS)


def retry(handle: Handle, leases: Leases, words: Words, notices: Progress) -> int:
    """`moorage lease retry` of a file with leases; return the exit code. Raises as `acquire`."""
    got: list[HandleEntry] = []
    with SignalCollector() as signals:
        output = STDOUT if words["json"] else None
        this = Attempt(handle, leases, words, notices, starters_of(words, output), signals)
        for entry in _begun(handle):
            got.append(_get(this, EntryKey(handle, entry)))
        _print(this, "", got)
    return 0


def _begun(handle: Handle) -> list[HandleEntry]:
    """Give each lease of a file a key for its next attempt, store these, and return the entries.

    An attempt without an answer keeps its key, because its lease may have been granted.
    """
    with handle.locked():
        for entry in handle.entries():
            if entry.answered:
                handle.change(entry, entry._replace(key=str(uuid4()), retrying=True))
        return handle.entries()


def _like(entries: Iterable[HandleEntry], wish: LeaseRequest) -> HandleEntry | None:
    """Return the entry with the same wish, ignoring the patience and where it came from."""

    def plain(one: LeaseRequest) -> LeaseRequest:
        return one._replace(patience=0.0, about=())

    return next((entry for entry in entries if plain(entry.wish) == plain(wish)), None)


def _temporary() -> str:
    descriptor, path = tempfile.mkstemp(prefix="moorage-lease-")
    os.close(descriptor)
    return path


def shown(handle: Handle) -> dict[str, Any]:
    """Return the leases of a file as JSON, without what is internal."""
    leases = [
        {name: value for name, value in entry._asdict().items() if name not in ("key", "wish")}
        for entry in handle.entries()
    ]
    return {"handle": handle.path, "leases": leases}
