"""Records what operations receive and answer, with values that do not change from run to run.

A value that the server draws, such as an id or a time, is replaced: ids by numbers in the order in
which they appear, times by multiples of five minutes since the first token was made, secrets by one
that is none.
"""

import re
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

from moorage.faces.v1.openapi import REFUSAL
from moorage.wire.operations import operations_by_id
from tests.e2e.support.carried import eventually
from tests.faces.v1.native import Native, Response

BEGIN = datetime(2026, 11, 21, 1, 45, tzinfo=UTC)
"""What the time of the first answer becomes."""

FOLDER = "/var/backups/moorage"
UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b")
TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")
SECRET = re.compile(r"moorage_[\w-]+")
SHORT = re.compile(r"[0-9a-f]{12}")
"""The id of a token."""
CURSOR = re.compile(r"\b\d{16}\.[0-9a-f]{12}\b")
EPOCH = 1_795_225_500
"""The seconds of `BEGIN`: epochs are larger, and nothing else is."""
STEP = timedelta(minutes=5)
"""Far longer than a recording takes, on a busy machine as well."""


class Recorder:
    """Calls operations of a server; `found` has the first call of each, by the operation's id."""

    def __init__(self, native: Native) -> None:
        self.native = native
        self.found: dict[str, dict[str, Any]] = {}

    def call(
        self, name: str, *variables: str, body: Any = None, caller: str | None = None, **query: Any
    ) -> Any:
        """Call an operation, which must succeed; return its answer.

        Args:
            name: the id of the operation.
            variables: the values of the variables in its path, in their order.
            body: as JSON; None: there is none.
            caller: the token of the caller; None: that of the administrator.
            query: parameters by name.
        """
        operation = operations_by_id()[name]
        answer = self._asked(name, operation.address(*variables, query=query), body, caller)
        assert answer.status < 300, (name, answer)
        if name not in self.found:
            self.found[name] = {
                "path": operation.named(variables),
                "query": query,
                "body": body,
                "status": answer.status,
                "answer": answer.body or None,
            }
        return answer.body

    def refused(self, name: str, *variables: str) -> None:
        """Call an operation that must be refused, and keep the answer as the example of those."""
        address = operations_by_id()[name].address(*variables)
        answer = self._asked(name, address, None)
        assert answer.status >= 400, (name, answer)
        self.found[REFUSAL] = {"status": answer.status, "answer": answer.body}

    def _asked(self, name: str, address: str, body: Any, by: str | None = None) -> Response:
        """Call an operation; a process that has just started may answer 503 at first."""
        method = operations_by_id()[name].method

        def answered() -> Response | None:
            answer = self.native.ask(method, address, body, token=by)
            return None if answer.status == HTTPStatus.SERVICE_UNAVAILABLE else answer

        return eventually(answered)


def steadied(found: dict[str, Any], folder: str, chosen: str) -> dict[str, Any]:
    """Return what was recorded, without what differs from run to run.

    Args:
        found: the calls by id, in the order in which they were made.
        folder: where the server has written.
        chosen: a text with all ids and times that the caller has chosen: they stay as they are.
    """
    ids: dict[str, str] = {}
    began = datetime.fromisoformat(found["create_token"]["answer"]["created_at"])

    def one_id(match: re.Match[str]) -> str:
        if match[0] in chosen:
            return match[0]
        return ids.setdefault(match[0], f"01a22148-0000-7000-8000-{len(ids) + 1:012x}")

    def one_time(match: re.Match[str]) -> str:
        if match[0] in chosen:
            return match[0]
        steps = round((datetime.fromisoformat(match[0]) - began) / STEP)
        return (BEGIN + steps * STEP).strftime("%Y-%m-%dT%H:%M:%SZ")

    def changed(value: Any) -> Any:
        if isinstance(value, dict):
            return {changed(name): changed(one) for name, one in value.items()}
        if isinstance(value, list):
            return [changed(one) for one in value]
        if isinstance(value, float):
            return round(value, -1)
        if isinstance(value, int) and value > EPOCH:
            return EPOCH
        if isinstance(value, str):
            if SHORT.fullmatch(value):
                return ids.setdefault(value, f"{len(ids) + 1:012x}")
            value = CURSOR.sub(f"{EPOCH}000000.0123456789ab", value)
            value = SECRET.sub("moorage_0123456789abcdef", value.replace(folder, FOLDER))
            return TIME.sub(one_time, UUID.sub(one_id, value))
        return value

    steady: dict[str, Any] = changed(found)
    return steady
