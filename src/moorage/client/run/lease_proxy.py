"""Implements the bash functions of `moorage client.sh`, whose text contains this whole file.

It calls a lease proxy (`/lease/acquire`, `/lease/release`), with the options and exit codes of the
functions that CI scripts have sourced so far: 0 done, 1 failed, 2 the type is unknown. Standard
output contains only the result. Needs only Python 3.9.
"""

from __future__ import annotations

import fcntl
import http.client
import json
import os
import random
import re
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlencode

from moorage.client.run.labels import describing
from moorage.client.run.lease_proxy_exchange import Exchange
from moorage.client.run.lease_proxy_files import (
    FailedError,
    forgotten,
    kept,
    rewritten,
    say,
    shared_path,
)
from moorage.client.run.process.starters import LOOK_SECONDS, Starters, ancestors

URL = os.environ.get("LEASE_PROXY_SERVER_URL", "").rstrip("/")
TRIES = 6
PAUSE_SECONDS = 10.0
SHELL: list[int] = []
"""The process id of the calling shell."""

CALLER: list[Starters] = []
"""The processes with which this one ends: the shells that have called it."""

STDOUT = 1
STOPPED: list[BaseException] = []
"""What has ended the wait for an answer that came all the same."""

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
BUSY = (429, 502, 503, 504)
"""Statuses after which a retry may succeed; before a 500, the proxy has retried enough itself."""

ACQUIRE_SECONDS = 3 * 3600.0
"""The longest wait for an answer: the proxy answers after two hours at the latest."""

RELEASE_SECONDS = 60.0

FAILING = re.compile(r"Failed to release lease (\S+): ")
"""Matches the name that failed; the answer also lists the names released before it."""

UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class _InterruptedError(BaseException):
    """A signal is to end this process; `number` is its number."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _interrupt(number: int, _: object) -> None:
    """React to a signal: whatever is acquired is given back on the way out; a second one kills."""
    for one in ENDING:
        signal.signal(one, signal.SIG_DFL)
    raise _InterruptedError(number)


class NotReleasedError(FailedError):
    """Some names are not known to be released; `done` are the released ones."""

    def __init__(self, message: str, done: list[str]) -> None:
        super().__init__(message)
        self.done = done


def main(arguments: list[str]) -> int:
    """Execute one function; return its exit code.

    The arguments are the process ids of the script and of the calling shell, the function, and its
    arguments.
    """
    shells, function, *rest = arguments
    pids = [int(pid) for pid in shells.split(",")]
    SHELL[:] = pids[-1:]
    CALLER[:] = [Starters([*ancestors(), *pids], STDOUT if function == "acquire" else None)]
    try:
        FUNCTIONS[function](_options(rest))
    except _InterruptedError as interrupted:
        return 128 + interrupted.number
    except FailedError as failure:
        say(str(failure))
        return failure.code
    except OSError as error:
        say(str(error))
        return 1
    return 0


def _options(words: list[str]) -> dict[str, str]:
    """Return options by name; other arguments are ignored, as in the original functions."""
    found: dict[str, str] = {}
    short = {"-t": "--type", "-c": "--count", "-n": "--names"}
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        name = short.get(name, name)
        if name.startswith("--"):
            found[name[2:]] = value if equals else next(rest, "")
    return found


def acquire(options: dict[str, str]) -> None:
    """Acquire leases of a type; print the path of the file with their names (the handle)."""
    kind, count = options.get("type", ""), options.get("count", "1")
    scope, jitter = options.get("scope", "test"), options.get("jitter", "0s")
    if not kind:
        raise FailedError("resource type parameter is invalid")
    if not (count.isascii() and count.isdigit()):
        raise FailedError("count parameter is invalid")
    if not re.fullmatch(r"0s|[1-9][0-9]*[ms]", jitter):
        raise FailedError("jitter parameter is invalid")
    if scope not in ("step", "test"):
        raise FailedError("scope parameter is invalid")
    if not URL:
        sys.stdout.write("LEASE_PROXY_SERVER_URL-not-set-dry-run-mode\n")
        return
    shared = shared_path() if scope == "test" else None
    _pause(random.uniform(0, _seconds(jitter)))
    labels = {f"label.{name}": value for name, value in _labels().items()}
    query = urlencode({"type": kind, "count": count, **labels})
    status, answer = _post(f"/lease/acquire?{query}", None, ACQUIRE_SECONDS)
    if status == 404:
        raise FailedError(f'Failed to acquire "{kind}": it does not exist', 2)
    if status // 100 != 2:
        raise FailedError(f'Failed to acquire "{kind}": {status} {answer}')
    names = [str(name) for name in json.loads(answer)["names"]]
    if not names:
        return
    handle = ""
    try:
        handle = kept(kind, names, shared)
        _check()
        sys.stdout.write(handle)
        sys.stdout.flush()
    except BaseException:
        _given_back(names, handle)
        raise


def _given_back(names: list[str], handle: str) -> None:
    """Release units without a holder: they were not stored, or the handle could not be printed."""
    CALLER.clear()  # neither the shell nor its signal matters to this
    STOPPED.clear()
    _released(names)
    forgotten(names)
    for path in (handle, f"{handle}.lock") if handle else ():
        with suppress(OSError):
            os.unlink(path)
    with suppress(OSError, ValueError):  # else Python tries to print it again when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)


def release(options: dict[str, str]) -> None:
    """Release leases by name, by handle, or all leases of this test."""
    ways = [name for name in ("names", "scope") if options.get(name)]
    ways += ["handle"] if "handle" in options else []
    if len(ways) > 1:
        raise FailedError("Parameters --names, --handle, and --scope are mutually exclusive")
    if not ways:
        raise FailedError("One of --names, --handle, or --scope is required")
    names = options.get("names", "")
    if not URL:
        sys.stdout.write(
            f'LEASE_PROXY_SERVER_URL not set, dry run mode: it would release "{names}"\n'
        )
        return
    _pause(_seconds(options.get("delay") or "0s"))
    if ways == ["names"]:
        wanted = [name for name in names.split(",") if name]
        try:
            _released(wanted)
        except NotReleasedError as failure:
            forgotten(failure.done)
            raise
        forgotten(wanted)
    elif ways == ["handle"]:
        _release_handle(options["handle"])
    elif options["scope"] == "test":
        _release_file(shared_path(), handle=False)
    else:
        raise FailedError("lease names are required")


def cat(options: dict[str, str]) -> None:
    """Print the names in a handle."""
    handle = options.get("handle", "")
    pretty = "pretty-format" in options
    wanted = options["pretty-format"] if pretty else options.get("format", "plain")
    if not os.path.isfile(handle):
        return
    with open(handle, encoding="utf-8") as file:
        text = file.read()
    if wanted == "csv":
        sys.stdout.write(",".join(text.split()) + ("\n" if pretty else ""))
    elif wanted == "plain":
        sys.stdout.write(text)
    else:
        raise FailedError(f"Invalid format {wanted}")


FUNCTIONS = {"acquire": acquire, "release": release, "cat": cat}


def _labels() -> dict[str, str]:
    """Return the labels that say who asks; other proxies than Moorage's ignore them."""
    try:
        return dict(describing(os.environ, SHELL[0]))
    except ValueError as error:
        raise FailedError(str(error)) from None


def _release_handle(handle: str) -> None:
    """Release the leases in a handle and remove it; a second call does nothing."""
    if not handle:
        return
    with open(f"{handle}.lock", "a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _release_file(handle, handle=True)


def _release_file(path: str, handle: bool) -> None:
    """Release the leases in a file; then empty the file, or remove it if it is a handle."""
    if not os.path.isfile(path):
        return
    with open(path, "r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        names = file.read().split()
        if not names:
            return
        try:
            _released(names)
        except NotReleasedError as failure:
            rewritten(file, names, failure.done)
            if handle:
                forgotten(failure.done)
            raise
        if not handle:
            file.truncate(0)
            return
        os.unlink(path)
    forgotten(names)


def _released(names: list[str]) -> None:
    """Release by name; after a failure of one name, continue with the others.

    Names that an answer reports as released are not sent again: another holder may have that slot
    by then. Raises NotReleasedError.
    """
    left = [*names]
    done: list[str] = []
    failures: list[str] = []

    def body() -> bytes:
        return json.dumps({"names": left}).encode()

    def heed(answer: str) -> None:
        for name in answer.partition("\nReleased:")[2].split():
            if name in left:
                left.remove(name)
                done.append(name)

    while left:
        try:
            status, answer = _post("/lease/release", body, RELEASE_SECONDS, heed)
        except FailedError as failure:
            failures.append(str(failure))
            break
        if status // 100 == 2:
            done += left
            break
        failures.append(f"{status} {answer}")
        failing = FAILING.search(answer)
        if failing is None or failing[1] not in left:
            break
        left.remove(failing[1])
    if failures:
        raise NotReleasedError(f'Failed to release "{",".join(names)}": {failures[0]}', done)
    say(f"{','.join(names)} released")


def _post(
    path: str,
    body: Callable[[], bytes] | None,
    seconds_max: float,
    heed: Callable[[str], None] | None = None,
) -> tuple[int, str]:
    """Return status and body of the answer; retry if there is no answer or the proxy is busy.

    `heed` is called with each refusal; the body is built again for each try.
    """
    headers = {} if body is None else {"Content-Type": "application/json"}
    said = ""
    for attempt in range(TRIES):
        if attempt:
            say(f"lease proxy: {said}; trying again")
            _pause(PAUSE_SECONDS)
        data = b"" if body is None else body()
        try:
            exchange = Exchange(URL, path, data, headers, seconds_max)
            status, text, stopped = exchange.result(_check)
        except ValueError as error:
            raise FailedError(f"LEASE_PROXY_SERVER_URL: {error}") from None
        except (OSError, http.client.HTTPException) as error:
            said = str(error)
            continue
        if stopped is not None:
            STOPPED.append(stopped)
        if 200 <= status < 300:
            return status, text
        said = f"{status} {text.strip()}"
        if heed is not None:
            heed(said)
        if status not in BUSY:
            return status, said
    raise FailedError(f"no answer from the lease proxy: {said}")


def _pause(seconds: float) -> None:
    """Wait. Raises FailedError: the calling shell has ended."""
    left = seconds
    while left > 0:
        _check()
        threading.Event().wait(min(left, LOOK_SECONDS))
        left -= LOOK_SECONDS


def _check() -> None:
    """Raise FailedError if the calling shell has ended, or nobody reads what it acquires."""
    if STOPPED:
        raise STOPPED[0]
    why = None if not CALLER else CALLER[0].gone()
    if why is not None:
        raise FailedError(f"the calling shell has gone: {why}")


def _seconds(text: str) -> float:
    found = re.fullmatch(r"([0-9]+(?:[.][0-9]+)?)([smhd]?)", text)
    if found is None:
        raise FailedError(f"invalid time interval: {text}")
    return float(found[1]) * UNITS[found[2]]


if __name__ == "__main__":
    for ending in ENDING:
        if signal.getsignal(ending) is not signal.SIG_IGN:
            signal.signal(ending, _interrupt)
    sys.exit(main(sys.argv[1:]))
