"""Saves the fleet's changes as rows, in the order of their keys."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from moorage.core.clock import Instant
from moorage.core.fleet.facts import Changes
from moorage.core.fleet.model import DEFAULT_GROUP, Group
from moorage.store.api import Statement, Write
from moorage.store.encoding import encode
from moorage.store.fleet.changes import change_rows
from moorage.store.fleet.rows import (
    agent_row,
    deleted_row,
    group_row,
    member_row,
    reporter_group_row,
)


@dataclass(slots=True)
class FleetPart:
    """The fleet's part of a batch, for `store/batch.py`."""

    changes: Changes
    """The merged changes of all decisions."""
    needs_revision: ClassVar[bool] = False

    @property
    def is_published(self) -> bool:
        """Return whether there are change rows; a sign of life has none."""
        return self.changes.is_logged

    def writes(self) -> list[Statement]:
        """Return the statements that save the rows."""
        groups = sorted(self.changes.groups.items())
        agents = [agent_row(agent) for _, agent in sorted(self.changes.agents.items())]
        writes = [
            Write("agent_group_upsert", [group_row(group) for _, group in groups if group]),
            Write("agent_upsert", agents),
            Write("agent_group_delete", [(name,) for name, group in groups if group is None]),
            *self._reporter_writes(),
        ]
        return [write for write in writes if write.rows]

    def _reporter_writes(self) -> list[Write]:
        groups = sorted(self.changes.reporter_groups.items())
        members = sorted(self.changes.members.items())
        pins = sorted(self.changes.pins.items())
        seen, heard = sorted(self.changes.seen.items()), sorted(self.changes.heard.items())
        deleted = sorted(self.changes.deleted_groups.items())
        passes = sorted(self.changes.passes.items(), key=lambda item: item[0])
        return [
            Write("reporter_group_delete", [(name,) for name, group in groups if group is None]),
            Write("reporter_group_upsert", [reporter_group_row(one) for _, one in groups if one]),
            Write("reporter_group_seen", [(at, name) for name, at in seen]),
            Write("reporter_delete", [key for key, member in members if member is None]),
            Write("reporter_upsert", [member_row(member) for _, member in members if member]),
            Write("reporter_heard", [(until, *key) for key, until in heard]),
            Write("reporter_passed", [(encode(last), *key) for key, last in passes]),
            Write("pin_delete", [key for key, pin in pins if pin is None]),
            Write("pin_upsert", [(*key, pin) for key, pin in pins if pin is not None]),
            Write("deleted_reporter_group_delete", [(name,) for name, one in deleted if not one]),
            Write("deleted_reporter_group_upsert", [deleted_row(one) for _, one in deleted if one]),
        ]

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
        Write("pins_wipe", [()]),
        Write("reporters_wipe", [()]),
        Write("reporter_groups_wipe", [()]),
        Write("deleted_reporter_groups_wipe", [()]),
        Write("agent_group_upsert", [group_row(Group(DEFAULT_GROUP, Instant(0), Instant(0)))]),
    ]
