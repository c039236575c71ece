"""Members of a group of reporters: they join, stay, are fenced and leave. Durations: microseconds.

A member is live for one TTL after it was last heard of, in alive time. Each start of a reporter is
an instance of its own with a token of its own; a new instance fences all earlier ones.
Source: decision 0030.
"""

import re
from collections.abc import Iterable

from msgspec.structs import replace

from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from moorage.core.fleet.facts import Changes, Facts
from moorage.core.fleet.reporters import Member, Pass, ReporterGroup
from moorage.core.ids import is_normal
from moorage.core.limits import (
    DETAIL_LENGTH_MAX,
    GROUP_NAME_LENGTH_MAX,
    IDENTIFIER_LENGTH_MAX,
    MAX_INT,
    MEMBER_TTL_SECONDS_MAX,
    MEMBER_TTL_SECONDS_MIN,
    MEMBERS_KEPT_HOURS,
    MEMBERS_MAX,
    OBSERVED_MAX,
    PASS_CODES_MAX,
    PAST_INSTANCES_MAX,
)
from moorage.core.service_time import Moment, When
from moorage.core.texts import check_plain

AHEAD_MAX = 60 * SECOND
"""How much the clock of an observer may be ahead: a later time would hide all that follows."""

_GROUP = re.compile(rf"(?!\.\.?\Z)[a-z0-9._-]{{1,{GROUP_NAME_LENGTH_MAX}}}")
_MEMBER = re.compile(r"(?!\.\.?\Z)[A-Za-z0-9._:-]{1,255}")


def late_at(member: Member, moment: Moment) -> Instant:
    """Return the service time from which a member is no longer live, unless it is heard of.

    After an outage of the service it gets one TTL to be heard again, unless it was late before:
    then others have its nodes. So repeated restarts do not postpone it for ever.
    """
    due = member.heard_until + moment.at - moment.alive
    if due <= moment.outage_ended_at:
        return Instant(due)
    return Instant(max(due, moment.outage_ended_at + member.ttl if moment.outage_ended_at else 0))


def is_live(member: Member, moment: Moment) -> bool:
    """Return whether a member has been heard of in time."""
    return moment.at < late_at(member, moment)


def live(members: Iterable[Member], moment: Moment) -> list[str]:
    """Return the names of the live members, in order."""
    return sorted(member.name for member in members if is_live(member, moment))


def count(facts: Facts, group: str, moment: Moment) -> int:
    """Return how many members a group has: live ones and observed ones, as one set."""
    members = [one for (name, _), one in facts.members.items() if name == group]
    known = facts.reporter_groups.get(group)
    return len({*live(members, moment), *(() if known is None else known.observed)})


def join(
    facts: Facts,
    when: When,
    group: str,
    name: str,
    instance: str,
    ttl: int,
    *,
    renew: bool = False,
) -> Changes:
    """Let a member join its group, or stay in it; to stay is no change for followers.

    A member that was silent for too long gets a new token, as if it joined: others may have had its
    nodes, and what it sent before may still arrive. So does one whose token is of an earlier epoch:
    what it has reported may be lost.

    Args:
        facts: with the group and its members.
        when: the time of the decision.
        group: the name of the group, which is created if it does not exist.
        name: of the member.
        instance: a UUID that the reporter has chosen at its start.
        ttl: for how long it is live without being heard of.
        renew: give it a new token, so that what it sent with the present one is refused.

    Raises INVALID, FENCED, LIMIT_EXCEEDED, GROUP_BEING_DELETED.
    """
    check_group_name(group)
    check_member_name(name)
    if not is_normal(instance):
        raise Error(Code.INVALID, "instance must be a UUID in lower case with dashes.")
    if not MEMBER_TTL_SECONDS_MIN * SECOND <= ttl <= MEMBER_TTL_SECONDS_MAX * SECOND:
        raise Error(
            Code.INVALID,
            f"ttl must be from {MEMBER_TTL_SECONDS_MIN} to {MEMBER_TTL_SECONDS_MAX} seconds.",
        )
    _check_deleted(facts, group, instance)
    before = facts.members.get((group, name))
    if before is not None and instance in before.past:
        raise fenced(group, name)
    until = Instant(when.moment.alive + ttl)
    if renew or (before is not None and not _may_go_on(facts, before, when.moment)):
        return _joined(facts, when, group, before, (name, instance, ttl))
    if before is not None and (before.instance, before.ttl) == (instance, ttl):
        return Changes(heard={(group, name): max(until, before.heard_until)})
    if before is not None and before.instance == instance:
        after = replace(before, ttl=ttl, heard_until=until, updated_at=when.stamp)
        return Changes(members={(group, name): after})
    return _joined(facts, when, group, before, (name, instance, ttl))


def with_pass(made: Changes, group: str, name: str, last: Pass) -> Changes:
    """Add to the changes of `join` what the member says of its last pass. Raises INVALID."""
    codes = [*last.refused]
    if len(codes) > PASS_CODES_MAX or any(len(code) > IDENTIFIER_LENGTH_MAX for code in codes):
        raise Error(
            Code.INVALID,
            f"last_pass must have at most {PASS_CODES_MAX} codes, each of at"
            f" most {IDENTIFIER_LENGTH_MAX} characters.",
        )
    for code in codes:
        check_plain("A code of last_pass", code)
    if not all(0 <= number <= MAX_INT for number in (last.nodes, *last.refused.values())):
        raise Error(Code.INVALID, f"The numbers of last_pass must be from 0 to {MAX_INT}.")
    joined = made.members.get((group, name))
    if joined is None:
        made.passes[group, name] = last
    else:
        made.members[group, name] = replace(joined, last_pass=last)
    return made


def leave(facts: Facts, group: str, name: str, instance: str | None) -> Changes:
    """Let a member leave, so that its nodes get other owners at once; a repeat changes nothing.

    `instance` None: whichever it is. Raises FENCED: another instance has taken its place.
    """
    member = facts.members.get((group, name))
    if member is None:
        return Changes()
    if instance not in (None, member.instance):
        raise fenced(group, name)
    return Changes(members={(group, name): None})


def observe(
    facts: Facts, when: When, group: str, names: Iterable[str], seen_at: Instant, error: str
) -> Changes:
    """Replace the members that somebody else observes; an equal list is no change for followers.

    Args:
        facts: with the group.
        when: the time of the decision.
        group: the name of the group, which is created if it does not exist.
        names: the members.
        seen_at: when the observer saw them, by its clock.
        error: what was wrong then; empty: nothing.

    Raises INVALID, LIMIT_EXCEEDED, OBSERVER_FAILED: an empty list because of an error says nothing;
    STALE_REPORT: a later list is known; GROUP_BEING_DELETED.
    """
    check_group_name(group)
    _check_deleted(facts, group)
    observed = tuple(sorted(set(names)))
    _check_observed(observed, error)
    if seen_at > when.wall + AHEAD_MAX:
        raise Error(Code.INVALID, "seen_at is in the future: set the clock of the observer.")
    if error and not observed:
        raise Error(
            Code.OBSERVER_FAILED,
            f"The observer saw no members because of an error, so the last list stays: {error}",
        )
    before = facts.reporter_groups.get(group)
    if before is None:
        before = _new_group(facts, when, group)
    elif before.seen_at is not None and seen_at < before.seen_at:
        raise Error(
            Code.STALE_REPORT, f"The server has a later list of group '{group}' and keeps it."
        )
    elif (before.observed, before.observer_error) == (observed, error) and before.seen_at:
        return Changes(seen={group: seen_at})
    after = replace(before, observed=observed, observer_error=error, seen_at=seen_at)
    return Changes(reporter_groups={group: _raised(after, when)})


def check_current(facts: Facts, group: str, name: str, token: str) -> Member:
    """Return the member that a token belongs to. Raises FENCED: it is not the newest one."""
    member = facts.members.get((group, name))
    if member is None or member.token != token:
        raise fenced(group, name)
    return member


def fenced(group: str, name: str) -> Error:
    """Return the error for a reporter that has left, or that a newer instance has replaced."""
    return Error(
        Code.FENCED,
        f"This is not the newest instance of member '{name}' of group '{group}', or the member has"
        f" left: join with a new instance, or stop if another instance runs.",
    )


def find_group(facts: Facts, name: str) -> ReporterGroup:
    """Return a group. Raises GROUP_NOT_FOUND."""
    group = facts.reporter_groups.get(name)
    if group is None:
        raise group_not_found(name)
    return group


def group_not_found(name: str) -> Error:
    """Return the error for a group that does not exist, or not any more."""
    return Error(
        Code.GROUP_NOT_FOUND,
        f"There is no group of reporters '{name}': it begins when its first member joins.",
    )


def check_group_name(name: str) -> None:
    """Raise INVALID unless a group of reporters may have this name: it is one part of a path."""
    if not _GROUP.fullmatch(name):
        raise Error(
            Code.INVALID,
            f"The name of a group of reporters has 1 to {GROUP_NAME_LENGTH_MAX} characters of a-z, "
            "0-9, '.', '_' and '-'.",
        )


def check_member_name(name: str) -> None:
    """Raise INVALID unless a member may have this name: host names and addresses may be names."""
    if not _MEMBER.fullmatch(name):
        raise Error(
            Code.INVALID,
            "The name of a member has 1 to 255 characters of A-Z, a-z, 0-9, '.', '_', ':' and '-'.",
        )


def _check_deleted(facts: Facts, group: str, instance: str | None = None) -> None:
    """Raise FENCED for an instance of a deleted group, GROUP_BEING_DELETED until it is cleared."""
    deleted = facts.deleted_groups.get(group)
    if deleted is None:
        return
    if instance in deleted.instances:
        raise Error(
            Code.FENCED,
            f"Group '{group}' was deleted, and this instance was a member of it: stop, or join "
            "with a new instance to create the group again.",
        )
    if not deleted.cleared:
        raise Error(
            Code.GROUP_BEING_DELETED,
            f"Group '{group}' is being deleted, and its marks are still being removed from"
            f" providers: "
            "try again in a few seconds.",
        )


def _new_group(facts: Facts, when: When, name: str) -> ReporterGroup:
    """Return a new group; a deleted one of the name must not have issued its tokens before."""
    before = facts.deleted_groups.get(name)
    tokens, pins = (0, 0) if before is None else (before.tokens, before.pins_generation)
    return ReporterGroup(name, when.stamp, when.stamp, tokens, pins)


def _joined(
    facts: Facts,
    when: When,
    group: str,
    before: Member | None,
    wanted: tuple[str, str, int],
) -> Changes:
    """Return the changes of a new member, of a new instance of one, or of one with a new token."""
    name, instance, ttl = wanted
    known = facts.reporter_groups.get(group) or _new_group(facts, when, group)
    forgotten = _forgotten(facts, when.moment, group, name)
    members = sum(one == group for one, _ in facts.members) - len(forgotten)
    if before is None and members >= MEMBERS_MAX:
        raise Error(Code.LIMIT_EXCEEDED, f"A group has at most {MEMBERS_MAX} members.")
    same = before if before is not None and before.instance == instance else None
    past = () if before is None else before.past
    if before is not None and same is None:
        past = (*past, before.instance)[-PAST_INSTANCES_MAX:]
    number = known.tokens + 1
    member = Member(
        group=group,
        name=name,
        instance=instance,
        # Counted within an epoch: no token of before a restore is used again.
        token=f"{facts.epoch}.{number}",
        ttl=ttl,
        heard_until=Instant(when.moment.alive + ttl),
        joined_at=when.stamp if same is None else same.joined_at,
        updated_at=when.stamp,
        past=past,
        last_pass=None if same is None else same.last_pass,
    )
    changes = Changes(reporter_groups={group: _raised(replace(known, tokens=number), when)})
    changes.members.update(dict.fromkeys(forgotten))
    changes.members[group, name] = member
    return changes


def _may_go_on(facts: Facts, member: Member, moment: Moment) -> bool:
    """Return whether all that a member has reported by its token is there, and nobody else's."""
    return is_live(member, moment) and member.token.startswith(f"{facts.epoch}.")


def _forgotten(facts: Facts, moment: Moment, group: str, joins: str) -> list[tuple[str, str]]:
    """Return the members of a group whose silence is so old that they are removed."""
    kept = MEMBERS_KEPT_HOURS * 3_600 * SECOND
    return [
        key
        for key, member in facts.members.items()
        if key[0] == group and key[1] != joins and late_at(member, moment) + kept < moment.at
    ]


def _raised(group: ReporterGroup, when: When) -> ReporterGroup:
    return replace(group, generation=group.generation + 1, updated_at=when.stamp)


def _check_observed(names: tuple[str, ...], error: str) -> None:
    if len(names) > OBSERVED_MAX:
        raise Error(Code.LIMIT_EXCEEDED, f"A group has at most {OBSERVED_MAX} observed members.")
    for name in names:
        check_member_name(name)
    if len(error) > DETAIL_LENGTH_MAX:
        raise Error(Code.INVALID, f"error must have at most {DETAIL_LENGTH_MAX} characters.")
    check_plain("error", error)
