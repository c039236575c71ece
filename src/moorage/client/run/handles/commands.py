"""The commands `moorage lease acquire|renew|retry|release|status|cat`, on files, and `outcome`."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import uuid4

from moorage.client.run.api_types import Lease, LeaseRequest
from moorage.client.run.clock import elapsed
from moorage.client.run.failures import (
    CONFLICT,
    FAILED,
    NOT_GRANTED,
    REVOKED,
    UNREACHABLE,
    USAGE,
    WITHDRAWN,
    exit_code_of,
)
from moorage.client.run.handles.by_id import BY_HOLDER, over, release_by_id
from moorage.client.run.handles.file import (
    TTL_SECONDS,
    EntryKey,
    Handle,
    HandleEntry,
    HandleError,
    released_text,
)
from moorage.client.run.handles.renewals import Renewals, refresh
from moorage.client.run.lease import acquire
from moorage.client.run.lease.acquire import Acquiring, NotGrantedError
from moorage.client.run.lease.api import ANSWER_SECONDS, Leases
from moorage.client.run.lease.renewer import FAILURES, GONE, carry_through, give_back
from moorage.client.run.lease.waiting import InterruptedWaitError, await_grant
from moorage.client.run.parse import UsageError, duration_of, patience_of, server_of, wish_of
from moorage.client.run.printing import print_result, printable, write
from moorage.client.run.process.signals import ENDING, SignalCollector
from moorage.client.run.progress import Progress
from moorage.client.transport import RefusedError, UnreachableError

UNKNOWN = "unknown to the server: it ended longer ago than leases are kept, or is of another server"
NOTHING_THERE = ("lease_not_found", "pool_unknown", "units_above_limit", "queue_full", "invalid")
"""Codes of refusals that prove that the server has neither a lease nor a ticket for the request."""

WHY_CODES = {
    "pool_unknown": USAGE,
    "unreachable": UNREACHABLE,
    "withdrawn": WITHDRAWN,
    "revoked": REVOKED,
}

Words = Mapping[str, Any]


def handle_command(name: str, words: Words, notices: Progress) -> int:
    """Execute one of the commands; return its exit code."""
    try:
        return COMMANDS[name](words, notices)
    except InterruptedWaitError as interrupted:
        notices.say(interrupted.text)
        return 128 + interrupted.number
    except NotGrantedError as failure:
        code, why = WHY_CODES.get(failure.why, NOT_GRANTED), failure.why
        notices.fail(code, f"no lease: {failure}", why, words.get("json", False))
        return code
    except (UsageError, HandleError, OSError, *FAILURES) as error:
        return _failed(error, str(error), words, notices)


def _failed(error: Exception, text: str, words: Words, notices: Progress) -> int:
    """Report a failure; return the exit code."""
    refusal = error if isinstance(error, RefusedError) else None
    exit_code = FAILED
    if isinstance(error, UsageError):
        exit_code = USAGE
    elif isinstance(error, UnreachableError):
        exit_code = UNREACHABLE
    elif refusal is not None:
        exit_code = exit_code_of(refusal)
    notices.fail(
        exit_code, text, None if refusal is None else refusal.code, words.get("json", False)
    )
    return exit_code


def _acquire(words: Words, notices: Progress) -> int:
    # The shell that has called this one keeps the lease; this process ends at once.
    wish = wish_of(words, os.getppid())
    usual = TTL_SECONDS if wish.hold is None else max(wish.hold, 60.0)
    wish = wish._replace(usual_ttl=usual)
    leases = server_of(words)
    if leases is None:
        notices.say("no server is set (MOORAGE_URL, --url): dry run, nothing is acquired")
        print_result(words["handle"] or "", {"leases": []}, words)
        return 0
    handle = Handle(words["handle"] or _temporary())
    with handle.locked():
        entry = None if words["another"] else _like(handle.entries(), wish)
        if entry is None:
            entry = HandleEntry(str(uuid4()), wish)
            handle.put(entry)
    _get(handle, EntryKey(handle, entry), leases, words, notices)
    print_result(handle.path, _shown(handle), words)
    return 0


def _get(handle: Handle, keys: EntryKey, leases: Leases, words: Words, notices: Progress) -> None:
    """Wait until the lease of an entry is granted, and store it. Raises NotGrantedError."""
    before = keys.entry
    patience, timeout = patience_of(words), duration_of(words, "release_timeout", 5.0)
    acquiring = Acquiring(leases, before.wish, keys, patience, lambda: attempted(leases, before))
    try:
        with SignalCollector() as signals:
            grant = await_grant(acquiring, notices, signals, timeout)
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
    with handle.locked():
        kept = handle.change(keys.entry, keys.entry.granted(grant.lease))
    if not kept:
        give_back(leases, grant.lease, timeout)
        raise NotGrantedError(acquire.WITHDRAWN, released_text(handle))


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


def _retry(words: Words, notices: Progress) -> int:
    leases = server_of(words)
    handle = _handle(words)
    if leases is None or not handle.entries():
        if leases is not None:
            return _nothing("there is nothing to retry", words, notices)
        notices.say("there is nothing to retry")
        return 0
    for entry in _begun(handle):
        _get(handle, EntryKey(handle, entry), leases, words, notices)
    print_result("", _shown(handle), words)
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


def _renew(words: Words, notices: Progress) -> int:
    leases, handle = server_of(words), _handle(words)
    if leases is None:
        notices.say("no server is set (MOORAGE_URL, --url): dry run, nothing is renewed")
        return 0
    if not handle.entries() and not words["loop"]:
        return _nothing(f"{handle.path} has no lease", words, notices)
    renewals = Renewals(handle, leases, notices)
    with SignalCollector() as signals:
        pause = renewals.round(patient=words["loop"])
        while words["loop"] and pause is not None:
            if any(number in ENDING for number in signals.wait(pause)):
                return 0
            pause = renewals.round(patient=True)
    print_result("", _shown(handle), words)
    return CONFLICT if renewals.gone else 0


def _release(words: Words, notices: Progress) -> int:
    leases, delay = server_of(words), duration_of(words, "delay", None)
    if words["lease_id"] is not None:
        return release_by_id(words, leases, delay, notices)
    if not words["handle"]:
        notices.say("no handle: there is nothing to release")
        return 0
    handle = Handle(words["handle"])
    if leases is None:
        notices.say("no server is set (MOORAGE_URL, --url): dry run, nothing is released")
        return 0
    entries = handle.entries()
    if not entries:
        notices.say(f"{handle.path} has no lease: there is nothing to release")
        return 0
    until = elapsed() + duration_of(words, "release_timeout", 5.0)
    codes = []
    for entry in entries:
        try:
            if delay is None:
                note = _give_back(handle, entry, leases, max(0.1, until - elapsed()))
            else:
                note = _hold(handle, entry, leases, delay)
            if note is not None:
                notices.say(note)
        except FAILURES as failure:
            text = f"cannot release lease {entry.id or entry.key}: {failure}"
            codes.append(_failed(failure, text, words, notices))
    print_result("", _shown(handle), words)
    return max(codes, default=0)


def _give_back(handle: Handle, entry: HandleEntry, leases: Leases, seconds: float) -> str | None:
    """Release one lease and drop its entry; return a note if the lease had ended before.

    Raises the error that prevented the release.
    """
    ended: list[Lease] = []
    calls = [lambda left: ended.append(_released(entry, leases, left))]
    (trouble,) = carry_through(calls, seconds)
    if trouble is not None and getattr(trouble, "code", "") not in NOTHING_THERE:
        raise trouble
    with handle.locked():
        handle.drop(entry)
    if trouble is not None:
        return f"lease {entry.id} is {UNKNOWN}" if entry.answered else f"no lease: {trouble}"
    return None if ended[0].cause in BY_HOLDER else over(ended[0])


def _released(entry: HandleEntry, leases: Leases, seconds: float) -> Lease:
    """Release every lease that the server may have for an entry; return the last one.

    If the newest attempt was never answered, its lease's id is unknown. The same request with the
    same key returns it; if this creates a new lease, it is released at once.
    """
    if entry.id is not None:
        try:
            ended = leases.release(entry.id, entry.token, seconds)
        except RefusedError as refusal:
            if entry.answered or refusal.code not in GONE:
                raise
        else:
            if entry.answered:
                return ended
    lease = leases.ask(entry.wish, entry.key, seconds)
    return leases.release(lease.id, lease.token, seconds)


def _hold(handle: Handle, entry: HandleEntry, leases: Leases, delay: float) -> str | None:
    """Make the server end one lease later; it stays in the file and can be released earlier.

    Returns a note if the lease had ended before.
    """
    if not entry.answered:
        told = entry.granted(attempted(leases, entry))
        with handle.locked():
            handle.change(entry, told)
        entry = told
    lease_id = str(entry.id)
    try:
        leases.hold(lease_id, entry.token, delay)
        refresh(handle, entry, leases.renew(lease_id, entry.token, ANSWER_SECONDS))
        return None
    except RefusedError as refusal:
        if refusal.code not in GONE:
            raise
        with handle.locked():
            handle.drop(entry)
        ended = _looked(leases, entry)
        return f"lease {lease_id} is {UNKNOWN}" if ended is None else over(ended)


def _status(words: Words, notices: Progress) -> int:
    handle, leases = _handle(words), server_of(words)
    entries = handle.entries()
    if leases is None or not entries:
        if leases is not None:
            return _nothing(f"{handle.path} has no lease", words, notices)
        notices.say("no server is set")
        return 0
    found = [_looked(leases, entry) for entry in entries]
    if words["json"]:
        told = [None if lease is None else lease._asdict() for lease in found]
        write(json.dumps({"leases": told}, indent=2))
    else:
        write("id\tstate\tpools\tslots\tends\tremark")
        for entry, lease in zip(entries, found):
            write("\t".join(map(printable, _row(entry, lease))))
    held = all(lease is not None and lease.state == "granted" for lease in found)
    return 0 if held else NOT_GRANTED


def _looked(leases: Leases, entry: HandleEntry) -> Lease | None:
    """Return the lease of an entry as it is now; None if the server does not know it."""
    try:
        return leases.look(entry.id) if entry.id else None
    except RefusedError as refusal:
        if refusal.code == "lease_not_found":
            return None
        raise


def _row(entry: HandleEntry, lease: Lease | None) -> list[str]:
    if lease is None:
        state, remark = ("unknown", UNKNOWN) if entry.id else ("asked", "no answer yet")
        return [entry.id or "-", state, entry.wish.pools, "-", "-", remark]
    slots = " ".join(lease.slot_names) or "-"
    remark = "-" if lease.waiting is None else lease.waiting.reason
    remark = lease.end if lease.cause is not None else remark
    return [lease.id, lease.state, entry.wish.pools, slots, lease.ends_at or "-", remark]


def _outcome(words: Words, notices: Progress) -> int:
    """Report the result of a start; an empty lease id means that the command had no lease."""
    lease_id, result, leases = words["lease_id"], words["result"], server_of(words)
    if leases is None:
        notices.say("no server is set (MOORAGE_URL, --url): dry run, nothing is reported")
        return 0
    if not lease_id:
        notices.say("no lease: there is nothing to report")
        return 0
    lease = leases.outcome(lease_id, None, result, words["detail"] or "", ANSWER_SECONDS)
    print_result(f"{lease_id}: {result}", lease, words)
    return 0


def _cat(words: Words, notices: Progress) -> int:
    if words["handle"]:
        slots = [name for entry in Handle(words["handle"]).entries() for name in entry.slots]
        if slots:
            write(",".join(slots) if words["format"] == "csv" else "\n".join(slots))
    return 0


COMMANDS = {
    "lease acquire": _acquire,
    "lease renew": _renew,
    "lease retry": _retry,
    "lease release": _release,
    "lease status": _status,
    "lease outcome": _outcome,
    "lease cat": _cat,
}


def _nothing(why: str, words: Words, notices: Progress) -> int:
    notices.fail(NOT_GRANTED, why, as_json=words.get("json", False))
    return NOT_GRANTED


def _handle(words: Words) -> Handle:
    if not words["handle"]:
        raise UsageError("no handle: set the file of the leases with --handle")
    return Handle(words["handle"])


def _temporary() -> str:
    descriptor, path = tempfile.mkstemp(prefix="moorage-lease-")
    os.close(descriptor)
    return path


def _like(entries: Iterable[HandleEntry], wish: LeaseRequest) -> HandleEntry | None:
    """Return the entry with the same wish, ignoring the patience and where it came from."""

    def plain(one: LeaseRequest) -> LeaseRequest:
        return one._replace(patience=0.0, about=())

    return next((entry for entry in entries if plain(entry.wish) == plain(wish)), None)


def _shown(handle: Handle) -> dict[str, Any]:
    leases = [
        {name: value for name, value in entry._asdict().items() if name not in ("key", "wish")}
        for entry in handle.entries()
    ]
    return {"handle": handle.path, "leases": leases}
