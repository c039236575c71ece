"""The errors of leases, besides those of the transport."""

from __future__ import annotations

from moorage.client.run.lease.acquire import NotGrantedError
from moorage.client.transport import MoorageError


class ConfigurationError(MoorageError, ValueError):
    """No server is set, or its address or token is not valid; the message says what to change."""


class NotInTimeError(NotGrantedError):
    """The lease was not granted within `wait`.

    The ticket was withdrawn, or, with a key of the caller, keeps its place for a while.
    """

    def __init__(self, message: str) -> None:
        super().__init__("timed_out", message)


class WithdrawnError(NotGrantedError):
    """The owner has withdrawn the ticket while it waited, with `moorage lease release` or so.

    Do not ask again: somebody has decided that this is not to start.
    """

    def __init__(self, message: str) -> None:
        super().__init__("withdrawn", message)


class RevokedError(NotGrantedError):
    """An operator has removed the ticket from the line; the message says why."""

    def __init__(self, message: str) -> None:
        super().__init__("revoked", message)


class SupersededError(NotGrantedError):
    """A newer request of the same group waits or runs instead; the message names it.

    Do not ask again: that would be the newest request, and end the other one.
    """

    def __init__(self, message: str) -> None:
        super().__init__("superseded", message)


class AskedToStopError(MoorageError):
    """A newer request of the group asks the holder of a valid lease to stop and to release it."""

    def __init__(self, lease_id: str, reason: str) -> None:
        super().__init__(f"lease {lease_id}: {reason}")
        self.lease_id = lease_id
        self.reason = reason


class LeaseLostError(MoorageError):
    """The lease ended before it was released, or may have: others may have its units now.

    The end of its hold is not a loss.
    """

    def __init__(self, lease_id: str, reason: str) -> None:
        super().__init__(f"lease {lease_id} is lost: {reason}")
        self.lease_id = lease_id
        self.reason = reason


class TooManyLeasesError(MoorageError):
    """An `AsyncClient` waits for and holds `leases_max` leases already."""
