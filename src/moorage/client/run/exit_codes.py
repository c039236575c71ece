"""Exit codes, and errors as JSON for commands with `--json`."""

from __future__ import annotations

import json

from moorage.client.transport import UNROUTED, RefusedError

FAILED = 1
USAGE = 2
NOT_GRANTED = 3
CONFLICT = 4
UNREACHABLE = 5
NOT_PERMITTED = 6
NOT_FOUND = 7
WITHDRAWN = 8
REVOKED = 9
ABANDONED = 10
SUPERSEDED = 11

CODES = {
    FAILED: "failed",
    USAGE: "usage",
    NOT_GRANTED: "not_granted",
    CONFLICT: "conflict",
    UNREACHABLE: "unreachable",
    NOT_PERMITTED: "not_permitted",
    NOT_FOUND: "not_found",
    WITHDRAWN: "withdrawn",
    REVOKED: "revoked",
    ABANDONED: "abandoned",
    SUPERSEDED: "superseded",
}
"""The meaning of exit codes, for programs."""

RUN_PREEMPTED = 116
RUN_SUPERSEDED = 117
RUN_LOST = 120
RUN_FAILED = 125
"""Of `moorage run`: wrong usage, or an internal failure. 126 and 127 are as in shells."""

RUN_BY_CAUSE = {
    "superseded": RUN_SUPERSEDED,
    "revoked": 118,
    "withdrawn": 119,
    "refused": 121,
    "nested": 121,
    "pool_unknown": 122,
    "unreachable": 123,
    "timed_out": 124,
}
"""Exit codes of `moorage run` by why there is no lease."""

BY_STATUS = {
    400: USAGE,
    401: NOT_PERMITTED,
    403: NOT_PERMITTED,
    404: NOT_FOUND,
    409: CONFLICT,
    422: USAGE,
}
"""Exit codes by the status of a refusal; any other status means FAILED."""


def exit_code_of(refusal: RefusedError) -> int:
    """Return the exit code for a refusal. An address that is no server's is no missing object."""
    if refusal.status == 404 and refusal.code in UNROUTED:
        return FAILED
    return BY_STATUS.get(refusal.status, FAILED)


def failure_json(exit_code: int, message: str, code: str | None = None) -> str:
    """Return the error as a JSON object on one line, for standard error.

    Args:
        exit_code: of the command.
        message: for people.
        code: for programs, stable: that of the server's refusal; by default that of the exit code.
    """
    reported = code or CODES.get(exit_code, CODES[FAILED])
    return json.dumps({"error": {"code": reported, "message": message, "exit_code": exit_code}})
