"""Fair share: a pool's line in the order of what each sharer has used, instead of arrival.

**The rule.** Each ticket gets a tag when it is made, and keeps it: its `place` in the line. So the
stored order of a line never changes, and pages of it stay valid. A tag is the pool's virtual time,
`Sharing.now`, plus the *debt* of the ticket's sharer: what it has asked for and used beyond that
time, in unit-milliseconds per weight. A ticket costs its units times their usual duration, divided
by the weight. When it is withdrawn, the cost is returned; when its lease ends, the cost is
corrected by what it has really used. The debt of a sharer without waiting tickets decays by the
half-life. So who has used less lately goes first, and shares are as the weights where all wait.

**The bound.** Each grant raises the virtual time by the cost of what is granted, divided by the
weights of all sharers; it never falls. A later ticket goes before an earlier one of its priority
only if its tag is smaller, so only if it was made before the virtual time reached the earlier tag.
Until then, at most (tag - time at which it was made) x (sum of weights) unit-milliseconds are
granted; after that, only the tickets that are already in the line can go before it. This holds for
any number of sharers that come and go: those that are remembered are bounded, and so is the sum of
their weights.

**Units of unknown sharers.** At most `SHARERS_MAX` sharers are remembered. The units of a forgotten
one are counted in `Sharing.others`, as are those that were occupied before the fair share began.
The units of all sharers and these are all occupied units. So a sharer has at least what is counted
for it, and at most these units besides.

**The range of tags.** The virtual time rises by at most a million steps a millisecond, apart from
wrong estimates: `scale` sees to that. So it needs 36 years to `TAG_MAX`, in a line that is never
empty. Whenever the line is empty, no ticket has a tag, and all tags begin again at 0. At `TAG_MAX`
all tickets have the same tag, so the order of arrival decides.

Source: start-time fair queueing (Goyal, Vin, Cheng 1996), with the virtual time of weighted fair
queueing (Demers, Keshav, Shenker 1989). docs/decisions/0068-fair-share-and-cohorts.md.
"""

from collections.abc import Iterable
from hashlib import blake2b

from msgspec import Struct, structs

from moorage.core.admission.model import (
    Lease,
    Pool,
    PoolSpec,
)
from moorage.core.admission.owners import project_of
from moorage.core.admission.requests import check_duration
from moorage.core.clock import SECOND, Instant
from moorage.core.counting import counted
from moorage.core.errors import Code, Error
from moorage.core.limits import (
    DURATION_SECONDS_MAX,
    LABEL_NAME_LENGTH_MAX,
    SHARER_BYTES_MAX,
    SHARERS_MAX,
    WEIGHT_MAX,
)
from moorage.core.pool_values import FairShare, Sharer, Sharing
from moorage.core.texts import check_plain
from moorage.core.wildcards import BELOW

OWNER = "owner"
PROJECT = "project"
LABEL = "label:"
"""The prefix of a `FairShare.by` that names a label."""

TAG_MAX = 1 << 60
"""Tags stay below this, see above. Beyond it, arrival decides."""

REBASED = 1 << 50
"""The virtual time from which on tags begin again at 0, once the line is empty."""

STEPS = 1_000_000
"""Units of a pool whose use for one millisecond is one step of a tag each; of a larger pool, more
units are one step."""

OTHERS = "*"
"""The name under which `shares_of` has the units of unknown sharers; no sharer has it."""

_DIGEST_BYTES = 8

MILLISECOND = 1_000

CHARGE_MAX = DURATION_SECONDS_MAX * 1_000
"""The most that one unit costs."""

UNKNOWN = 60_000
"""What a unit costs if nothing is known: no lease has ended, and there is neither hold nor TTL."""

SLOWNESS = 8
"""The usual duration moves by 1/`SLOWNESS` towards that of each lease that ends."""

FORGOTTEN = 10
"""Half-lives after which a sharer with nothing but a debt is forgotten: a thousandth of it."""


class Share(Struct, frozen=True):
    """What a sharer has of a pool."""

    name: str
    weight: int
    used: int
    """Units that its leases occupy."""
    waiting: int
    """Its tickets in the line."""
    debt: int
    """Milliseconds of one unit that its next ticket is behind one of a sharer without debt."""


def sharer_of(share: FairShare, lease: Lease) -> str:
    """Return the name of a lease's sharer; empty: it has none of the label.

    A project is written `PROJECT/*`. An owner that belongs to no project is a sharer by itself.
    """
    if share.by.startswith(LABEL):
        return _bounded(lease.labels.get(share.by.removeprefix(LABEL), ""))
    project = project_of(lease.owner) if share.by == PROJECT else None
    return _bounded(lease.owner if project is None else f"{project}{BELOW}")


def _bounded(name: str) -> str:
    """Return the name of a sharer with a bounded size: a long one is cut, and ends with a digest.

    All of them are in the row of their pool, which every grant writes. A label may be as `OTHERS`.
    """
    data = name.encode("utf-8", "surrogatepass")
    if len(data) <= SHARER_BYTES_MAX and name != OTHERS:
        return name
    digest = blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()
    cut = data[: SHARER_BYTES_MAX - len(digest) - 1].decode("utf-8", "ignore")
    return f"{cut}~{digest}"


def weight_of(share: FairShare, name: str) -> int:
    """Return the weight of a sharer."""
    return share.weights.get(name, share.default)


def has_tags(pool: Pool) -> bool:
    """Do new tickets of a pool get tags? Without a fair share, only while others have some."""
    return pool.spec.fair_share is not None or pool.sharing is not None


def check_alone(pools: Iterable[Pool]) -> None:
    """Raise INVALID if a request for several pools names one with a fair share.

    All lines of a ticket need one order, or two could wait for each other for ever; so do those of
    its alternatives. But tags of different pools cannot be compared, and plain tickets could
    overtake a tag for ever.
    """
    named = [pool.name for pool in pools if has_tags(pool)]
    if named:
        raise Error(
            Code.INVALID,
            f"Pool '{named[0]}' has a fair share, so a request for its units can name no other"
            " pool.",
        )


def tagged(pool: Pool, ticket: Lease, at: Instant, kept: int | None = None) -> Lease:
    """Return a ticket with the tag that it gets now, and what each of its units costs.

    `kept` is the tag of the ticket or lease whose place it takes; None: it takes none.
    """
    sharing = pool.sharing or Sharing()
    share = pool.spec.fair_share
    if share is None:
        place = sharing.last if kept is None else min(kept, sharing.last)
        return structs.replace(ticket, place=place, charge=0)
    name = sharer_of(share, ticket)
    place = sharing.now + debt_of(sharing, share, name, at) if kept is None else kept
    if kept is not None:  # its tag may be older than the fair share, which began again since
        place = min(kept, sharing.last)
    charge = _expected(sharing, ticket) // (weight_of(share, name) * sharing.scale)
    return structs.replace(ticket, place=min(TAG_MAX, place), charge=max(1, charge))


def debt_of(sharing: Sharing, share: FairShare, name: str, at: Instant) -> int:
    """Return how far the tag of a sharer's next ticket is above the virtual time."""
    known = sharing.sharers.get(name)
    if known is None or known.finish <= sharing.now:
        return 0
    debt = known.finish - sharing.now
    if known.waiting:  # its next ticket comes after those that wait
        return debt
    return int(debt * 0.5 ** ((at - known.at) / share.half_life))


def waits(pool: Pool, ticket: Lease, units: int, at: Instant) -> Sharing | None:
    """Return a pool's sharing after a ticket has joined its line; the pool is as before that."""
    sharing, share = pool.sharing, pool.spec.fair_share
    if share is None:
        return sharing
    sharing = sharing or begun(pool.spec, pool.occupied)
    name = sharer_of(share, ticket)
    known = _now(sharing, share, name, at)
    known = structs.replace(known, finish=known.finish + _cost(ticket, units))
    sharing = structs.replace(sharing, last=max(sharing.last, ticket.place))
    return _with(sharing, share, name, structs.replace(known, waiting=known.waiting + 1), at)


def leaves(
    pool: Pool, ticket: Lease, units: int, at: Instant, granted: int | None
) -> Sharing | None:
    """Return a pool's sharing after a ticket has left its line; the pool is as before that.

    `units` are those for which it waited, the least of its alternatives. `granted`: these are
    occupied from now on, and the virtual time rises; None: its cost is returned to its sharer.
    """
    sharing, share = pool.sharing, pool.spec.fair_share
    if share is None or sharing is None:
        return sharing if pool.waiting > 1 else None
    name = sharer_of(share, ticket)
    known = _now(sharing, share, name, at)
    known = structs.replace(known, waiting=max(0, known.waiting - 1))
    finish = known.finish + _cost(ticket, (granted or 0) - units)
    known = structs.replace(known, finish=finish, held=known.held + (granted or 0))
    sharing = _with(sharing, share, name, known, at)
    if granted is None:
        return _rebased(pool, sharing)
    # Those whose debt has decayed to nothing do not make the virtual time slower.
    present = {
        one: known
        for one, known in sharing.sharers.items()
        if one == name or _counts(sharing, share, known, at)
    }
    total = sum(weight_of(share, one) for one in present)
    rise = -(-_cost(ticket, granted) * weight_of(share, name) // total)
    risen = structs.replace(sharing, now=min(TAG_MAX, sharing.now + rise), sharers=present)
    return _rebased(pool, risen)


def returns(pool: Pool, lease: Lease, units: int, at: Instant, *, used: bool) -> Sharing | None:
    """Return a pool's sharing after a lease has returned units, which corrects their cost.

    Not `used`: nobody has learned of its grant, so they cost nothing.
    """
    sharing, share = pool.sharing, pool.spec.fair_share
    if share is None or sharing is None:
        return sharing
    name = sharer_of(share, lease)
    known = _now(sharing, share, name, at)
    lasted = 0
    if used and lease.granted_at is not None:
        lasted = max(0, at - lease.granted_at) // MILLISECOND
        sharing = structs.replace(sharing, usual=_moved(sharing.usual, lasted))
    cost = min(CHARGE_MAX, lasted) // (weight_of(share, name) * sharing.scale) * units
    finish = known.finish + cost - _cost(lease, units)
    mine = min(known.held, units)
    sharing = structs.replace(sharing, others=max(0, sharing.others - (units - mine)))
    known = structs.replace(known, finish=finish, held=known.held - mine)
    return _with(sharing, share, name, known, at)


def continues(pool: Pool, old: Lease, new: Lease, units: int, at: Instant) -> Sharing | None:
    """Return a pool's sharing after a new lease has taken over the units of an old one."""
    ended = structs.replace(pool, sharing=returns(pool, old, units, at, used=True))
    joined = structs.replace(ended, sharing=waits(ended, new, units, at))
    return leaves(structs.replace(joined, waiting=joined.waiting + 1), new, units, at, units)


def changed(before: Pool, share: FairShare | None) -> Sharing | None:
    """Return a pool's sharing after a change of its fair share.

    Without it, tickets go behind those that have tags already, until none of them waits. If the
    sharers are other ones, all begin without debt.
    """
    sharing, was = before.sharing, before.spec.fair_share
    if share is None:
        if sharing is None or not before.waiting:
            return None
        return structs.replace(sharing, sharers={}, others=0)
    if sharing is None:
        return begun(before.spec, before.occupied)
    if was is not None and was.by == share.by:
        return sharing
    return structs.replace(sharing, sharers={}, others=before.occupied)


def begun(spec: PoolSpec, occupied: int) -> Sharing:
    """Return the state of a fair share that begins now; `occupied`: units that are so already."""
    return Sharing(others=occupied, scale=max(1, -(-(spec.limit or 0) // STEPS)))


def shares_of(pool: Pool, at: Instant) -> list[Share]:
    """Return what each sharer has of a pool: those with most units first."""
    share, sharing = pool.spec.fair_share, pool.sharing
    if share is None or sharing is None:
        return []
    found = [
        _share(sharing, share, name, at)
        for name, one in sharing.sharers.items()
        if _counts(sharing, share, one, at)
    ]
    if sharing.others:
        found.append(Share(OTHERS, share.default, sharing.others, 0, 0))
    return sorted(found, key=lambda one: (-one.used, -one.waiting, one.name))


def share_of(pool: Pool, lease: Lease, at: Instant) -> Share | None:
    """Return what the sharer of a lease has of a pool; None: the pool has no fair share."""
    share = pool.spec.fair_share
    if share is None:
        return None
    return _share(pool.sharing or Sharing(), share, sharer_of(share, lease), at)


def check_share(share: FairShare) -> None:
    """Raise INVALID if a fair share is not valid."""
    label = share.by.removeprefix(LABEL)
    named = share.by.startswith(LABEL) and 1 <= len(label) <= LABEL_NAME_LENGTH_MAX
    if share.by not in (OWNER, PROJECT) and not named:
        raise Error(
            Code.INVALID, "fair_share: by must be 'owner', 'project' or 'label:' and a name."
        )
    check_plain("fair_share.by", share.by)
    check_duration("fair_share.half_life", share.half_life, SECOND)
    if len(share.weights) > SHARERS_MAX:
        raise Error(Code.INVALID, f"fair_share may have at most {counted(SHARERS_MAX, 'weight')}.")
    for name, weight in [("default", share.default), *share.weights.items()]:
        if name == OTHERS:
            raise Error(
                Code.INVALID,
                f"fair_share: no sharer is named '{OTHERS}'. The weight of all without one of their"
                " own is `default`.",
            )
        if _bounded(name) != name:
            raise Error(
                Code.INVALID,
                f"fair_share: the name '{name[:40]}...' of a weight has more than"
                f" {SHARER_BYTES_MAX} bytes in UTF-8. Use the short name that the pool shows for"
                f" this sharer: '{_bounded(name)}'.",
            )
        check_plain("The name of a sharer", name)
        if not 1 <= weight <= WEIGHT_MAX:
            raise Error(
                Code.INVALID, f"fair_share: the weight of '{name}' must be from 1 to {WEIGHT_MAX}."
            )


def _share(sharing: Sharing, share: FairShare, name: str, at: Instant) -> Share:
    known = sharing.sharers.get(name) or Sharer(0, at)
    debt = debt_of(sharing, share, name, at)
    return Share(name, weight_of(share, name), known.held, known.waiting, debt)


def _expected(sharing: Sharing, ticket: Lease) -> int:
    """Return how long a lease is expected to last (milliseconds)."""
    hold = None if ticket.hold is None else ticket.hold // MILLISECOND
    if sharing.usual:
        found = sharing.usual if hold is None else min(hold, sharing.usual)
    elif hold is None:
        found = UNKNOWN if ticket.ttl is None else ticket.ttl // MILLISECOND
    else:
        found = hold
    return min(CHARGE_MAX, found)


def _cost(lease: Lease, units: int) -> int:
    return lease.charge * units


def _moved(usual: int, lasted: int) -> int:
    """Return the moving average after a lease of this length; it is never 0 again."""
    return max(1, lasted if usual == 0 else usual + (lasted - usual) // SLOWNESS)


def _now(sharing: Sharing, share: FairShare, name: str, at: Instant) -> Sharer:
    """Return a sharer whose debt has decayed up to now; an unused share is not saved."""
    known = sharing.sharers.get(name) or Sharer(0, at)
    finish = sharing.now + debt_of(sharing, share, name, at)
    return structs.replace(known, finish=finish, at=at)


def _with(sharing: Sharing, share: FairShare, name: str, known: Sharer, at: Instant) -> Sharing:
    """Return a sharing with a changed sharer; the smallest debt is forgotten if there are many."""
    known = structs.replace(known, finish=min(TAG_MAX, known.finish))
    sharers = {**sharing.sharers, name: known}
    if not _counts(sharing, share, known, at):
        del sharers[name]
    forgotten = 0
    if len(sharers) > SHARERS_MAX:
        # A debt of 0 is the same as none.
        others = (other for other in sharers if other != name)
        least = min(others, key=lambda one: _worth(sharing, share, sharers[one], at))
        forgotten = sharers.pop(least).held
    return structs.replace(sharing, sharers=sharers, others=sharing.others + forgotten)


def _rebased(pool: Pool, sharing: Sharing) -> Sharing:
    """Let tags begin at 0 again if the last ticket leaves; the pool is as before that.

    A lease that is asked for again later gets the largest tag at most, if it keeps its own.
    """
    if pool.waiting > 1 or sharing.now < REBASED:
        return sharing
    sharers = {
        name: structs.replace(one, finish=max(0, one.finish - sharing.now))
        for name, one in sharing.sharers.items()
    }
    return structs.replace(sharing, now=0, last=0, sharers=sharers)


def _counts(sharing: Sharing, share: FairShare, one: Sharer, at: Instant) -> bool:
    if one.waiting or one.held:
        return True
    return one.finish > sharing.now and at - one.at < FORGOTTEN * share.half_life


def _worth(sharing: Sharing, share: FairShare, one: Sharer, at: Instant) -> tuple[bool, float]:
    debt = max(0, one.finish - sharing.now)
    if not one.waiting:
        debt = int(debt * 0.5 ** ((at - one.at) / share.half_life))
    return bool(one.waiting or one.held), debt
