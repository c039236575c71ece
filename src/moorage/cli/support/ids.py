"""Ids on the command line: a prefix is enough, if only one id begins with it.

Providers also have names.
"""

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from moorage.cli.support.output import NOT_FOUND, USAGE, Failure
from moorage.client.admission import Admission
from moorage.client.fleet import Fleet
from moorage.client.ledger import Ledger
from moorage.core.ids import PREFIX_LENGTH_MIN, is_normal, is_prefix
from moorage.wire.admission import Lease
from moorage.wire.fleet import Agent
from moorage.wire.labels import holder_of
from moorage.wire.providers import ConsumersAsked, ConsumerShown, ProviderShown

if TYPE_CHECKING:
    from moorage.client.reshapes import Reshapes

NAMED_MAX = 5
"""Candidates that are named for an ambiguous prefix."""

LIVE = ("granted", "waiting")

BEGINS_SO = ("several ids begin with '{}'", "write more characters")
NAMED_SO = ("several agents have the host name '{}'", "use the id")
"""What several candidates have in common, and what to do."""


def lease_id(
    admission: Admission, text: str, *, changing: bool = False, whole: bool = False
) -> str:
    """Return the id of the only live lease or ticket that begins so, else of the only ended one.

    With `changing`, for commands that change it, ended ones count as well: the one that is meant
    may just have ended, and another must not be changed instead. With `whole`, for commands that
    cannot be undone, the beginning of an id is refused. Other texts are returned as they are, for
    the server to judge. Raises Failure: 2, several begin so or it is too short; or as for an
    unknown id.
    """
    wanted = text.lower()
    if not _is_to_find(wanted):
        return text
    found = leases_with(admission, wanted, also_ended=changing)
    if not found:
        message = f"there is no lease whose id begins with '{text}'"
        raise Failure(NOT_FOUND, message, "lease_not_found")
    return _only(text, [(one.id, _said(one)) for one in found], whole=whole)


def leases_with(admission: Admission, prefix: str, *, also_ended: bool = False) -> list[Lease]:
    """Return the live leases and tickets whose ids begin so; some if many.

    If there are none, or `also_ended`, it returns the ended ones, too.
    """
    found = [lease for state in LIVE for lease in _with(admission, prefix, state)]
    if also_ended or not found:
        found += _with(admission, prefix, "ended")
    return found


def _with(admission: Admission, prefix: str, state: str) -> list[Lease]:
    return admission.leases_page(state=state, id_prefix=prefix, limit=NAMED_MAX + 1).leases


def _said(lease: Lease) -> str:
    holder = holder_of(lease.owner, lease.labels)
    return f"{holder}, ended" if lease.state == "ended" else holder


def agent_id(fleet: Fleet, text: str, *, whole: bool = False) -> str:
    """Return the id of the only agent with this host name, else of the only one that begins so.

    Active agents go before former ones. With `whole` only an id or a name will do. Raises Failure
    as `lease_id`.
    """
    wanted = text.lower()
    if is_normal(wanted):
        return wanted
    _check_askable(text)
    for state in ("active", "decommissioned"):
        named = (one for one in fleet.agents(state=state) if _host(one) == text)
        if found := [*islice(named, NAMED_MAX + 1)]:
            return _only(text, [(one.id, one.group) for one in found], NAMED_SO)
    if not _is_to_find(wanted):
        raise Failure(
            NOT_FOUND, f"there is no agent with the host name '{text}'", "agent_not_found"
        )
    for state in ("active", "decommissioned"):
        found = [*islice(fleet.agents(state=state, id_prefix=wanted), NAMED_MAX + 1)]
        if found:
            return _only(text, [(one.id, _host(one)) for one in found], whole=whole)
    message = f"there is no agent whose id begins with '{text}', and none with this host name"
    raise Failure(NOT_FOUND, message, "agent_not_found")


def _host(agent: Agent) -> str:
    return "-" if agent.facts is None else agent.facts.hostname


def token_id(tokens: Sequence[dict[str, str]], text: str, *, whole: bool = False) -> str:
    """Return the id of the only token that begins so; otherwise the text. Raises Failure: 2, 7."""
    _check_askable(text)
    if len(text) < PREFIX_LENGTH_MIN:
        return text
    found = [(one["id"], one["name"]) for one in tokens if one["id"].startswith(text)]
    return _only(text, found, whole=whole) if found else text


def provider_named(ledger: Ledger, text: str, *, whole: bool = False) -> ProviderShown:
    """Return the provider with this name, or else the only one whose UUID begins so.

    With `whole` only a name or a UUID will do. Raises Failure: 7, there is none; 2, as `lease_id`.
    """
    if named := ledger.providers_named(text):
        return named[0]
    wanted = text.lower()
    found = ledger.providers_with(wanted, NAMED_MAX + 1) if is_prefix(wanted) else []
    if not found:
        raise Failure(
            NOT_FOUND,
            f"there is no provider with the name '{text}', and none whose UUID begins with it"
            f" (write at least 8 characters)",
            "provider_not_found",
        )
    uuid = _only(wanted, [(one.uuid, one.name) for one in found], whole=whole)
    return next(one for one in found if one.uuid == uuid)


def consumer_with(ledger: Ledger, text: str) -> ConsumerShown:
    """Return the only consumer whose UUID begins so. Raises Failure: 7, 2."""
    wanted = text.lower()
    if is_normal(wanted):
        return ledger.consumer(wanted)
    found: list[ConsumerShown] = []
    if is_prefix(wanted):
        for one in ledger.consumers(ConsumersAsked(id_prefix=wanted)):
            found.append(one)
            if len(found) > NAMED_MAX:
                break
    if not found:
        raise Failure(
            NOT_FOUND,
            f"there is no consumer whose UUID begins with '{text}' (write at least 8 characters)",
            "allocations_not_found",
        )
    uuid = _only(text, [(one.uuid, one.type or "-") for one in found])
    return next(one for one in found if one.uuid == uuid)


def reshape_id(reshapes: "Reshapes", text: str) -> str:
    """Return the id of the only reshape that begins so. Raises Failure: 7, 2."""
    wanted = text.lower()
    if not _is_to_find(wanted):
        return wanted
    found = [
        (one.id, one.who)
        for one in islice(
            (each for each in reshapes.all() if each.id.startswith(wanted)), NAMED_MAX + 1
        )
    ]
    if not found:
        message = f"there is no reshape whose id begins with '{text}'"
        raise Failure(NOT_FOUND, message, "reshape_not_found")
    return _only(text, found)


def _check_askable(text: str) -> None:
    """Raise Failure: 7, the id has a slash, so it cannot even be asked for."""
    if "/" in text:
        raise Failure(NOT_FOUND, f"'{text}' is not a valid id")


def _is_to_find(text: str) -> bool:
    """Return whether a text is the beginning of an id. Raises Failure: 2, it is too short; 7."""
    _check_askable(text)
    if len(text) < PREFIX_LENGTH_MIN and is_prefix(text.ljust(PREFIX_LENGTH_MIN, "0")):
        message = f"'{text}' is too short: write at least {PREFIX_LENGTH_MIN} characters of the id"
        raise Failure(USAGE, message)
    return is_prefix(text) and not is_normal(text)


def _only(
    text: str,
    found: Sequence[tuple[str, str]],
    why: tuple[str, str] = BEGINS_SO,
    *,
    whole: bool = False,
) -> str:
    """Return the only id of those found; each has a text.

    `why` says of several what they have in common, and what to do. Raises Failure: 2, there are
    several, or it must be `whole`.
    """
    if len(found) == 1:
        only, whose = found[0]
        if whole and only != text:
            message = (
                f"'{text}' is only a prefix of an id, and this command cannot be undone: write the"
                f" whole id; the id of {whose} is {only}"
            )
            raise Failure(USAGE, message, "prefix")
        return only
    names = ", ".join(f"{one} ({whose})" for one, whose in found[:NAMED_MAX])
    more = ", and others" if len(found) > NAMED_MAX else ""
    message = f"{why[0].format(text)}: {names}{more}; {why[1]}"
    raise Failure(USAGE, message, "ambiguous")
