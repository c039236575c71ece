"""How many members the groups of reporters have on which limits of pools depend, in one batch."""

from collections.abc import Iterable

from moorage.core.fleet import members
from moorage.core.fleet.facts import Changes, Facts, Keys
from moorage.core.service_time import Moment
from moorage.store.api import Plan
from moorage.store.fleet import load


class MemberCounts:
    """The members of some groups, as loaded and as changed by the decisions of the batch so far."""

    def __init__(self) -> None:
        self._facts = Facts()
        self._groups: set[str] = set()

    def load(self, groups: Iterable[str | None]) -> Plan[None]:
        """Load the members of some groups; service time is locked."""
        self._groups = {group for group in groups if group is not None}
        yield from load.reporters_load(self._facts, Keys(reporters=self._groups))

    def apply(self, made: Changes) -> None:
        """Follow a decision about these groups."""
        if self._groups:
            self._facts.apply(
                Changes(
                    reporter_groups={
                        name: one
                        for name, one in made.reporter_groups.items()
                        if name in self._groups
                    },
                    members={k: v for k, v in made.members.items() if k[0] in self._groups},
                    heard={k: v for k, v in made.heard.items() if k[0] in self._groups},
                )
            )

    def counts(self, moment: Moment) -> dict[str, int]:
        """Return the number of members by group."""
        return {group: members.count(self._facts, group, moment) for group in self._groups}
