"""Handles a content-length that is not a number: the request is answered as if it had no body."""

import re

CONTENT_LENGTH = b"content-length"

_LETTERS = re.compile(rb"[A-Za-z]+(?: [A-Za-z]+)*")


def head_without_length(head: bytes) -> tuple[bytes, bytes] | None:
    """Remove a content-length that consists only of letters from a request's head.

    Args:
        head: bytes received since the beginning of the request.

    Returns:
        The head without that line, and the line's value; None if the head is incomplete, if there
        is not exactly one such header, or if other headers affect the length.
    """
    whole, end, _ = head.partition(b"\r\n\r\n")
    if not end:
        return None
    kept, values = [], []
    for line in whole.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == CONTENT_LENGTH:
            values.append(value.strip(b" \t"))
        elif CONTENT_LENGTH in line.lower() or name.strip().lower() in (
            b"transfer-encoding",
            b"upgrade",
        ):
            return None
        else:
            kept.append(line)
    if len(values) != 1 or _LETTERS.fullmatch(values[0]) is None:
        return None
    return b"\r\n".join(kept) + b"\r\n\r\n", values[0]
