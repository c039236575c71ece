"""What errors of connections say to people, in logs and in answers."""

from moorage.client.run.printing import printable


def told(error: BaseException) -> str:
    """Return the kind of an error and its message, on one line.

    Not its `repr`: that of aiohttp's errors about an answer has the headers of the request, and so
    its token.
    """
    text = printable(str(error))
    kind = type(error).__name__
    return f"{kind}: {text}" if text else kind
