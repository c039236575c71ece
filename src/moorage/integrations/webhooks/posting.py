"""Sends a post, and says what its answer means."""

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from http import HTTPStatus
from typing import NamedTuple

from moorage.client.transport import Transport, UnreachableError
from moorage.integrations.webhooks.hooks import Hook, Post

SECONDS_MAX = 10.0
"""How long to wait for an answer: receivers are asked to answer first and to work later.

First for the connection, then for all of the answer."""

ANSWER_BYTES_MAX = 64 << 10
RETRY_SECONDS_MAX = 300.0
"""The longest `Retry-After` that is obeyed."""

LATER = (
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.PROXY_AUTHENTICATION_REQUIRED,
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_EARLY,
)
"""Answers about our access to the receiver: all posts would get them."""

BUSY = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
"""Answers that say that the receiver is busy or away; but it may be this post that it fails at.
So does no answer, once there is a connection."""


class Verdict(Enum):
    """What an answer means."""

    TAKEN = "taken"
    REFUSED = "refused"
    """For good: another try would get the same answer."""
    FAILED = "failed"
    """This post may be what the receiver fails at."""
    BUSY = "busy"
    """Any other post may fail now, too, but perhaps it is only this one, again and again."""
    LATER = "later"
    """Another try may succeed, and any other post would fail now, too."""


class Answer(NamedTuple):
    """What became of a post. `retry_after` is in seconds; None: the receiver does not say."""

    verdict: Verdict
    text: str
    retry_after: float | None = None


def send(hook: Hook, post: Post) -> Answer:
    """Send a post once. A redirection is not followed: it would carry secrets elsewhere."""
    receiver = Transport(hook.server, None, ca_file=hook.ca_file, seconds_max=SECONDS_MAX)
    try:
        connection = receiver.connection()
    except UnreachableError as error:
        return Answer(Verdict.LATER, str(error))
    verdict = Verdict.LATER
    try:
        connection.connect()
        verdict = Verdict.BUSY  # it may be this post that is dropped, or takes too long
        with _broken_after(SECONDS_MAX, connection.sock):
            connection.request(hook.method, post.target, post.body, post.headers)
            response = connection.getresponse()
            with suppress(OSError, http.client.HTTPException):  # the status is the answer
                response.read(ANSWER_BYTES_MAX)
        return _judged(
            response.status, response.getheader("retry-after"), of_lease=hook.is_addressed
        )
    except (OSError, http.client.HTTPException) as error:
        # Never the text of an HTTPException: it may repeat what was sent.
        why = getattr(error, "strerror", None) or "it does not answer"
        return Answer(verdict, f"no answer from {hook.server}: {why}")
    finally:
        connection.close()


@contextmanager
def _broken_after(seconds: float, connected: socket.socket) -> Iterator[None]:
    """Break a connection after this time: a socket's own timeout begins again with each byte."""

    def end() -> None:
        with suppress(OSError):  # it is closed
            socket.socket.shutdown(connected, socket.SHUT_RDWR)  # without what TLS does besides

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _judged(status: int, retry_after: str | None, *, of_lease: bool = False) -> Answer:
    """Return what a status means; `of_lease`: the lease has chosen what the request is for."""
    text = f"the receiver answers {status}"
    if 200 <= status < 300:
        return Answer(Verdict.TAKEN, text)
    if of_lease and status == HTTPStatus.FORBIDDEN:
        return Answer(Verdict.FAILED, text)
    if status in LATER or status in BUSY:
        known = retry_after is not None and retry_after.isdecimal()
        seconds = min(float(retry_after or 0), RETRY_SECONDS_MAX) if known else None
        return Answer(Verdict.BUSY if status in BUSY else Verdict.LATER, text, seconds)
    return Answer(Verdict.REFUSED if status < 500 else Verdict.FAILED, text)
