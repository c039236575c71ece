"""Who takes what nobody waits for, now or not at all: it never stands in a line.

Janitors ask Boskos so, without a request id, and whoever asks for resources by their names. `admit`
serves them last, by the rules of the line, without reading more of the line than it needs anyway.
"""

from msgspec import Struct

from moorage.core.admission.model import Lease


class AtOnce(Struct, frozen=True):
    """Tickets for one slot each: all of them are granted in this batch, or none is kept."""

    tickets: tuple[Lease, ...]
    names: tuple[str, ...] = ()
    """Of the slots, one for each ticket; none: one ticket, for whichever has rested longest."""
