"""Whether the ledger is imported, as this process knows it.

What changes the ledger is decided by the stored mark (decision 0055); this is for what only reads.
"""

from moorage.core.ledger.model import Import


class ImportMark:
    """The import that is under way, by the last commit that this process knows."""

    def __init__(self) -> None:
        """Create it: nothing is imported."""
        self.shown: Import | None = None
        """The import; None: there is none."""
        self._doubted = False
        self._place = (0, 0)
        """(epoch, revision) as of which it is known."""

    @property
    def may_stand(self) -> bool:
        """Whether there may be an import, so that batches must read the mark."""
        return self._doubted or self.shown is not None

    def note(self, epoch: int, revision: int, found: Import | None) -> None:
        """Record what was read or committed at a revision; an older one is no news."""
        if (epoch, revision) >= self._place:
            self._place = epoch, revision
            self.shown = found
            self._doubted = False

    def doubt(self) -> None:
        """Let batches read the mark: another process has begun or ended an import."""
        self._doubted = True
