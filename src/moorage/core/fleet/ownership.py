"""The owner of a node: its pin, otherwise the live member with the highest score.

The owner is computed at the time of each decision and never stored. Source: decision 0030.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from moorage.core.errors import Code, Error
from moorage.core.fleet.facts import Changes, Facts
from moorage.core.fleet.members import check_member_name, find_group, live
from moorage.core.ids import ProviderId
from moorage.core.limits import PINS_MAX
from moorage.core.service_time import Moment, When
from moorage.wire import rendezvous


class Owners(Struct, frozen=True):
    """The owners of a group's nodes at one moment: its live members, and its pins by node."""

    members: list[str]
    pins: Mapping[ProviderId, str]

    def of(self, node: ProviderId) -> str | None:
        """Return the owner of a node; None: nobody is live."""
        return rendezvous.owner(node, self.members, self.pins.get(node))

    def check(self, node: ProviderId, member: str) -> None:
        """Raise NOT_OWNER unless a member owns a node."""
        owner = self.of(node)
        if owner != member:
            raise Error(
                Code.NOT_OWNER, f"Node {node} belongs to {'nobody' if owner is None else owner}."
            )


def owners(facts: Facts, group: str, moment: Moment) -> Owners:
    """Return who owns the nodes of a group; the pins of the nodes in question must be loaded."""
    members = [member for (name, _), member in facts.members.items() if name == group]
    pins = {node: member for (name, node), member in facts.pins.items() if name == group}
    return Owners(live(members, moment), pins)


def pin(
    facts: Facts, when: When, group: str, nodes: Iterable[ProviderId], member: str | None
) -> Changes:
    """Pin nodes to a member, live or not; None: remove their pins. Equal pins change nothing.

    Raises GROUP_NOT_FOUND, INVALID, LIMIT_EXCEEDED.
    """
    known = find_group(facts, group)
    if member is not None:
        check_member_name(member)
    wanted = {(group, node): member for node in nodes}
    if len(wanted) > PINS_MAX:
        raise Error(Code.LIMIT_EXCEEDED, f"At most {PINS_MAX} nodes can be pinned at once.")
    changed = {key: member for key in wanted if facts.pins.get(key) != member}
    if not changed:
        return Changes()
    after = replace(
        known,
        pins_generation=known.pins_generation + 1,
        generation=known.generation + 1,
        updated_at=when.stamp,
    )
    return Changes(reporter_groups={group: after}, pins=changed)
