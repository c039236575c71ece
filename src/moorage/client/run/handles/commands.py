"""The commands `moorage lease acquire|renew|retry|release|status|cat`, on files, and `outcome`."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from typing import Any

from moorage.client.run.api_types import Lease
from moorage.client.run.clock import elapsed
from moorage.client.run.exit_codes import (
    ABANDONED,
    CONFLICT,
    FAILED,
    NOT_GRANTED,
    REVOKED,
    SUPERSEDED,
    UNREACHABLE,
    USAGE,
    WITHDRAWN,
    exit_code_of,
)
from moorage.client.run.handles.acquiring import acquire, attempted, retry, shown
from moorage.client.run.handles.by_id import over, release_by_id
from moorage.client.run.handles.file import Handle, HandleEntry, HandleError
from moorage.client.run.handles.giving_back import UNKNOWN, give_back_entry
from moorage.client.run.handles.renewals import Renewals, refresh
from moorage.client.run.lease.acquire import NotGrantedError
from moorage.client.run.lease.api import ANSWER_SECONDS, Leases
from moorage.client.run.lease.renewer import FAILURES, GONE
from moorage.client.run.lease.waiting import InterruptedWaitError
from moorage.client.run.parse import UsageError, duration_of, server_of, starters_of
from moorage.client.run.printing import print_result, printable, write
from moorage.client.run.process.signals import ENDING, SignalCollector
from moorage.client.run.process.starters import LOOK_SECONDS, Starters
from moorage.client.run.progress import Progress
from moorage.client.transport import RefusedError, UnreachableError

LOOP_SECONDS = 86_400.0
"""How long `renew --loop` renews at most, by default: a day."""

WHY_CODES = {
    "pool_unknown": USAGE,
    "unreachable": UNREACHABLE,
    "withdrawn": WITHDRAWN,
    "revoked": REVOKED,
    "superseded": SUPERSEDED,
    "abandoned": ABANDONED,
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


def _retry(words: Words, notices: Progress) -> int:
    leases = server_of(words)
    handle = _handle(words)
    if leases is not None and handle.entries():
        return retry(handle, leases, words, notices)
    if leases is not None:
        return _nothing("there is nothing to retry", words, notices)
    notices.say("there is nothing to retry")
    return 0


def _renew(words: Words, notices: Progress) -> int:
    leases, handle = server_of(words), _handle(words)
    if leases is None:
        notices.say("no server is set (MOORAGE_URL, --url): dry run, nothing is renewed")
        return 0
    if not handle.entries() and not words["loop"]:
        return _nothing(f"{handle.path} has no lease", words, notices)
    renewals = Renewals(handle, leases, notices)
    if not words["loop"]:
        renewals.round(patient=False)
    elif (why := _renewed_on(renewals, starters_of(words), words)) is not None:
        notices.say(f"{why}: the leases of {handle.path} are no longer renewed")
        return 0
    print_result("", shown(handle), words)
    return CONFLICT if renewals.gone else 0


def _renewed_on(renewals: Renewals, starters: Starters, words: Words) -> str | None:
    """Renew in rounds until the leases are gone, or for another reason, which it returns."""
    end = elapsed() + duration_of(words, "for", LOOP_SECONDS)
    with SignalCollector() as signals:
        while starters.gone() is None:
            now = elapsed()
            if now >= end:
                return f"the time for renewals, {words['for'] or 'a day'}, is over (--for)"
            pause = renewals.round(patient=True)
            if pause is None:
                return None
            due = min(elapsed() + pause, end)
            while starters.gone() is None and (left := due - elapsed()) > 0:
                for number in signals.wait(min(left, LOOK_SECONDS)):
                    if number in ENDING:
                        return signal.Signals(number).name
    return starters.gone()


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
                note = give_back_entry(handle, entry, leases, max(0.1, until - elapsed()))
            else:
                note = _hold(handle, entry, leases, delay)
            if note is not None:
                notices.say(note)
        except FAILURES as failure:
            text = f"cannot release lease {entry.id or entry.key}: {failure}"
            codes.append(_failed(failure, text, words, notices))
    print_result("", shown(handle), words)
    return max(codes, default=0)


def _hold(handle: Handle, entry: HandleEntry, leases: Leases, delay: float) -> str | None:
    """Make the server end one lease by then; it stays in the file and can be released earlier.

    Returns a note if the lease had ended before.
    """
    if not entry.answered:
        told = entry.granted(attempted(leases, entry))
        with handle.locked():
            handle.change(entry, told)
        entry = told
    lease_id = str(entry.id)
    try:
        leases.end_within(lease_id, entry.token, delay)
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
    pools = lease.pools_of(entry.wish)
    return [lease.id, lease.state, pools, slots, lease.ends_at or "-", remark]


def _outcome(words: Words, notices: Progress) -> int:
    """Report the result of a start; an empty lease id means that the command had no lease."""
    lease_id, result, leases = words["lease_id"], words["result"], server_of(words)
    if leases is None:
        notices.say("no server is set (MOORAGE_URL, --url): dry run, nothing is reported")
        return 0
    if not lease_id:
        notices.say("no lease: there is nothing to report")
        return 0
    detail, cause = words["detail"] or "", words["cause"] or ""
    lease = leases.outcome(lease_id, None, result, detail, ANSWER_SECONDS, cause)
    print_result(f"{lease_id}: {result}", lease, words)
    return 0


def _cat(words: Words, notices: Progress) -> int:
    if words["handle"]:
        slots = [name for entry in Handle(words["handle"]).entries() for name in entry.slots]
        if slots:
            write(",".join(slots) if words["format"] == "csv" else "\n".join(slots))
    return 0


COMMANDS = {
    "lease acquire": acquire,
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
