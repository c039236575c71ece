"""Requests that are granted at once or not at all: they never wait in a line.

Boskos' janitors use them (without a request id), and requests for resources by name. `admit` serves
them last, by the rules of the line, without reading more of the line than it needs anyway.
"""

from msgspec import Struct

from moorage.core.admission.model import Lease


class Immediate(Struct, frozen=True):
    """Tickets for one slot each: either all are granted in this batch, or all are dropped."""

    tickets: tuple[Lease, ...]
    names: tuple[str, ...] = ()
    """Slot names, one per ticket; empty: one ticket, for the slot that has been free longest."""
