"""A content-length that is no number: such a request is answered as one without a body."""

import re

CONTENT_LENGTH = b"content-length"

_LETTERS = re.compile(rb"[A-Za-z]+(?: [A-Za-z]+)*")


def head_without_length(head: bytes) -> tuple[bytes, bytes] | None:
    """Take the one content-length that is only letters out of a request's head.

    Args:
        head: bytes received since the beginning of the request.

    Returns:
        The head without that line, and the line's value; None when the head is incomplete, or
        when anything else about its length is unusual.
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
