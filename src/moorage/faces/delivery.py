"""Whether clients read the answers that tell them of a grant.

A handler names the grants of its answer; before this is sent, the connection is asked to watch it.
"""

from moorage.core.ids import LeaseId
from moorage.faces.web import DELIVERY, Scope
from moorage.service.admission.confirmations import Confirmations, Told

CONFIRMS = "moorage-confirms"
"""The header of a request whose client confirms a grant itself, by a renewal: a proxy between them
may have read the answer instead of it. Older servers ignore it."""


class Delivery:
    """The answer to one request."""

    def __init__(
        self,
        scope: Scope,
        confirmations: Confirmations,
        *,
        sole: bool = False,
        confirms: bool = False,
    ) -> None:
        """Create it; `sole` and `confirms` are those of `Confirmations.expect`."""
        self._watch = scope.get(DELIVERY)
        self._confirmations = confirmations
        self._sole = sole
        self._confirms = confirms
        self._told: list[Told] = []

    @property
    def is_watched(self) -> bool:
        """Will it be known whether the answer was read?"""
        return self._watch is not None

    def tells_of(self, lease: LeaseId) -> None:
        """Note that the answer tells the holder of a grant that it has it."""
        told = self._confirmations.expect(lease, sole=self._sole, confirms=self._confirms)
        if self._watch is None:  # there is no connection that could be lost
            told(True)
        else:
            self._told.append(told)

    def sends(self) -> None:
        """Watch the answer. Call it just before that is sent."""
        if self._told and self._watch is not None:
            self._watch(self._known)

    def fails(self) -> None:
        """Note that the answer is not sent, but another one."""
        self._known(False)

    def _known(self, read: bool | None) -> None:
        told, self._told = self._told, []
        for one in told:
            one(read)
