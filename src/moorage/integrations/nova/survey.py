"""What a first comparison suspects: cheap, and never a verdict. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from moorage.integrations.nova.consumer_rules import Look, judge
from moorage.integrations.nova.facts import Server, Service
from moorage.integrations.nova.ledger_view import Held, Providers, service_named


@dataclass(frozen=True)
class Ledger:
    """The ledger when an audit began: providers, consumers, and which of them are on a tree."""

    providers: Providers
    held: Mapping[str, Held]
    on_root: Mapping[str, Collection[str]]


def indexed(providers: Providers, held: Mapping[str, Held]) -> Ledger:
    """Return the ledger with the consumers of each compute node."""
    on_root: dict[str, set[str]] = {}
    for one in held.values():
        for root in providers.compute_roots(one):
            on_root.setdefault(root, set()).add(one.uuid)
    return Ledger(providers, held, on_root)


def suspects_on(servers: Iterable[Server], roots: Iterable[str], ledger: Ledger) -> set[str]:
    """Return the servers of a service, and the consumers of its nodes, that do not fit together."""
    seen = {one.uuid: one for one in servers}
    odd = {
        uuid
        for uuid, server in seen.items()
        if judge(uuid, ledger.held.get(uuid), Look(server), ledger.providers, all_ours=False)
    }
    there = {uuid for root in roots for uuid in ledger.on_root.get(root, ())}
    return odd | (there - seen.keys())


@dataclass(frozen=True)
class Fleet:
    """The hosts to survey, with their nodes; and the nodes that belong to none of them.

    `unknown` are the nodes whose cell does not answer.
    """

    hosts: Mapping[str, Collection[str]]
    left: Collection[str]
    unknown: Collection[str]


def fleet_of(ledger: Ledger, services: Iterable[Service]) -> Fleet:
    """Return which hosts can be asked about, and which consumers are on no such host."""
    hosts: dict[str, set[str]] = {}
    unknown: set[str] = set()
    nodes: dict[str, set[str]] = {}
    for one in ledger.providers.hypervisors.values():
        nodes.setdefault(one.host, set()).add(one.uuid)
    silent = set()
    for service in services:
        if service.is_unknown:
            silent.add(service.host)
            unknown |= nodes.get(service.host, set())
        else:
            hosts[service.host] = nodes.get(service.host, set())
    covered = {root for roots in hosts.values() for root in roots}
    left: set[str] = set()
    for root in ledger.on_root.keys() - covered - unknown:
        # A cell that does not answer names the service, but no compute node.
        is_silent = service_named(ledger.providers.name_of(root), silent) is not None
        (unknown if is_silent else left).add(root)
    return Fleet(hosts, left, unknown)
