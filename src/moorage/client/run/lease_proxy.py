"""Implements the bash functions of `moorage client.sh`, whose text contains this whole file.

It calls a lease proxy (`/lease/acquire`, `/lease/release`), with the options and exit codes of the
functions that CI scripts have sourced so far: 0 done, 1 failed, 2 the type is unknown. Standard
output contains only the result. Needs only Python 3.9.
"""

from __future__ import annotations

import base64
import fcntl
import http.client
import json
import os
import random
import re
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import TextIO
from urllib.parse import quote, unquote, urlencode

from moorage.client.run.labels import describing

URL = os.environ.get("LEASE_PROXY_SERVER_URL", "").rstrip("/")
TRIES = 6
PAUSE_SECONDS = 10.0
CALLER: list[int] = []
"""The process id of the calling shell."""

BUSY = (429, 502, 503, 504)
"""Statuses after which a retry may succeed; before a 500, the proxy has retried enough itself."""

ACQUIRE_SECONDS = 3 * 3600.0
"""The longest wait for an answer: the proxy answers after two hours at the latest."""

RELEASE_SECONDS = 60.0

FAILING = re.compile(r"Failed to release lease (\S+): ")
"""Matches the name that failed; the answer also lists the names released before it."""

UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class FailedError(Exception):
    """The function failed; `code` is its exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


class NotReleasedError(FailedError):
    """Some names are not known to be released; `done` are the released ones."""

    def __init__(self, message: str, done: list[str]) -> None:
        super().__init__(message)
        self.done = done


def main(arguments: list[str]) -> int:
    """Execute one function; return its exit code.

    The arguments are the process id of the calling shell, the function, and its arguments.
    """
    shell, function, *rest = arguments
    CALLER.append(int(shell))
    try:
        FUNCTIONS[function](_options(rest))
    except FailedError as failure:
        _say(str(failure))
        return failure.code
    except OSError as error:
        _say(str(error))
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
    shared = _shared() if scope == "test" else None
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
    try:
        handle = _kept(kind, names, shared)
    except OSError:
        _released(names)
        _forgotten(names)
        raise
    sys.stdout.write(handle)


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
            _forgotten(failure.done)
            raise
        _forgotten(wanted)
    elif ways == ["handle"]:
        _release_handle(options["handle"])
    elif options["scope"] == "test":
        _release_file(_shared(), handle=False)
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
        return dict(describing(os.environ, CALLER[0]))
    except ValueError as error:
        raise FailedError(str(error)) from None


def _shared() -> str:
    folder = os.environ.get("SHARED_DIR", "")
    if not folder:
        raise FailedError("$SHARED_DIR is empty")
    return os.path.join(folder, "leases")


def _kept(kind: str, names: list[str], shared: str | None) -> str:
    """Store the names in files; return the handle."""
    if shared is not None:
        with open(shared, "a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write("".join(f"{name}\n" for name in names))
    descriptor, handle = tempfile.mkstemp(prefix=f"{quote(kind, safe='')}-")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write("\n".join(names))
    with open(f"{handle}.lock", "w", encoding="utf-8"):
        return handle


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
            _rewritten(file, names, failure.done)
            if handle:
                _forgotten(failure.done)
            raise
        if not handle:
            file.truncate(0)
            return
        os.unlink(path)
    _forgotten(names)


def _forgotten(names: list[str]) -> None:
    """Remove released names from the list of this test's leases.

    The next lease of such a slot has the same name, and a release of the whole test would release
    that lease. Removes only one line per name: another step may just have acquired it again.
    """
    folder = os.environ.get("SHARED_DIR", "")
    path = os.path.join(folder, "leases")
    if not folder or not os.path.isfile(path):
        return
    try:
        with open(path, "r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            _rewritten(file, file.read().split(), names)
    except OSError as error:  # the names are released anyway
        _say(f"{path}: {error}")


def _rewritten(file: TextIO, names: list[str], gone: list[str]) -> None:
    """Write these names to a file, except one line for each name in `gone`."""
    left = [*names]
    for name in gone:
        if name in left:
            left.remove(name)
    file.seek(0)
    file.write("".join(f"{name}\n" for name in left))
    file.truncate()


def _say(text: str) -> None:
    """Print lines on standard error, escaped as in `printing.py`, which is not available here."""
    for line in text.splitlines():
        shown = (one if one.isprintable() else ascii(one)[1:-1] for one in line)
        sys.stderr.write(f"{''.join(shown)}\n")


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
    _say(f"{','.join(names)} released")


class _Stays(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: it would send the password to another server, and change POST to GET."""

    def redirect_request(self, *_: object) -> None:
        """Return None, so that urllib returns the redirect itself as the answer."""


OPENER = urllib.request.build_opener(_Stays)


def _proxy() -> tuple[str, dict[str, str]]:
    """Return the URL without user and password, and the header for these, as curl sends it."""
    scheme, _, rest = URL.partition("://")
    place, slash, path = rest.partition("/")
    pair, at, host = place.rpartition("@")
    if not at:
        return URL, {}
    user, _, password = pair.partition(":")
    basic = base64.b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()
    return f"{scheme}://{host}{slash}{path}", {"Authorization": f"Basic {basic}"}


def _post(
    path: str,
    body: Callable[[], bytes] | None,
    seconds_max: float,
    heed: Callable[[str], None] | None = None,
) -> tuple[int, str]:
    """Return status and body of the answer; retry if there is no answer or the proxy is busy.

    `heed` is called with each refusal; the body is built again for each try.
    """
    url, headers = _proxy()
    if body is not None:
        headers["Content-Type"] = "application/json"
    said = ""
    for attempt in range(TRIES):
        if attempt:
            _say(f"lease proxy: {said}; trying again")
            _pause(PAUSE_SECONDS)
        data = b"" if body is None else body()
        request = urllib.request.Request(f"{url}{path}", data, headers, method="POST")
        try:
            with OPENER.open(request, timeout=seconds_max) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as refused:
            said = f"{refused.code} {refused.read().decode(errors='replace').strip()}"
            if heed is not None:
                heed(said)
            if refused.code not in BUSY:
                return refused.code, said
        except (OSError, http.client.HTTPException) as error:
            said = str(error)
    raise FailedError(f"no answer from the lease proxy: {said}")


def _pause(seconds: float) -> None:
    """Wait. Raises FailedError: the calling shell has ended."""
    left = seconds
    while left > 0:
        if os.getppid() not in CALLER and os.getpid() not in CALLER:
            raise FailedError("the calling shell has gone")
        threading.Event().wait(min(left, 1.0))
        left -= 1.0


def _seconds(text: str) -> float:
    found = re.fullmatch(r"([0-9]+(?:[.][0-9]+)?)([smhd]?)", text)
    if found is None:
        raise FailedError(f"invalid time interval: {text}")
    return float(found[1]) * UNITS[found[2]]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
