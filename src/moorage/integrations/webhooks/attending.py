"""Waits in place of tickets that have no process, so that their turn can come.

The server grants nothing to a client that is gone. A ticket that names a hook asks this process to
be there in its place: it looks at the ticket every few seconds, which counts as waiting.
"""

import threading
from collections.abc import Callable
from contextlib import suppress

from moorage.client.admission import Admission
from moorage.client.run.api_types import StrangeAnswerError
from moorage.client.run.lease.acquire import OVER
from moorage.client.run.lease.api import Leases
from moorage.client.transport import MoorageError, RefusedError, Transport
from moorage.integrations.webhooks.following import Following
from moorage.integrations.webhooks.hooks import LABEL

LOOK_SECONDS = 3.0
"""Between two looks at a ticket: a third of how long the server takes its client as present."""

WAIT_SECONDS = 0.001
"""What a look asks the server to wait: an operator's counts only if it waits."""

TICKETS_MAX = 1000
"""Tickets that are looked at, the oldest first; the others are passed over meanwhile."""


class Attending:
    """The tickets of one hook. `run` works in a thread until `stopped` is set."""

    def __init__(
        self,
        transport: Transport,
        following: Following,
        stopped: threading.Event,
        say: Callable[[str], None],
    ) -> None:
        """Prepare; `following` posts the grants, and knows which would be for nobody."""
        self._admission = Admission(transport)
        self._leases = Leases(transport)
        self._following = following
        self._hook = following.hook
        self._stopped = stopped
        self._tell = say
        self._not_ours: set[str] = set()

    def run(self) -> None:
        """Look at all tickets again and again."""
        while not self._stopped.wait(LOOK_SECONDS):
            with suppress(MoorageError, StrangeAnswerError):  # the follower of the feed reports it
                self._look()

    def _say(self, text: str) -> None:
        self._tell(f"hook {self._hook.name}: {text}")

    def _look(self) -> None:
        if self._following.is_failing:
            return
        asked = self._admission.leases(state="waiting", labels={LABEL: self._hook.name})
        for number, ticket in enumerate(asked):
            if number >= TICKETS_MAX or self._stopped.is_set() or self._following.is_failing:
                return
            known = ticket.id in self._not_ours or ticket.id in self._following.refused
            if self._hook.concerns(ticket) and not known:
                self._attend(ticket.id)

    def _attend(self, ticket: str) -> None:
        """Be present for a ticket; a grant is confirmed after it was posted, not by this."""
        try:
            self._leases.look(ticket, WAIT_SECONDS)
        except RefusedError as refusal:
            if not refusal.is_temporary and refusal.code not in OVER:
                if len(self._not_ours) < TICKETS_MAX:
                    self._not_ours.add(ticket)
                self._say(f"cannot wait in place of ticket {ticket}: {refusal}")
