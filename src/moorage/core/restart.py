"""The one way to begin again: a decision needs something that was not loaded."""

from typing import Any


class Restart(Exception):
    """The decision cannot be made with what was loaded; nothing of it may be saved.

    The type of `needs` says what is missing: `TicketsNeeded` (more of a line), `LedgerNeeded` (rows
    of the ledger) or `CandidatesNeeded` (another search).
    """

    def __init__(self, needs: Any) -> None:
        super().__init__(f"more is needed: {needs}")
        self.needs = needs
