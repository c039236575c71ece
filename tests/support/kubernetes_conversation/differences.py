"""How the double differs from a real API server, and why that stays."""

from tests.support.kubernetes_conversation.comparing import Known

KNOWN: tuple[Known, ...] = (
    Known(
        "an event of the other API",
        "*",
        "The server fills in what the older API has in addition; nobody reads it here.",
    ),
    Known(
        "an event seen by the other API",
        "*",
        "Events of both APIs are one resource; no program of ours uses both.",
    ),
)
