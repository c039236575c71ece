"""Which consumers may start on a machine now.

Consumers start in the order in which they got their places. One may start when what it holds, and
what all before it hold, is there. Otherwise many would see the same free amount and start together.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from msgspec import Struct

from moorage.core.errors import Code, Error
from moorage.core.fleet.agents import check_active
from moorage.core.fleet.boots import check_boot
from moorage.core.fleet.model import Agent, Amounts
from moorage.core.fleet.offers import OFFERING
from moorage.core.ids import ConsumerId, ProviderId


class ConsumerPlace(Struct, frozen=True):
    """The allocations of a consumer on one provider of a machine.

    `since` is the generation of the provider that the consumer's first claim there produced.
    """

    consumer: ConsumerId
    provider: ProviderId
    since: int
    amounts: Mapping[str, int]


class Reason(StrEnum):
    """Why a consumer may or may not start."""

    THERE = "there"
    """All that it needs is there."""
    NOT_THERE = "not_there"
    """The machine has not enough yet for it and those before it."""
    UNCONFIRMED = "unconfirmed"
    """Its place is from before this boot, and the machine is not prepared yet."""


class Start(Struct, frozen=True):
    """Whether a consumer may start.

    `needed` is what it holds, `ahead` what those before it hold, of the classes that it needs.
    """

    may_start: bool
    reason: Reason
    needed: Amounts
    ahead: Amounts
    actual: Amounts


def may_start(
    agent: Agent, boot_id: str, consumer: ConsumerId, places: Iterable[ConsumerPlace]
) -> Start:
    """Decide whether a consumer may start in this boot of the machine.

    Only classes that the agent manages count.

    Args:
        agent: of the machine.
        boot_id: the boot in which it would start.
        consumer: the one that wants to start.
        places: of all consumers on all providers of the machine.

    Raises DECOMMISSIONED, STALE_BOOT, SUPERSEDED_BOOT, PLACE_NOT_FOUND.
    """
    check_active(agent)
    check_boot(agent, boot_id)
    places = list(places)
    own = [place for place in places if place.consumer == consumer]
    if not own:
        raise Error(
            Code.PLACE_NOT_FOUND,
            f"Consumer {consumer} has no allocations on the machine of agent {agent.uuid}: claim"
            f" them first.",
        )
    needed, ahead, actual = _sums(agent, own, places)
    enough = all(
        ahead[uuid][name] + amount <= actual[uuid][name]
        for uuid, amounts in needed.items()
        for name, amount in amounts.items()
    )
    reason = Reason.THERE if enough else Reason.NOT_THERE
    if agent.readiness not in OFFERING and consumer in unconfirmed(agent, own):
        reason = Reason.UNCONFIRMED
    return Start(reason is Reason.THERE, reason, needed, ahead, actual)


def unconfirmed(agent: Agent, places: Iterable[ConsumerPlace]) -> list[ConsumerId]:
    """Return consumers with places from before this boot that no report of it has listed."""
    found = {
        place.consumer
        for place in places
        if place.provider in agent.parts
        and place.since <= agent.parts[place.provider].born
        and place.consumer not in agent.confirmed
    }
    return sorted(found)


def _sums(
    agent: Agent, own: Iterable[ConsumerPlace], places: Iterable[ConsumerPlace]
) -> tuple[Amounts, Amounts, Amounts]:
    """Return what is needed, what those before need of the same classes, and what is there."""
    needed: Amounts = {}
    ahead: Amounts = {}
    actual: Amounts = {}
    for mine in own:
        part = agent.parts.get(mine.provider)
        classes = {} if part is None else part.classes
        managed = {name: amount for name, amount in mine.amounts.items() if name in classes}
        if not managed:
            continue
        before = [
            place
            for place in places
            if place.provider == mine.provider
            and (place.since, place.consumer) < (mine.since, mine.consumer)
        ]
        needed[mine.provider] = managed
        actual[mine.provider] = {name: classes[name].actual for name in managed}
        ahead[mine.provider] = {
            name: sum(place.amounts.get(name, 0) for place in before) for name in managed
        }
    return needed, ahead, actual
