"""Exit codes, and errors as JSON for commands with `--json`."""

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
"""The meaning of exit codes, for programs."""


def failure_json(exit_code: int, message: str, code: str | None = None) -> str:
    """Return the error as a JSON object on one line, for standard error.

    Args:
        exit_code: of the command.
        message: for people.
        code: for programs, stable: that of the server's refusal; by default that of the exit code.
    """
    reported = code or CODES.get(exit_code, CODES[FAILED])
    return json.dumps({"error": {"code": reported, "message": message, "exit_code": exit_code}})
