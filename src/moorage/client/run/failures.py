"""How a command that was asked for JSON says why it has failed."""

from __future__ import annotations

import json

FAILED = 1
USAGE = 2
NOT_GRANTED = 3
CONFLICT = 4
UNREACHABLE = 5

CODES = {
    FAILED: "failed",
    USAGE: "usage",
    NOT_GRANTED: "not_granted",
    CONFLICT: "conflict",
    UNREACHABLE: "unreachable",
}
"""What exit codes mean, for programs."""


def failure_json(exit_code: int, message: str, code: str | None = None) -> str:
    """Return the object that standard error gets, in one line.

    Args:
        exit_code: of the command.
        message: for people.
        code: stable, for programs: that of a server's refusal; by default what the exit code means.
    """
    told = code or CODES.get(exit_code, CODES[FAILED])
    return json.dumps({"error": {"code": told, "message": message, "exit_code": exit_code}})
