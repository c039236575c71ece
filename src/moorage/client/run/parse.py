"""What `moorage run` and the handle commands are asked to do, from the words of a command line."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from moorage.client.run.api_types import PATIENCE_SECONDS, Wish
from moorage.client.run.durations import seconds_of
from moorage.client.run.lease.acquire import Patience
from moorage.client.run.lease.api import Leases
from moorage.client.run.lease.nesting import REFUSE
from moorage.client.transport import Transport, token_of

URL_VARIABLE = "MOORAGE_URL"
TOKEN_VARIABLE = "MOORAGE_TOKEN"
REQUIRE_VARIABLE = "MOORAGE_REQUIRE"
YES, NO = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")

TTL_SECONDS = 600.0
"""Of a lease that is renewed: long enough for a restart of a server, a failover, a network.

Never longer than its pools permit.
"""

UNREACHABLE_SECONDS = 60.0
PATIENCE_SECONDS_MAX = 3600.0
"""As the server has it."""

MISTAKES = ("refused", "pool_unknown", "nested")
"""Why there is no lease if trying later would not help."""


class UsageError(Exception):
    """The words make no sense; the message is one line and says what to change."""


class Order(NamedTuple):
    """One `moorage run`. Durations are in seconds.

    `leases` is None without a server: then nothing is asked for, and the command just runs.
    `trouble` says why there is none although one is named.
    """

    command: tuple[str, ...]
    wish: Wish
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
    """A server that does not answer is waited for, while the command runs."""
    nested: str

    def forgives(self, why: str) -> bool:
        """Does the command run without a lease if there is none for this reason?"""
        return self.always or (self.best_effort and why not in MISTAKES)


def order_of(words: Mapping[str, Any], command: tuple[str, ...]) -> Order:
    """Return what the words say; `trouble` tells why there is no server if that is forgiven.

    Raises UsageError.
    """
    if not command:
        raise UsageError("no command: put it after --, as in: run --pool NAME -- COMMAND ARGUMENTS")
    if words["key"] and words["key_file"]:
        raise UsageError("--key and --key-file are two ways to say the same: name one")
    always, leases, trouble = bool(words["best_effort_always"]), None, words.get("trouble")
    best_effort = always or bool(words["best_effort"])
    try:
        leases = server_of(words) if trouble is None else None
    except UsageError as error:
        if not always:
            raise
        trouble = str(error)
    wish = wish_of(words)._replace(usual_ttl=TTL_SECONDS)
    # Who is limited for a while only, or not by all means, is not ended for it.
    lenient = best_effort or wish.hold is not None
    return Order(
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
        outcome=bool(words["outcome"]),
        patient=words["on_unreachable"] != "lost",
        nested=words["nested"] or REFUSE,
    )


def wish_of(words: Mapping[str, Any]) -> Wish:
    """Return what to ask for. Raises UsageError."""
    needs: dict[str, int] = {}
    for text in words["pool"]:
        pool, _, units = text.partition("=")
        if not pool or (units and not (units.isascii() and units.isdigit() and int(units) > 0)):
            raise UsageError(f"{text!r} is not POOL or POOL=UNITS (for example install/azure=2)")
        needs[pool] = needs.get(pool, 0) + int(units or 1)
    if not needs:
        raise UsageError("which pool? Name one with --pool")
    labels: dict[str, str] = {}
    for text in words["label"]:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise UsageError(f"{text!r} is not NAME=VALUE")
        labels[name] = value
    try:
        priority = int(words["priority"] or 0)
    except ValueError:
        raise UsageError(f"--priority: {words['priority']!r} is no whole number") from None
    return Wish(
        needs=tuple(sorted(needs.items())),
        ttl=duration_of(words, "ttl", None),
        hold=duration_of(words, "hold", None),
        priority=priority,
        labels=tuple(sorted(labels.items())),
        patience=_place_kept(words),
    )


def _place_kept(words: Mapping[str, Any]) -> float:
    """Return how long a place in line is to be kept: longer than we try to be heard."""
    silence = duration_of(words, "unreachable_after", UNREACHABLE_SECONDS)
    usual = min(silence + PATIENCE_SECONDS, PATIENCE_SECONDS_MAX)
    kept: float = duration_of(words, "patience", usual)
    return kept


def patience_of(words: Mapping[str, Any]) -> Patience:
    """Return how long to wait for what. Raises UsageError."""
    return Patience(
        wait=duration_of(words, "wait", 7200.0),
        unreachable_after=duration_of(words, "unreachable_after", UNREACHABLE_SECONDS),
        jitter=duration_of(words, "jitter", 0.0),
    )


def duration_of(words: Mapping[str, Any], name: str, default: Any) -> Any:
    """Return one of the words as seconds. Raises UsageError."""
    text = words[name]
    if text is None:
        return default
    try:
        return seconds_of(text)
    except ValueError as error:
        raise UsageError(f"--{name.replace('_', '-')}: {error}") from None


def server_of(words: Mapping[str, Any]) -> Leases | None:
    """Return the way to the server; None: none is named, and none is required. Raises UsageError.

    Whoever knows a way of its own hands it on as the word `server`.
    """
    if words.get("server") is not None:
        return Leases(words["server"])
    url = words["url"] or os.environ.get(URL_VARIABLE)
    if not url:
        if words["require"] or is_required():
            raise UsageError(
                "no server is named, and one is required (--require, MOORAGE_REQUIRE):"
                " set MOORAGE_URL, or use --url"
            )
        return None
    try:
        return Leases(Transport(url, token_named(words), certificate=words["certificate"]))
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from None


def is_required() -> bool:
    """Must a server be named, as the environment has it? Raises UsageError."""
    text = os.environ.get(REQUIRE_VARIABLE, "").strip().lower()
    if text not in YES + NO:
        raise UsageError(f"{REQUIRE_VARIABLE}={text!r} is neither yes nor no: set 1 or 0")
    return text in YES


def token_named(words: Mapping[str, Any]) -> str | None:
    """Return the token to ask with; None: none is named. Raises OSError, ValueError."""
    path: str | None = words["token_file"]
    if path:
        # What is no text is no token either, and is refused as such.
        with open(path, encoding="utf-8", errors="replace") as file:
            return token_of(file.read(), path)
    if words["token"]:
        return token_of(words["token"], "--token")
    token = os.environ.get(TOKEN_VARIABLE)
    return token_of(token, TOKEN_VARIABLE) if token else None
