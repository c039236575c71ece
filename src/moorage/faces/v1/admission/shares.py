"""The wire form of fair shares, and of what each sharer has."""

from moorage.core.admission.sharing.fair_share import Share
from moorage.core.clock import SECOND
from moorage.core.pool_values import FairShare
from moorage.wire import admission as wire


def share_shown(share: Share) -> wire.Share:
    """Convert a share to its wire form."""
    return wire.Share(
        name=share.name,
        weight=share.weight,
        used=share.used,
        waiting=share.waiting,
        debt=share.debt / 1_000,
    )


def fair_share_shown(share: FairShare) -> wire.FairShare:
    """Convert the settings of a fair share to their wire form."""
    return wire.FairShare(
        by=share.by,
        half_life=share.half_life / SECOND,
        weights=share.weights,
        default=share.default,
    )
