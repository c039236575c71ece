"""The audit of the ledger against Nova, and against Ironic with or without Nova. It only reads."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from moorage.integrations.ironic.report.mapping import FIELDS
from moorage.integrations.nova import node_rules, provider_rules
from moorage.integrations.nova.asking import LISTS_MAX, Nova, UnfitError
from moorage.integrations.nova.facts import Server
from moorage.integrations.nova.findings import Finding, Unclear
from moorage.integrations.nova.ledger_view import COMPUTE_NODE, Held, Providers, held_of
from moorage.integrations.nova.node_looks import NodeLooks
from moorage.integrations.nova.pacing import NoAnswerError
from moorage.integrations.nova.ports import IronicReads, LedgerReads, Progress
from moorage.integrations.nova.rounds import CELLS, Rounds, Said
from moorage.integrations.nova.state_file import StateFile
from moorage.integrations.nova.survey import Fleet, Ledger, fleet_of, indexed, suspects_on
from moorage.integrations.nova.together import together
from moorage.wire.providers import ProviderShown

ROUNDS: Final = 5
"""How often something is looked at, until two looks in a row agree."""

CANARIES: Final = 3
"""Servers of different projects that must stay visible, for a 404 to say anything."""

PROBES: Final = 3
"""Servers that a list lacks, and that are asked for."""

KNOWN_SHARE: Final = 0.5
"""Of the ledger's compute nodes, Nova must know this part: otherwise it is another cloud's."""

EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)

Outcome = Mapping[str, Collection[Finding | Unclear]]
"""What a round says about each suspect; empty: nothing is wrong."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """How an audit is made.

    `settle`: seconds between two looks. `all_ours`: a consumer without a type, which Nova does not
    remember, was a server of Nova's all the same.
    """

    settle: float = 30.0
    all_ours: bool = False


@dataclass
class Report:
    """What an audit has found. `looked_at` counts what was compared, by what it is."""

    findings: list[Finding] = field(default_factory=list)
    unclear: list[Unclear] = field(default_factory=list)
    looked_at: dict[str, int] = field(default_factory=dict)


class Audit:
    """One audit.

    Calls raise UnfitError, NoAnswerError, StateError, IronicError, and what the ledger raises.
    """

    def __init__(
        self,
        ledger: LedgerReads,
        nova: Nova | None,
        ironic: IronicReads | None,
        wishes: Wishes,
        progress: Progress,
    ) -> None:
        """Prepare to look at the ledger, and at Nova or Ironic or both."""
        self._reads, self._nova, self._ironic = ledger, nova, ironic
        self._wishes, self._progress = wishes, progress
        self._report = Report()
        self._nodes = None if ironic is None else NodeLooks(ledger, ironic, nova)

    async def run(self, state: StateFile) -> Report:
        """Compare everything; `state` has the hosts that need not be surveyed again."""
        ledger, now = await self._ledger()
        if self._nova is not None:
            ledger = await self._of_nova(self._nova, ledger, state, now)
        if self._ironic is not None and self._nodes is not None:
            await self._of_ironic(self._ironic, self._nodes, ledger, now)
        self._report.findings.sort(key=lambda one: one.key)
        self._report.unclear.sort(key=lambda one: (one.subject, one.reason))
        return self._report

    async def _ledger(self) -> tuple[Ledger, datetime]:
        """Return the ledger, and its newest change: it is not later than now."""
        newest = EARLIEST
        shown = {}
        async for provider in self._reads.providers():
            shown[provider.uuid] = provider
            newest = max(newest, provider.updated_at)
            self._progress("reading providers", len(shown), len(shown))
        held: dict[str, Held] = {}
        async for consumer in self._reads.consumers():
            held[consumer.uuid] = held_of(consumer)
            newest = max(newest, consumer.updated_at)
            self._progress("reading consumers", len(held), len(held))
        self._report.looked_at |= {"providers": len(shown), "consumers": len(held)}
        return indexed(Providers(shown), held), newest

    async def _of_nova(self, nova: Nova, ledger: Ledger, state: StateFile, now: datetime) -> Ledger:
        """Compare the ledger with Nova; return it with Nova's compute nodes."""
        rounds = Rounds(self._reads, nova, all_ours=self._wishes.all_ours)
        said = await self._said(rounds, ledger.providers)
        ledger = indexed(said.providers, ledger.held)
        _check_cloud(ledger.providers)
        fleet = fleet_of(ledger, said.services.values())
        self._note_unknown(fleet, ledger)
        suspects = await self._survey(nova, rounds, ledger, fleet, state)
        suspects |= {uuid for root in fleet.left for uuid in ledger.on_root[root]}
        hosts = provider_rules.Hosts(said.services, ())
        roots = {
            root
            for root in {one.root for one in ledger.providers.by_uuid.values()} - {*fleet.unknown}
            if provider_rules.wrongs(root, ledger.providers, hosts, now)
        }

        async def consumers(uuids: Collection[str]) -> Outcome:
            found = await rounds.consumers(uuids, ledger.providers)
            return {uuid: [] if one is None else [one] for uuid, one in found.items()}

        async def providers(uuids: Collection[str]) -> Outcome:
            in_ironic = None if self._nodes is None else await self._nodes.having(uuids)
            return await rounds.providers(uuids, ledger.providers, in_ironic, now)

        await self._confirm("consumers", suspects, consumers)
        await self._confirm("providers", roots, providers)
        return ledger

    async def _said(self, rounds: Rounds, providers: Providers) -> Said:
        """Return what Nova says of its compute nodes; one cell that is away fails all of it."""
        try:
            return await rounds.said(providers)
        except NoAnswerError:
            await asyncio.sleep(self._wishes.settle)
            return await rounds.said(providers)

    def _note_unknown(self, fleet: Fleet, ledger: Ledger) -> None:
        for root in fleet.unknown:
            reason = f"the cell of {ledger.providers.name_of(root)} does not answer"
            for subject in (root, *ledger.on_root.get(root, ())):
                self._report.unclear.append(Unclear(subject, reason))

    async def _survey(
        self, nova: Nova, rounds: Rounds, ledger: Ledger, fleet: Fleet, state: StateFile
    ) -> set[str]:
        """Compare the servers of each host with the ledger; return who is suspect."""
        projects: set[str] = set()
        troubles: dict[str, str] = {}

        async def survey(host: str) -> None:
            roots = fleet.hosts[host]
            there = {uuid for root in roots for uuid in ledger.on_root.get(root, ())}
            try:
                servers = await _whole_list(nova, host, there)
            except NoAnswerError as error:
                troubles[host] = str(error)
                return
            self._take_canary(servers, projects, rounds)
            state.add(host, suspects_on(servers, roots, ledger))

        def count() -> None:
            done = min(len(state.suspects), len(fleet.hosts))
            self._progress("comparing hosts", done, len(fleet.hosts))

        for number in range(ROUNDS):
            left = fleet.hosts.keys() - state.suspects.keys()
            if number and left:
                await asyncio.sleep(self._wishes.settle)
            troubles.clear()
            await together(left, survey, count)
        for host, trouble in troubles.items():
            roots = fleet.hosts[host]
            self._report.unclear += [Unclear(root, trouble) for root in roots or (host,)]
        self._report.looked_at["hosts"] = len(fleet.hosts) - len(troubles)
        suspects = {uuid for host in fleet.hosts for uuid in state.suspects.get(host, ())}
        unsurveyed = (root for host in troubles for root in fleet.hosts[host])
        return suspects.union(*(ledger.on_root.get(root, ()) for root in unsurveyed))

    def _take_canary(self, servers: Iterable[Server], projects: set[str], rounds: Rounds) -> None:
        for one in servers:
            if len(projects) < CANARIES and one.project not in projects and one.is_settled:
                projects.add(one.project)
                rounds.canaries.append(one)

    async def _of_ironic(
        self, ironic: IronicReads, looks: NodeLooks, ledger: Ledger, now: datetime
    ) -> None:
        """Compare the ledger with Ironic's nodes."""
        nodes = {str(one["uuid"]): one for one in await ironic.all(FIELDS)}
        self._report.looked_at["nodes"] = len(nodes)
        providers, nova = ledger.providers, self._nova
        ours = {
            one.uuid
            for one in providers.by_uuid.values()
            if provider_rules.is_ironic(one, providers)
        }
        if len(ours & nodes.keys()) < KNOWN_SHARE * len(ours):
            raise UnfitError(_another("Ironic", len(ours & nodes.keys()), len(ours), "nodes"))
        on_node: dict[str, list[str]] = {}
        for held in ledger.held.values():
            for provider in held.holdings:
                if provider in nodes:
                    on_node.setdefault(provider, []).append(held.uuid)
        found = {one.consumer for one in self._report.findings if one.consumer}
        suspects = {
            uuid
            for uuid in ours | nodes.keys()
            if _is_odd(providers.by_uuid.get(uuid), nodes.get(uuid), on_node.get(uuid, []))
            or not found.isdisjoint(on_node.get(uuid, []))
        }

        async def look(uuids: Collection[str]) -> Outcome:
            before = [] if nova is None else await nova.services()
            found = await looks.look({uuid: on_node.get(uuid, ()) for uuid in uuids}, now)
            after = [] if nova is None else await nova.services()
            if any(one.is_unknown for one in (*before, *after)):
                return {uuid: [_doubted(one) for one in those] for uuid, those in found.items()}
            return found

        await self._confirm("nodes", suspects, look)

    async def _confirm(
        self,
        what: str,
        suspects: Collection[str],
        look: Callable[[Collection[str]], Awaitable[Outcome]],
    ) -> None:
        """Look again and again, until two looks in a row say the same; keep what they say."""
        pending, last = set(suspects), dict[str, Collection[Finding | Unclear]]()
        confirmed: dict[str, list[Finding]] = {}
        seen: dict[str, dict[tuple[str, str, str], Finding]] = {}
        for number in range(ROUNDS):
            if number and pending:
                await asyncio.sleep(self._wishes.settle)
            self._progress(f"looking at {what}", len(suspects) - len(pending), len(suspects))
            for uuid, found in (await look(pending)).items() if pending else ():
                known = seen.setdefault(uuid, {})
                sure = [one for one in found if isinstance(one, Finding) and _agrees(one, known)]
                last[uuid], confirmed[uuid] = found, sure
                if len(sure) == len(found):
                    pending.discard(uuid)
                if not any(isinstance(one, Unclear) for one in found):
                    known.clear()  # a look that says nothing takes nothing back
                known |= {one.key: one for one in found if isinstance(one, Finding)}
        self._report.findings += [one for those in confirmed.values() for one in those]
        for uuid in pending:
            for one in last[uuid]:
                if isinstance(one, Unclear) or one not in confirmed[uuid]:
                    why = one.reason if isinstance(one, Unclear) else "each look differs"
                    self._report.unclear.append(Unclear(uuid, why))


async def _whole_list(nova: Nova, host: str, consumers: Collection[str]) -> list[Server]:
    """Return the servers of a host; a cell that does not answer is left out of a list in silence.

    So some of the consumers that are not listed are asked for: are they there after all?
    Raises NoAnswerError.
    """
    for _ in range(LISTS_MAX):
        servers = await nova.servers_on(host)
        listed = {one.uuid for one in servers}
        for uuid in sorted({*consumers} - listed)[:PROBES]:
            server = await nova.server(uuid)
            if server is not None and server.is_unknown:
                raise NoAnswerError(f"the cell of {host} does not answer")
            if server is not None and server.is_listed_on(host):
                break
        else:
            return servers
    raise NoAnswerError(f"Nova's list of the servers on {host} is not complete")


def _is_odd(provider: ProviderShown | None, node: node_rules.Node | None, held: list[str]) -> bool:
    """Return whether a node must be looked at: the ledger and Ironic do not say the same."""
    if provider is None or node is None:
        return node is None or node_rules.node_without_provider(node, provider) is not None
    named = node.get("instance_uuid")
    return held != ([named] if named else []) or node_rules.node_traits(provider, node) is not None


def _agrees(one: Finding, known: Mapping[tuple[str, str, str], Finding]) -> bool:
    """Return whether an earlier look found the same: exactly that, if it can be healed."""
    earlier = known.get(one.key)
    return earlier is not None and (earlier == one or not one.is_healable)


def _doubted(one: Finding | Unclear) -> Finding | Unclear:
    """Return a finding as unclear, if it depends on servers that may be in a silent cell."""
    if isinstance(one, Finding) and one.code == "instance_disagrees":
        return Unclear(one.provider, CELLS)
    return one


def _check_cloud(providers: Providers) -> None:
    """Raise UnfitError if the ledger is not that of this Nova."""
    roots = [one for one in providers.by_uuid.values() if COMPUTE_NODE in one.traits]
    known = sum(one.uuid in providers.hypervisors for one in roots)
    if known < KNOWN_SHARE * len(roots):
        raise UnfitError(_another("Nova", known, len(roots), "compute nodes"))


def _another(system: str, known: int, count: int, what: str) -> str:
    return (
        f"{system} knows only {known} of the {count} {what} in the ledger: is --os-cloud another"
        " cloud's, or a cell away?"
    )
