"""A round: consumers and providers are looked at again, the ledger before and after Nova.

What Nova says counts only if the ledger shows the same before the first request and after the last
one: then it was so while Nova answered.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from moorage.integrations.nova import provider_rules
from moorage.integrations.nova.asking import Nova, UnfitError
from moorage.integrations.nova.consumer_rules import Look, Verdict, judge
from moorage.integrations.nova.facts import Migration, Server, Service
from moorage.integrations.nova.findings import Finding, Unclear
from moorage.integrations.nova.ledger_view import Held, Providers, held_of
from moorage.integrations.nova.pacing import NoAnswerError
from moorage.integrations.nova.ports import LedgerReads
from moorage.integrations.nova.together import together

CELLS: Final = "a cell does not answer, so that a 404 proves nothing"
MIGRATIONS: Final = "the list of migrations lacks some that it had before"


@dataclass(frozen=True)
class Said:
    """What Nova said at the beginning of a round: `moves` by server, `migrations` by UUID.

    `partial`: why lists and 404 prove nothing; empty: they do.
    """

    services: Mapping[str, Service]
    providers: Providers
    migrations: Mapping[str, Migration] = field(default_factory=dict)
    moves: Mapping[str, tuple[Migration, ...]] = field(default_factory=dict)
    partial: str = ""


class Rounds:
    """Looks at what is suspect. Calls raise UnfitError, and what the ledger raises."""

    def __init__(self, ledger: LedgerReads, nova: Nova, *, all_ours: bool) -> None:
        """Prepare to look; `all_ours`: see `consumer_rules.judge`."""
        self._ledger, self._nova, self._all_ours = ledger, nova, all_ours
        self._known: set[str] = set()
        """The UUIDs of all migrations that a list had: one that lacks some of them is partial."""
        self.canaries: list[Server] = []
        """Servers of several projects that were there: for them a 404 must be true, too."""

    async def said(self, providers: Providers) -> Said:
        """Return what Nova says of everything that is not a server. Raises NoAnswerError."""
        services = await self._nova.services()
        known = providers.known_by(await self._nova.hypervisors())
        migrations = {one.uuid: one for one in await self._nova.migrations()}
        moves: dict[str, tuple[Migration, ...]] = {}
        for one in migrations.values():
            moves[one.server] = (*moves.get(one.server, ()), one)
        lacking = not self._known <= migrations.keys()
        self._known |= migrations.keys()
        partial = CELLS if _are_unknown(services) else MIGRATIONS if lacking else ""
        return Said({one.host: one for one in services}, known, migrations, moves, partial)

    async def consumers(self, uuids: Collection[str], providers: Providers) -> dict[str, Verdict]:
        """Return the verdict about each consumer, or server."""
        before = await together(uuids, self._held)
        try:
            said = await self.said(providers)
        except NoAnswerError as error:
            return {uuid: Unclear(uuid, str(error)) for uuid in uuids}
        looks = await together(uuids, lambda uuid: self._look(uuid, said))
        partial = said.partial or await self._trouble()
        after = await together(uuids, self._held)
        found: dict[str, Verdict] = {}
        for uuid in uuids:
            if before[uuid] != after[uuid]:
                found[uuid] = Unclear(uuid, "its allocations changed meanwhile")
                continue
            look = looks[uuid]
            if partial and _depends_on_absence(look, after[uuid], said.providers):
                look = Look(unclear=partial)
            found[uuid] = judge(uuid, after[uuid], look, said.providers, all_ours=self._all_ours)
        return found

    async def providers(
        self,
        roots: Collection[str],
        providers: Providers,
        in_ironic: Collection[str] | None,
        now: datetime,
    ) -> dict[str, list[Finding | Unclear]]:
        """Return what is wrong with each tree, or may be.

        `in_ironic`: the nodes that Ironic has; None: it was not asked.
        """
        trees = {one.uuid for root in roots for one in providers.tree_of(root)}
        first = await together(trees, self._ledger.provider)
        try:
            said = await self.said(providers)
            lacking = {uuid for uuid in roots if uuid not in said.providers.hypervisors}
            there = await together(lacking, self._nova.has_hypervisor)
            partial = said.partial or await self._trouble()
        except NoAnswerError as error:
            return {uuid: [Unclear(uuid, str(error))] for uuid in roots}
        second = await together(trees, self._ledger.provider)
        hosts = provider_rules.Hosts(said.services, in_ironic)
        seen = [said.providers.with_shown(one) for one in (first, second)]
        found: dict[str, list[Finding | Unclear]] = {}
        for uuid in roots:
            earlier, later = (provider_rules.wrongs(uuid, one, hosts, now) for one in seen)
            keys = {one.key for one in earlier if isinstance(one, Finding)}
            found[uuid] = [
                Unclear(uuid, partial or "Nova has the compute node, but does not list it")
                if isinstance(one, Finding)
                and one.code == "dead_provider"
                and (partial or there.get(uuid, True))
                else one
                for one in later
                if isinstance(one, Unclear) or one.key in keys
            ]
        return found

    async def _held(self, uuid: str) -> Held | None:
        shown = await self._ledger.consumer(uuid)
        return None if shown is None else held_of(shown)

    async def _look(self, uuid: str, said: Said) -> Look:
        migration = said.migrations.get(uuid)
        try:
            server = await self._nova.server(uuid if migration is None else migration.server)
            remembered = False
            if server is None and migration is None:
                remembered = await self._nova.remembers(uuid)
        except NoAnswerError as error:
            return Look(unclear=str(error))
        return Look(server, migration, said.moves.get(uuid, ()), remembered)

    async def _trouble(self) -> str:
        """Return why a 404 proves nothing: a cell does not answer. Raises UnfitError."""
        try:
            services = await self._nova.services()
            for canary in [*self.canaries]:
                if await self._nova.server(canary.uuid) is not None:
                    continue
                if any(one.uuid == canary.uuid for one in await self._nova.servers_on(canary.host)):
                    raise UnfitError(
                        f"Nova lists server {canary.uuid}, and answers 404 for it: an administrator"
                        " of all projects must ask"
                    )
                self.canaries.remove(canary)  # it was deleted
        except NoAnswerError as error:
            return str(error)
        return CELLS if _are_unknown(services) else ""


def _are_unknown(services: Collection[Service]) -> bool:
    return any(one.is_unknown for one in services)


def _depends_on_absence(look: Look, held: Held | None, providers: Providers) -> bool:
    """Return whether a verdict depends on a 404, or on which migrations there are."""
    if look.server is None or look.migration is not None:
        return True
    home = providers.home_of(look.server.host, look.server.node)
    return held is not None and bool(providers.compute_roots(held) - {home})
