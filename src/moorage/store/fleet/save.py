"""Saves the fleet's changes as rows, in the order of their keys."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from moorage.core.clock import Instant
from moorage.core.fleet.facts import Changes
from moorage.core.fleet.model import DEFAULT_GROUP, Group
from moorage.store.api import Statement, Write
from moorage.store.fleet.changes import change_rows
from moorage.store.fleet.rows import agent_row, group_row


@dataclass(slots=True)
class FleetPart:
    """The fleet's part of a batch, for `store/batch.py`."""

    changes: Changes
    """The merged changes of all decisions."""
    needs_revision: ClassVar[bool] = False

    @property
    def is_published(self) -> bool:
        """Return whether anything is changed: followers are notified of every change."""
        return bool(self.changes)

    def writes(self) -> list[Statement]:
        """Return the statements that save the rows."""
        groups = sorted(self.changes.groups.items())
        agents = [agent_row(agent) for _, agent in sorted(self.changes.agents.items())]
        writes = [
            Write("agent_group_upsert", [group_row(group) for _, group in groups if group]),
            Write("agent_upsert", agents),
            Write("agent_group_delete", [(name,) for name, group in groups if group is None]),
        ]
        return [write for write in writes if write.rows]

    def stamp(self, epoch: int, revision: int) -> None:
        """Do nothing: no row of the fleet contains the revision."""

    def late_writes(self) -> list[Statement]:
        """Return no statements."""
        return []

    def change_rows(self) -> Iterator[tuple[str, str, str | None]]:
        """Yield (kind, key, body) of every change."""
        return change_rows(self.changes)


def wipe_writes() -> list[Write]:
    """Return the statements that empty the fleet's tables, except for a new default group."""
    return [
        Write("agents_wipe", [()]),
        Write("heard_wipe", [()]),
        Write("agent_groups_wipe", [()]),
        Write("agent_group_upsert", [group_row(Group(DEFAULT_GROUP, Instant(0), Instant(0)))]),
    ]
