"""Whether clients read the answers that tell them of a grant.

A handler names the grants of its answer; before this is sent, the connection is asked to watch it.
"""

from collections.abc import Callable

from msgspec import Struct

from moorage.core.ids import LeaseId
from moorage.service.admission.confirmations import Confirmations, Told

CONFIRMS = "moorage-confirms"
"""The header of a request whose client confirms a grant itself, by a renewal: a proxy between them
may have read the answer instead of it. Older servers ignore it."""


class Delivery(Struct):
    """The answer to one request."""

    watch: Callable[[Told], None] | None
    """What `DELIVERY` is in the scope of the request; None: nothing shows what is read."""
    confirmations: Confirmations
    sole: bool = False
    confirms: bool = False
    """These two are those of `Confirmations.expect`."""
    told: list[Told] = []
    """To be called with what becomes of the answer."""

    def tells_of(self, lease: LeaseId) -> None:
        """Note that the answer tells the holder of a grant that it has it."""
        told = self.confirmations.expect(lease, sole=self.sole, confirms=self.confirms)
        if self.watch is None:  # there is no connection that could be lost
            told(True)
        else:
            self.told.append(told)

    def sends(self) -> None:
        """Watch the answer. Call it just before that is sent."""
        if self.told and self.watch is not None:
            self.watch(self._known)

    def fails(self) -> None:
        """Note that the answer is not sent, but another one."""
        self._known(False)

    def _known(self, read: bool | None) -> None:
        told, self.told = self.told, []
        for one in told:
            one(read)
