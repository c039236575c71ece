"""What a word on the command line means: an exact name, a unique prefix of an id, or an id.

`_found` is the one rule for all kinds of things. The name of one is never completed where a command
changes something: it may be that of another one that is gone.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from moorage.cli.support.output import NOT_FOUND, USAGE, Failure, printable
from moorage.cli.support.tables import ELLIPSIS
from moorage.client.transport import RefusedError
from moorage.core.ids import PREFIX_LENGTH_MIN, is_normal, is_prefix, meant_by
from moorage.core.limits import FIND_LIMIT_MAX, FIND_TEXT_LENGTH_MAX, FIND_TEXT_LENGTH_MIN

if TYPE_CHECKING:
    from moorage.client.admission import Admission
    from moorage.client.bookings import Bookings
    from moorage.client.finding import Finder
    from moorage.client.fleet import Fleet
    from moorage.client.ledger import Ledger
    from moorage.client.reporting import Reporting
    from moorage.client.reshapes import Reshapes
    from moorage.wire.admission import Lease
    from moorage.wire.fleet import Agent
    from moorage.wire.providers import ConsumerShown, ProviderShown

R = TypeVar("R")

NAMED_MAX = 5
"""Candidates that are named where there are several."""

SEARCHED_MAX = 50_000
"""Leases and tickets that are searched for a holder."""

LIVE = ("granted", "waiting")

Candidate = tuple[str, str]
"""An id, and what people know it by."""

Look = Callable[[str], Iterable[Candidate]]
"""Finds those that a word may mean. The first look that finds any decides."""


class Kind(NamedTuple):
    """How things of one kind are found: those that are called so, then those whose ids begin so."""

    noun: str
    code: str
    """The code of a refusal, if there is none."""
    beginning: Sequence[Look]
    named: Sequence[Look] = ()
    called: str = "name"
    """What people call it by."""
    is_id: Callable[[str], bool] = is_normal
    """Is a text a whole id?"""
    is_beginning: Callable[[str], bool] = is_prefix
    """Is a text long enough for the beginning of an id?"""


def _found(kind: Kind, text: str, *, whole: bool = False) -> str:
    """Return the id of the only thing that is meant.

    With `whole`, for commands that end or release something, a prefix of an id is refused. A whole
    id is returned as it is, for the server to judge. Raises Failure: 2, several are meant, or the
    prefix is too short; 7, there is none.
    """
    wanted = text.lower()
    if kind.is_id(wanted):
        return wanted
    if "/" in text and not kind.named:
        raise Failure(NOT_FOUND, f"'{text}' is not a valid id")
    for look in kind.named:
        if found := [*islice(look(text), NAMED_MAX + 1)]:
            return _only(
                found, f"several {kind.noun}s have the {kind.called} '{text}'", "use the id"
            )
    if len(text) < PREFIX_LENGTH_MIN and is_prefix(wanted.ljust(PREFIX_LENGTH_MIN, "0")):
        message = f"'{text}' is too short: write at least {PREFIX_LENGTH_MIN} characters of the id"
        raise Failure(USAGE, message)
    for look in kind.beginning if kind.is_beginning(wanted) else ():
        if found := [*islice(look(wanted), NAMED_MAX + 1)]:
            only = _only(found, f"several ids begin with '{text}'", "write more characters")
            if whole:
                raise _unwhole(text, found[0])
            return only
    raise Failure(NOT_FOUND, _missing(kind, text), kind.code)


def _only(found: Sequence[Candidate], several: str, advice: str) -> str:
    """Return the only id of those found. Raises Failure: 2, there are several."""
    if len(found) == 1:
        return found[0][0]
    names = ", ".join(f"{one} ({whose})" for one, whose in found[:NAMED_MAX])
    more = ", and others" if len(found) > NAMED_MAX else ""
    raise Failure(USAGE, f"{several}: {names}{more}; {advice}", "ambiguous")


def _unwhole(text: str, found: Candidate) -> Failure:
    only, whose = found
    message = (
        f"'{text}' is only a prefix of an id, and this command takes no prefix: write the whole id,"
        f" {only} ({whose})"
    )
    return Failure(USAGE, message, "prefix")


def _missing(kind: Kind, text: str) -> str:
    if not kind.named:
        return (
            f"there is no {kind.noun} whose id begins with '{text}' (write at least"
            f" {PREFIX_LENGTH_MIN} characters)"
        )
    none = f"there is no {kind.noun} with the {kind.called} '{text}'"
    return f"{none}, and none whose id begins with it" if kind.is_beginning(text.lower()) else none


def lease_id(
    admission: "Admission", text: str, *, changing: bool = False, whole: bool = False
) -> str:
    """Return the id of the lease or ticket that is meant; see `_found`.

    Live ones go before ended ones. With `changing`, for commands that change it, ended ones count
    as well: the one that is meant may just have ended, and another must not be changed instead.
    They are called by their owner, or by their holder as lists show it.
    """

    def begin(*states: str) -> Look:
        return lambda prefix: (
            (one.id, _said(one)) for state in states for one in _with(admission, prefix, state)
        )

    def held(holder: str) -> Iterator[Candidate]:
        from moorage.cli.support.views.lease_text import needs_text  # deferred, as below

        live = chain.from_iterable(admission.leases(state=state) for state in LIVE)
        for one in islice(live, SEARCHED_MAX):
            if holder == one.owner or is_shown_as(one, holder, cut=not whole):
                yield one.id, needs_text(one)

    beginning = [begin(*LIVE, "ended")] if changing else [begin(*LIVE), begin("ended")]
    kind = Kind("lease", "lease_not_found", beginning, [held], "owner or holder")
    return _found(kind, text, whole=whole)


def is_shown_as(lease: "Lease", text: str, *, cut: bool = True) -> bool:
    """Return whether lists show the holder of a lease as this text.

    `cut`: also if it is the beginning that a narrow terminal has shown, with an ellipsis.
    """
    from moorage.wire.labels import holder_of

    holder = holder_of(lease.owner, lease.labels)
    if text in (holder, shown := printable(holder)):
        return True
    return cut and len(text) > 1 and text.endswith(ELLIPSIS) and shown.startswith(text[:-1])


def leases_with(admission: "Admission", prefix: str, *, also_ended: bool = False) -> "list[Lease]":
    """Return the live leases and tickets whose ids begin so; some if many.

    If there are none, or `also_ended`, it returns the ended ones, too.
    """
    found = [lease for state in LIVE for lease in _with(admission, prefix, state)]
    if also_ended or not found:
        found += _with(admission, prefix, "ended")
    return found


def _with(admission: "Admission", prefix: str, state: str) -> "list[Lease]":
    return admission.leases_page(state=state, id_prefix=prefix, limit=NAMED_MAX + 1).leases


def _said(lease: "Lease") -> str:
    from moorage.wire.labels import holder_of

    holder = holder_of(lease.owner, lease.labels)
    return f"{holder}, ended" if lease.state == "ended" else holder


def agent_id(fleet: "Fleet", text: str, *, whole: bool = False) -> str:
    """Return the id of the agent that is meant; see `_found`. Active ones go before former ones."""

    def named(state: str) -> Look:
        return lambda name: (
            (one.id, one.group)
            for one in fleet.agents(state=state)
            if one.facts is not None and _host(one) == name
        )

    def begin(state: str) -> Look:
        return lambda prefix: (
            (one.id, _host(one)) for one in fleet.agents(state=state, id_prefix=prefix)
        )

    states = ("active", "decommissioned")
    kind = Kind(
        "agent", "agent_not_found", [*map(begin, states)], [*map(named, states)], "host name"
    )
    return _found(kind, text, whole=whole)


def _host(agent: "Agent") -> str:
    return "-" if agent.facts is None else agent.facts.hostname


def token_id(tokens: Sequence[dict[str, str]], text: str, *, whole: bool = False) -> str:
    """Return the id of the token that is meant; see `_found`. Valid ones go before revoked ones."""

    def named(*, valid: bool) -> Look:
        return lambda name: (
            (one["id"], one["role"])
            for one in tokens
            if one["name"] == name and valid == (one["revoked_at"] is None)
        )

    def begin(prefix: str) -> Iterator[Candidate]:
        return ((one["id"], one["name"]) for one in tokens if one["id"].startswith(prefix))

    kind = Kind(
        "token",
        "token_not_found",
        [begin],
        [named(valid=True), named(valid=False)],
        is_id={one["id"] for one in tokens}.__contains__,
        is_beginning=lambda prefix: len(prefix) >= PREFIX_LENGTH_MIN,
    )
    return _found(kind, text, whole=whole)


def provider_named(ledger: "Ledger", text: str, *, whole: bool = False) -> "ProviderShown":
    """Return the provider that is meant; see `_found`. Its name may look like a UUID."""
    if named := ledger.providers_named(text):
        return named[0]

    def begin(prefix: str) -> Iterator[Candidate]:
        return ((one.uuid, one.name) for one in ledger.providers_with(prefix, NAMED_MAX + 1))

    kind = Kind("provider", "provider_not_found", [begin], [lambda _: ()])
    return ledger.provider(_found(kind, text, whole=whole))


def provider_id(ledger: "Ledger", text: str) -> str:
    """Return the UUID of the provider that is meant; a whole one need not be that of a provider."""
    return text if is_normal(text.lower()) else provider_named(ledger, text).uuid


def consumer_with(ledger: "Ledger", text: str, *, whole: bool = False) -> "ConsumerShown":
    """Return the consumer that is meant; see `_found`. Consumers have no names."""

    def begin(prefix: str) -> Iterator[Candidate]:
        from moorage.wire.providers import ConsumersAsked

        found = ledger.consumers(ConsumersAsked(id_prefix=prefix))
        return ((one.uuid, one.type or "-") for one in found)

    kind = Kind("consumer", "allocations_not_found", [begin])
    return ledger.consumer(_found(kind, text, whole=whole))


def reshape_id(reshapes: "Reshapes", text: str) -> str:
    """Return the id of the reshape that is meant; see `_found`. Reshapes have no names."""

    def begin(prefix: str) -> Iterator[Candidate]:
        return ((one.id, one.who) for one in reshapes.all() if one.id.startswith(prefix))

    return _found(Kind("reshape", "reshape_not_found", [begin]), text)


def booking_id(bookings: "Bookings", text: str, *, whole: bool = False) -> str:
    """Return the id of the booking that is meant; see `_found`. Bookings have no names."""

    def begin(prefix: str) -> Iterator[Candidate]:
        every = bookings.all(over=True)
        return ((one.id, one.owner) for one in every if one.id.startswith(prefix))

    return _found(Kind("booking", "booking_not_found", [begin]), text, whole=whole)


def anything_id(finder: "Finder", text: str) -> str | None:
    """Return the id of the only thing of any kind that is meant; None: nothing is.

    It has this name, or an id that begins so. Raises Failure: 2, several are meant.
    """
    if not FIND_TEXT_LENGTH_MIN <= len(text) <= FIND_TEXT_LENGTH_MAX:
        return None
    found = finder.find(text, FIND_LIMIT_MAX).found
    # A machine and its agent may share an id, and are one candidate then.
    kinds = {one.id: f"{one.kind} {one.name}" for one in found}
    meant = [(one, kinds[one]) for one in meant_by(text, ((one.id, one.name) for one in found))]
    return _only(meant, f"'{text}' means several things", "use the id") if meant else None


def pool_of(
    admission: "Admission", text: str, work: Callable[[str], R], *, reads: bool = False
) -> R:
    """Do something with the pool of a name; see `_with_name`."""
    names = (one.name for one in admission.pools())
    return _with_name("pool", "pool_not_found", names, text, work, reads)


def agent_group_of(
    fleet: "Fleet", text: str, work: Callable[[str], R], *, reads: bool = False
) -> R:
    """Do something with the group of agents of a name; see `_with_name`."""
    names = (one.name for one in fleet.groups())
    return _with_name("group of agents", "group_not_found", names, text, work, reads)


def reporter_group_of(
    reporting: "Reporting", text: str, work: Callable[[str], R], *, reads: bool = False
) -> R:
    """Do something with the group of reporters of a name; see `_with_name`."""
    names = reporting.groups()
    return _with_name("group of reporters", "group_not_found", names, text, work, reads)


def _with_name(
    noun: str, code: str, names: Iterable[str], text: str, work: Callable[[str], R], reads: bool
) -> R:
    """Do something with the thing that has a name, which is its id.

    If there is none, and the command only `reads`, a unique prefix of a name is enough. Raises
    Failure: 2, several begin so; 7, there is none. It names those that begin so.
    """
    try:
        return work(text)
    except RefusedError as refusal:
        if refusal.code != code:
            raise
        found = [*islice((one for one in names if one.startswith(text)), NAMED_MAX + 1)]
        if not found:
            raise
    if reads and len(found) == 1:
        return work(found[0])
    more = ", and others" if len(found) > NAMED_MAX else ""
    listed = f"{', '.join(found[:NAMED_MAX])}{more}"
    if reads:
        raise Failure(USAGE, f"several names begin with '{text}': {listed}", "ambiguous")
    raise Failure(
        NOT_FOUND, f"there is no {noun} '{text}'; write a whole name, such as {listed}", code
    )
