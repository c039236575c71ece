"""How long a server keeps a place in line while its client is silent."""

PATIENCE_SECONDS = 30.0
"""What a request asks for if its client says nothing."""

PATIENCE_SECONDS_MAX = 3600.0
"""The server's limit."""


def patience_for(silence: float) -> float:
    """Return how long the server must keep the place of a client that tries for `silence`."""
    return min(silence + PATIENCE_SECONDS, PATIENCE_SECONDS_MAX)
