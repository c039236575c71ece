"""Named slots in the native API."""

from moorage.service.admission.slotted.slots import OwedView, SlotView
from moorage.service.native.encoding import time_of, time_or_none
from moorage.wire import slots as wire


def shown(view: SlotView, *, whole: bool = True) -> wire.Slot:
    """Convert a slot to its wire form; unless `whole`, of its lease only the owner is shown."""
    slot, lease = view.slot, view.lease if whole else None
    drain = slot.drain
    return wire.Slot(
        name=slot.name,
        state=view.state,
        raw_state=slot.state,
        labels=slot.labels,
        owner=slot.owner or None,
        lease=None if lease is None else lease.id,
        key=None if lease is None else lease.key,
        lease_labels={} if lease is None else lease.labels,
        since=time_of(view.since),
        drain=None
        if drain is None
        else wire.SlotDrain(goes=drain.goes, reason=drain.reason, since=time_of(drain.at)),
        late_releases=[late_shown(one) for one in view.owed] if whole else [],
    )


def late_shown(view: OwedView) -> wire.LateRelease:
    """Convert a release that counts as that of an earlier holder to its wire form."""
    return wire.LateRelease(
        pool=view.pool, slot=view.slot, leases=[*view.leases], until=time_or_none(view.until)
    )
