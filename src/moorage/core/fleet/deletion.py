"""The deletion of a group of reporters, and what it leaves for a while. Source: decision 0030.

The group, its members and what was observed are gone at once. Its pins and its marks on providers
may be many: they are removed afterwards, in small units, and until then nobody may join.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from moorage.core.clock import SECOND, Instant
from moorage.core.counting import counted
from moorage.core.errors import Code, Error
from moorage.core.fleet.facts import Changes, Facts
from moorage.core.fleet.members import find_group, live
from moorage.core.fleet.reporters import DeletedGroup
from moorage.core.ids import ProviderId
from moorage.core.limits import DELETED_INSTANCES_MAX, MEMBERS_KEPT_HOURS
from moorage.core.service_time import Moment, When

NAMED_MAX = 5
"""Members or pools that a refusal names."""


def delete(facts: Facts, when: When, name: str, pools: Iterable[str]) -> Changes:
    """Delete a group; its instances may not join the next group of this name.

    Args:
        facts: with the group and its members.
        when: the time of the decision.
        name: of the group.
        pools: the names of the pools whose limits depend on its members.

    Raises GROUP_NOT_FOUND, GROUP_IN_USE.
    """
    group = find_group(facts, name)
    members = [member for (one, _), member in sorted(facts.members.items()) if one == name]
    if alive := live(members, when.moment):
        raise Error(
            Code.GROUP_IN_USE,
            f"Group '{name}' still has {counted(len(alive), 'live member')} ({_some(alive)}): stop "
            "these reporters first, or wait for the TTL of those that have crashed.",
        )
    if following := sorted(pools):
        raise Error(
            Code.GROUP_IN_USE,
            f"{counted(len(following), 'pool')} ({_some(following)}) still "
            f"{'has' if len(following) == 1 else 'have'} units for each member of group '{name}': "
            "give these pools another limit first, or delete them.",
        )
    before = facts.deleted_groups.get(name)
    instances = [one for member in members for one in (*member.past, member.instance)]
    if before is not None:
        instances = [*before.instances, *instances]
    deleted = DeletedGroup(
        name=name,
        deleted_at=when.moment.at,
        tokens=group.tokens,
        pins_generation=group.pins_generation,
        instances=tuple(instances[-DELETED_INSTANCES_MAX:]),
    )
    return Changes(
        reporter_groups={name: None},
        members={(name, member.name): None for member in members},
        deleted_groups={name: deleted},
    )


def clear_pins(facts: Facts, deleted: DeletedGroup, nodes: Sequence[ProviderId]) -> Changes:
    """Remove pins of a deleted group."""
    pins = [(deleted.name, node) for node in nodes]
    return Changes(pins={pin: None for pin in pins if pin in facts.pins})


def cleared(deleted: DeletedGroup) -> Changes:
    """Let the name be used again: no pin and no mark of the deleted group is left."""
    return Changes(deleted_groups={deleted.name: replace(deleted, cleared=True)})


def is_same(facts: Facts, deleted: DeletedGroup) -> bool:
    """Return whether a deletion still has to be cleared: nobody has, and it is the last one."""
    return facts.deleted_groups.get(deleted.name) == deleted and not deleted.cleared


def is_forgotten(deleted: DeletedGroup, moment: Moment) -> bool:
    """Return whether nothing of a deleted group is on its way any more, so that it is forgotten."""
    kept = MEMBERS_KEPT_HOURS * 3_600 * SECOND
    return deleted.cleared and Instant(deleted.deleted_at + kept) < moment.at


def forget(facts: Facts, when: When, name: str) -> Changes:
    """Forget a group that was deleted long ago."""
    deleted = facts.deleted_groups.get(name)
    if deleted is None or not is_forgotten(deleted, when.moment):
        return Changes()
    return Changes(deleted_groups={name: None})


def _some(names: Sequence[str]) -> str:
    more = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
