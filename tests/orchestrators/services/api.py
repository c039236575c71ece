"""Sends requests to the API of an orchestrator."""

import json
from http import HTTPStatus
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

ANSWER_SECONDS = 60.0
TRIES = 5


def answer(url: str, body: object = None, method: str | None = None) -> Any:
    """Send a request, with JSON if there is a body; return what is in the answer.

    It is repeated, as by the clients of the orchestrators, while the server says that it is busy:
    on SQLite it has one writer.
    """
    request = Request(
        url,
        None if body is None else json.dumps(body).encode(),
        {"Content-Type": "application/json"},
        method=method,
    )
    for left in reversed(range(TRIES)):
        try:
            with urlopen(request, timeout=ANSWER_SECONDS) as answered:
                return json.loads(answered.read())
        except HTTPError as error:
            with error:
                if error.code != HTTPStatus.SERVICE_UNAVAILABLE or left == 0:
                    raise AssertionError(f"{url}: {error} {error.read().decode()}") from error
    raise AssertionError("there is no try")
