"""Admission's part of a batch: load under its lock, apply decisions, then grant leases."""

from moorage.core.admission import pools
from moorage.core.admission.admit import TicketsNeeded, admit
from moorage.core.admission.facts import Changes, Facts, Keys
from moorage.core.restart import Restart
from moorage.core.service_time import When
from moorage.service.batch.extra_loads import ExtraLoads
from moorage.service.batch.ledger_room import LedgerRoom
from moorage.service.batch.ledger_share import LedgerShare
from moorage.service.batch.member_counts import MemberCounts
from moorage.service.batch.misfits import Misfits
from moorage.service.batch.stop_requests import asked_row
from moorage.service.batch.world import Changes as AllChanges
from moorage.service.batch.world import World
from moorage.store.access.audit import AuditRow
from moorage.store.admission import load, save
from moorage.store.api import Plan


class AdmissionRoom:
    """The pools and leases of one batch. Its grants claim in the ledger through a `LedgerShare`."""

    def __init__(
        self, world: World, keys: Keys, ledger: LedgerRoom, extra: ExtraLoads, misfits: Misfits
    ) -> None:
        self._world = world
        self._keys = keys
        self._ledger = ledger
        self._extra = extra
        self._misfits = misfits
        self.changes = Changes()
        self.rows: list[AuditRow] = []
        """Of what no request has asked for."""
        self.when: When
        """The time of the batch, set by `begin`."""
        self._share: LedgerShare
        self._members = MemberCounts()

    @property
    def facts(self) -> Facts:
        """The loaded rows, as changed so far."""
        return self._world.admission

    def load(self) -> Plan[None]:
        """Lock admission and service time, and load what the keys name."""
        self._world.admission = yield from load.facts_load(self._keys)
        self._world.timeline = self.facts.timeline
        groups = {pool.spec.member_group for pool in self.facts.pools.values()} - {None}
        groups |= self._keys.member_groups
        if groups:
            yield from self._members.load(groups)

    def begin(self, when: When) -> None:
        """Set the time of the batch."""
        assert self._world.timeline is not None
        self.facts.timeline = self._world.timeline
        self.when = when
        self._share = LedgerShare(self._ledger, self._extra, self.facts, when.stamp, self._misfits)
        self._follow_members()

    def decided(self, changes: AllChanges) -> None:
        """Apply a decision; leases that are over return what they hold. Raises Restart."""
        if changes.fleet is not None:
            self._members.apply(changes.fleet)
        made = changes.admission
        if made is not None:
            self._apply(made)
        if made is not None or changes.fleet is not None:
            self._follow_members()

    def _apply(self, made: Changes) -> None:
        for key, lease in made.leases.items():
            before = self.facts.leases.get(key)
            ends = lease is None or lease.state != "granted"
            if ends and before is not None and before.state == "granted":
                self._share.release(before)
        self.facts.apply(made)
        self.changes.update(made)

    def _follow_members(self) -> None:
        """Make limits follow the members of groups of reporters, as of now."""
        counts = self._members.counts(self.when.moment)
        if counts:
            made = pools.follow_members(self.facts, counts, self.when.wall)
            self.facts.apply(made)
            self.changes.update(made)

    def after(self) -> Plan[None]:
        """Grant leases to the tickets that may start. Raises Restart."""
        if self.changes.returned:
            yield from load.pools_load(self.facts, self.changes.returned)
        known, alive = self._extra.lines.items(), self.when.moment.alive
        wanted = {name: count for name, count in known if name in self.facts.pools}
        if wanted:
            yield from load.lines_load(self.facts, wanted, self._share.stuck, alive)
        while (made := self._admitted()) is None:
            yield from load.lines_load(self.facts, self._short, self._share.stuck, alive)
        for key, lease in made.leases.items():
            before = self.facts.leases.get(key)
            starts = before is None or before.state != "granted"  # else it is asked to stop
            if starts and lease is not None and lease.state == "granted":
                made.leases[key] = self._share.dated(lease)
        for key, request in made.stopping.items():
            if (lease := made.leases[key]) is not None:
                self.rows.append(asked_row(self.facts, lease, request, self.when))
        self.facts.apply(made)
        self.changes.update(made)

    def _admitted(self) -> Changes | None:
        """Return the grants; None: load the lines in `_short`, then try again."""
        try:
            made = admit(
                self.facts,
                self.when.moment,
                self.when.wall,
                try_claim=self._share.claim,
                polled=frozenset(self.changes.polled),
                at_once=self.changes.at_once,
            )
        except Restart as restart:
            if not isinstance(restart.needs, TicketsNeeded):
                raise
            self._short = restart.needs.lines
            self._share.take_back()
            return None
        self._share.kept()
        return made

    def part(self) -> save.AdmissionPart:
        """Return what is to be saved."""
        return save.AdmissionPart(self.facts, self.changes)
