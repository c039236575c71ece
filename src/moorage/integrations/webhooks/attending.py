"""Waits in place of tickets that have no process, so that their turn can come.

The server grants nothing to a client that is gone. A ticket that names a hook asks this process to
be there in its place: it looks at the ticket every few seconds, which counts as waiting.
"""

import threading
from collections.abc import Callable
from contextlib import suppress

from moorage.client.admission import Admission
from moorage.client.run.lease.acquire import OVER
from moorage.client.transport import MoorageError, RefusedError, Transport
from moorage.integrations.webhooks.hooks import LABEL, Hook
from moorage.wire.admission import Lease

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
        hook: Hook,
        trouble: Callable[[], str | None],
        stopped: threading.Event,
        say: Callable[[str], None],
    ) -> None:
        """Prepare; `trouble` says why a grant could not be posted now: then nobody waits."""
        self._admission = Admission(transport)
        self._hook = hook
        self._trouble = trouble
        self._stopped = stopped
        self._say = lambda text: say(f"hook {hook.name}: {text}")
        self._refused: set[str] = set()

    def run(self) -> None:
        """Look at all tickets again and again."""
        while not self._stopped.wait(LOOK_SECONDS):
            if self._trouble() is None:
                with suppress(MoorageError):  # the follower of the feed reports it
                    self._look()

    def _look(self) -> None:
        asked = self._admission.leases(state="waiting", labels={LABEL: self._hook.name})
        for number, ticket in enumerate(asked):
            if number >= TICKETS_MAX or self._stopped.is_set() or self._trouble() is not None:
                return
            if self._hook.concerns(ticket) and ticket.id not in self._refused:
                self._attend(ticket)

    def _attend(self, ticket: Lease) -> None:
        """Be present for a ticket; a grant is confirmed at once, before it is posted."""
        try:
            seen = self._admission.lease(ticket.id, WAIT_SECONDS)
            if seen.state == "granted":
                self._admission.renew(ticket.id)
        except RefusedError as refusal:
            if not refusal.is_temporary and refusal.code not in OVER:
                if len(self._refused) < TICKETS_MAX:
                    self._refused.add(ticket.id)
                self._say(f"cannot wait in place of ticket {ticket.id}: {refusal}")
