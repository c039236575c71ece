"""Interprets the command-line arguments of `moorage run` and the handle commands."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from moorage.client.run.api_types import LeaseRequest, Need, Needs, patience_for
from moorage.client.run.labels import describing, is_on
from moorage.client.run.lease.acquire import Patience
from moorage.client.run.lease.api import Leases
from moorage.client.run.lease.nesting import REFUSE
from moorage.client.run.process.starters import Starters
from moorage.client.run.variables import UNLIMITED
from moorage.client.targets import UNSET, target_of
from moorage.wire.durations import seconds_of

UNLIMITED_HINT = f"or set {UNLIMITED}=1 if nothing needs to be limited here"
"""What to do if no server is set, besides setting one."""

TTL_SECONDS = 600.0
"""The TTL of a renewed lease: outlasts a server restart, a failover, a network failure.

Never longer than its pools permit.
"""

UNREACHABLE_SECONDS = 60.0
PID_DIGITS_MAX = 10
MISTAKES = ("refused", "pool_unknown", "nested")
"""Reasons for having no lease where a later try would not help."""

GRACE_SECONDS = 120.0
"""How long the holder of a preemptible lease has to stop, unless --grace says otherwise."""

DECISIONS = ("withdrawn", "revoked", "superseded")
"""Reasons that somebody has decided: nothing runs after these."""


class UsageError(Exception):
    """The arguments are wrong; the message is one line and says what to change."""


class RunRequest(NamedTuple):
    """One `moorage run`. Durations are in seconds.

    `leases` is None without a server: then the command runs without a lease. `trouble` says why a
    given server cannot be used.
    """

    command: tuple[str, ...]
    wish: LeaseRequest
    leases: Leases | None
    trouble: str | None
    key: str | None
    key_file: str | None
    patience: Patience
    best_effort: bool
    always: bool
    on_lost: str
    kill_after: float
    release_timeout: float
    outcome: bool
    patient: bool
    """While the command runs, a server that does not answer does not mean a lost lease."""
    nested: str
    unless_paused: bool = False
    throttled_exits: frozenset[int] = frozenset()
    throttled_when: re.Pattern[bytes] | None = None
    keep_on_failure: float | None = None

    def forgives(self, why: str, paused: bool = False) -> bool:
        """Return whether the command runs without a lease after a failure for this reason.

        `paused`: it waited for a pool that an operator has paused.
        """
        if why in DECISIONS or (paused and self.unless_paused):
            return False
        return self.always or (self.best_effort and why not in MISTAKES)


def order_of(words: Mapping[str, Any], command: tuple[str, ...]) -> RunRequest:
    """Interpret the arguments of `moorage run`.

    Raises UsageError; with `--best-effort-always`, errors about the server go to `trouble` instead.
    """
    if not command:
        raise UsageError("no command: put it after --, as in: moorage run --pool NAME -- COMMAND")
    if words["key"] and words["key_file"]:
        raise UsageError("--key and --key-file exclude each other: use one of them")
    always, leases, trouble = bool(words["best_effort_always"]), None, words.get("trouble")
    best_effort = always or bool(words["best_effort"])
    try:
        leases = server_of(words) if trouble is None else None
    except UsageError as error:
        if not always:
            raise
        trouble = str(error)
    wish = wish_of(words, os.getpid(), command)._replace(usual_ttl=TTL_SECONDS)
    # With a hold or best effort, the lease is not essential: do not end the command without it.
    lenient = best_effort or wish.hold is not None
    return RunRequest(
        command=command,
        wish=wish,
        leases=leases,
        trouble=trouble,
        key=words["key"],
        key_file=words["key_file"],
        patience=patience_of(words),
        best_effort=best_effort,
        always=always,
        on_lost=words["on_lost"] or ("warn" if lenient else "term"),
        kill_after=duration_of(words, "kill_after", 30.0),
        release_timeout=duration_of(words, "release_timeout", 5.0),
        outcome=bool(words["outcome"] or words["throttled_exit"] or words["throttled_when"]),
        patient=words["on_unreachable"] != "lost",
        nested=words["nested"] or REFUSE,
        unless_paused=bool(words.get("unless_paused")),
        throttled_exits=frozenset(_exit_code(text) for text in words["throttled_exit"]),
        throttled_when=_pattern(words["throttled_when"]),
        keep_on_failure=duration_of(words, "keep_on_failure", None),
    )


def _exit_code(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:4]) < 256):
        raise UsageError(f"--throttled-exit: {text!r} is not an exit code from 1 to 255")
    return int(text)


def _pattern(text: str | None) -> re.Pattern[bytes] | None:
    """Return the pattern to search lines for. Raises UsageError."""
    if not text:
        return None
    try:
        return re.compile(os.fsencode(text), re.MULTILINE)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"--throttled-when: {text!r} is not a pattern: {error}") from None


def wish_of(words: Mapping[str, Any], pid: int, command: Sequence[str] = ()) -> LeaseRequest:
    """Return what to request; `pid` and `command` as in `found_labels`. Raises UsageError."""
    needs: dict[str, int] = {}
    for text in words["pool"]:
        pool, units = _units_of(text)
        needs[pool] = needs.get(pool, 0) + units
    any_of = any_of_texts(words.get("any_of", ()))
    if not needs and not any_of:
        raise UsageError("no pool: set one with --pool, or several with --any-of")
    named = dict.fromkeys([*needs, *(need.pool for one in any_of for need in one)])
    slot_labels = slot_labels_of(words.get("slot_label", ()), named)
    labels = labels_of(words)
    try:
        priority = int(words["priority"] or 0)
    except ValueError:
        raise UsageError(f"--priority: {words['priority']!r} is not a whole number") from None
    group, cancels = words.get("supersede") or "", bool(words.get("cancel_running"))
    if cancels and not group:
        raise UsageError("--cancel-running needs the group: set it with --supersede")
    if words.get("grace") and not words.get("preemptible"):
        raise UsageError("--grace is the time to stop of a lease with --preemptible")
    grace = duration_of(words, "grace", GRACE_SECONDS) if words.get("preemptible") else None
    return LeaseRequest(
        needs=tuple(sorted(needs.items())),
        ttl=duration_of(words, "ttl", None),
        hold=duration_of(words, "hold", None),
        priority=priority,
        labels=labels,
        about=_about(words, pid, command),
        patience=_place_kept(words),
        slot_labels=tuple(one for one in slot_labels if one[0] in needs),
        group=group,
        cancel_running=cancels,
        preemptible=grace,
        any_of=tuple(_labelled(one, dict(slot_labels)) for one in any_of),
        in_order=words.get("choose") == "order",
        booking=words.get("booking"),
        borrow=duration_of(words, "borrow", None) if words.get("borrow") else None,
    )


def any_of_texts(texts: Iterable[str]) -> tuple[Needs, ...]:
    """Return the alternatives of `NEED[+NEED...],...`, each NEED as `POOL[=UNITS][:NAME=VALUE...]`.

    Several texts are one list. Raises UsageError.
    """
    return tuple(
        tuple(_need_of(need, text) for need in alternative.split("+"))
        for text in texts
        for alternative in text.split(",")
    )


def _labelled(needs: Needs, labels: Mapping[str, tuple[tuple[str, str], ...]]) -> Needs:
    """Return needs with the labels that are set for their pools, too."""
    return tuple(
        need._replace(
            labels=tuple(sorted({**dict(labels.get(need.pool, ())), **dict(need.labels)}.items()))
        )
        for need in needs
    )


def _need_of(text: str, whole: str) -> Need:
    pool, *labels = text.split(":")
    found = [label.partition("=") for label in labels]
    if not all(name and equals for name, equals, _ in found):
        raise UsageError(
            f"--any-of {whole!r}: {text!r} is not POOL, POOL=UNITS or POOL=UNITS:NAME=VALUE"
        )
    name, units = _units_of(pool)
    return Need(name, units, tuple(sorted((label, value) for label, _, value in found)))


def _units_of(text: str) -> tuple[str, int]:
    pool, _, units = text.partition("=")
    if not pool or (units and not (units.isascii() and units.isdigit() and int(units) > 0)):
        raise UsageError(f"{text!r} is not POOL or POOL=UNITS (for example install/azure=2)")
    return pool, int(units or 1)


def slot_labels_of(
    texts: Iterable[str], pools: Collection[str]
) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """Return the labels that slots must have, by pool. Raises UsageError."""
    found: dict[str, dict[str, str]] = {}
    for text in texts:
        pool, colon, rest = text.partition(":")
        if not (colon and pool in pools):
            pool, rest = next(iter(pools)), text
            if len(pools) > 1:
                raise UsageError(
                    f"--slot-label {text!r}: with several pools, write POOL:NAME=VALUE"
                )
        name, equals, value = rest.partition("=")
        if not (name and equals):
            raise UsageError(f"--slot-label: {text!r} is not NAME=VALUE or POOL:NAME=VALUE")
        found.setdefault(pool, {})[name] = value
    return tuple((pool, tuple(sorted(found[pool].items()))) for pool in sorted(found))


def labels_of(words: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the labels, sorted by name. Raises UsageError."""
    labels: dict[str, str] = {}
    for text in words["label"]:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise UsageError(f"{text!r} is not NAME=VALUE")
        labels[name] = value
    return tuple(sorted(labels.items()))


def _about(
    words: Mapping[str, Any], pid: int, command: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    if words["no_labels"]:
        return ()
    try:
        return describing(os.environ, pid, command)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _place_kept(words: Mapping[str, Any]) -> float:
    silence = duration_of(words, "unreachable_after", UNREACHABLE_SECONDS)
    kept: float = duration_of(words, "patience", patience_for(silence))
    return kept


def patience_of(words: Mapping[str, Any]) -> Patience:
    """Return the time limits of an attempt. Raises UsageError."""
    return Patience(
        wait=duration_of(words, "wait", 7200.0),
        unreachable_after=duration_of(words, "unreachable_after", UNREACHABLE_SECONDS),
        jitter=duration_of(words, "jitter", 0.0),
    )


def duration_of(words: Mapping[str, Any], name: str, default: Any) -> Any:
    """Return an argument as seconds. Raises UsageError."""
    text = words[name]
    if text is None:
        return default
    try:
        return seconds_of(text)
    except ValueError as error:
        raise UsageError(f"--{name.replace('_', '-')}: {error}") from None


def server_of(words: Mapping[str, Any]) -> Leases | None:
    """Return a client of the server; None if none is set and nothing is to be limited.

    A caller with its own transport passes it as the argument `server`. Raises UsageError.
    """
    if words.get("server") is not None:
        return Leases(words["server"])
    try:
        target = target_of(words, os.environ)
        if target.url is not None:
            return Leases(target.transport())
        if words["unlimited_without_server"] or is_on(UNLIMITED, os.environ, False):
            return None
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from None
    raise UsageError(f"{UNSET}, {UNLIMITED_HINT}")


def starters_of(words: Mapping[str, Any], output: int | None = None) -> Starters:
    """Return the processes with which a command ends: of `--with`, or else those that started it.

    Args:
        words: the arguments.
        output: a file descriptor whose reader must live, too.

    Raises UsageError.
    """
    text = words["with"]
    if text is None:
        return Starters(output=output)
    if not (text.isascii() and text.isdigit() and len(text) < PID_DIGITS_MAX):
        raise UsageError(f"--with: {text!r} is not the number of a process, such as $$ in a shell")
    return Starters([int(text)] if int(text) else [], output)
