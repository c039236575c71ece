"""`moorage reshape split` and its like: each writes a plan for a frequent case; none changes it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from moorage.cli.support import completion, ids
from moorage.cli.support.command import administering, at_server
from moorage.cli.support.documents import STREAM, read, write
from moorage.cli.support.options import example
from moorage.cli.support.output import FAILED, Failure, say
from moorage.client.ledger import Ledger
from moorage.core.counting import counted
from moorage.core.ids import is_normal
from moorage.wire.dataclass import members
from moorage.wire.providers import ConsumersAsked, ConsumerShown, ProviderShown
from moorage.wire.reshapes import ReshapePlan

if TYPE_CHECKING:
    from moorage.client.plans.evidence import Evidence

_OUTPUT = click.option(
    "-o",
    "--output",
    metavar="FILE",
    default=STREAM,
    type=click.Path(),
    help="Write the plan to FILE; to standard output by default.",
)
_SPLIT = click.option(
    "--provider",
    "parent",
    metavar="PROVIDER",
    required=True,
    shell_complete=completion.providers,
    help="The provider whose inventories are split.",
)
_BY = click.option(
    "--by",
    "path",
    metavar="FILE",
    required=True,
    type=click.Path(),
    help="Evidence: the children, and what each consumer uses of them; JSON or YAML.",
)
_FIT = click.option(
    "--fit",
    is_flag=True,
    help="Let the server find a child for consumers without evidence; otherwise they stay.",
)
_DRIFT = click.option(
    "--accept-drift",
    multiple=True,
    metavar="CONSUMER",
    help="Take the evidence for this consumer, whatever the ledger says; may be repeated.",
)
_TOP = click.option(
    "--provider",
    "top",
    metavar="PROVIDER",
    shell_complete=completion.providers,
    help="Only this provider and all below it; by default all providers.",
)
_NEW_NAME = click.option(
    "--name", help="The name of the host in the end, if NEW is a UUID or a provider."
)


@click.command(
    epilog=example("moorage reshape split --provider node-1 --class VGPU --by cards.yaml -o p.json")
)
@administering
@_SPLIT
@click.option("--class", "name", metavar="CLASS", required=True, help="The class that is split.")
@_BY
@_FIT
@_DRIFT
@_OUTPUT
def split(
    parent: str, name: str, path: str, fit: bool, accept_drift: tuple[str, ...], output: str
) -> None:
    """Write a plan that splits one class of a provider over children, by evidence in FILE.

    Children that do not exist are created. Consumers without evidence stay on the provider with
    their units, until another split with more evidence. Nothing is changed: see `moorage reshape
    commit`.
    """

    def parse(document: Any, _: ProviderShown) -> "Evidence":
        from moorage.client.plans.evidence import of_class

        return of_class(document, name)

    _split(parent, path, parse, output, fit=fit, accept_drift=accept_drift)


@click.command(epilog=example("moorage reshape numa --provider node-1 --by cells.yaml -o p.json"))
@administering
@_SPLIT
@_BY
@_FIT
@_DRIFT
@_OUTPUT
def numa(parent: str, path: str, fit: bool, accept_drift: tuple[str, ...], output: str) -> None:
    """Write a plan that splits classes of a host over its NUMA cells, by evidence in FILE.

    Such as VCPU, MEMORY_MB and huge pages. Otherwise it is as `moorage reshape split`.
    """

    def parse(document: Any, _: ProviderShown) -> "Evidence":
        from moorage.client.plans.evidence import of_cells

        return of_cells(document)

    _split(parent, path, parse, output, fit=fit, accept_drift=accept_drift)


@click.command(epilog=example("moorage reshape pci --provider node-1 --by devices.yaml -o p.json"))
@administering
@_SPLIT
@_BY
@_FIT
@_DRIFT
@_OUTPUT
def pci(parent: str, path: str, fit: bool, accept_drift: tuple[str, ...], output: str) -> None:
    """Write a plan that gives each PCI device of a host a provider, by addresses in FILE.

    Their names are those that Nova gives them. Otherwise it is as `moorage reshape split`.
    """

    def parse(document: Any, host: ProviderShown) -> "Evidence":
        from moorage.client.plans.evidence import of_devices

        return of_devices(document, host.name)

    _split(parent, path, parse, output, fit=fit, accept_drift=accept_drift)


@click.command(
    "rename-class", epilog=example("moorage reshape rename-class VGPU CUSTOM_VGPU_A16 -o p.json")
)
@administering
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@_TOP
@_OUTPUT
def rename_class(old: str, new: str, top: str | None, output: str) -> None:
    """Write a plan that makes NEW of all inventories and allocations of the class OLD.

    NEW must exist before the plan is committed. Nothing is changed by this.
    """
    from moorage.client.plans.class_renaming import rename_class_plan
    from moorage.client.plans.trees import below

    with at_server(Ledger) as ledger, _plan_errors():
        if top is None:
            having = [one for one in ledger.providers() if old in one.inventories]
        else:
            first = ids.provider_named(ledger, top)
            having = [first, *below(first, _trees(ledger, first))]
        plan = rename_class_plan(old, new, having)
    _written(plan, output)


@click.command(
    "move-host",
    epilog=example(
        "moorage reshape move-host node-1 rack7-node1 -o p.json",
        "moorage reshape move-host node-1 1e5c9d2a-0000-4000-8000-000000000001 -o p.json",
    ),
)
@administering
@click.argument("old", metavar="OLD", shell_complete=completion.providers)
@click.argument("new", metavar="NEW")
@_NEW_NAME
@_OUTPUT
def move_host(old: str, new: str, name: str | None, output: str) -> None:
    """Write a plan that gives the host OLD the UUID or the name NEW.

    If NEW is a provider that exists, it takes the place of OLD. All inventories, traits,
    aggregates, allocations and children go along. Nothing is changed by this.
    """
    with at_server(Ledger) as ledger, _plan_errors():
        plan = _moved(ledger, ids.provider_named(ledger, old), new, name)
    _written(plan, output)


COMMANDS = (split, numa, pci, rename_class, move_host)
"""What `moorage reshape` adds to its commands."""


def _moved(ledger: Ledger, old: ProviderShown, new: str, name: str | None) -> ReshapePlan:
    from moorage.client.plans.host_moving import (
        new_host_plan,
        rename_host_plan,
        replaced_host_plan,
    )

    uuid = new.lower()
    found = ledger.providers_named(new)
    if not found and is_normal(uuid):
        found = ledger.providers_with(uuid, 1)
    if found:
        plan = replaced_host_plan(old, found[0], name, _trees(ledger, old, found[0]))
    elif is_normal(uuid):
        plan = new_host_plan(old, uuid, name, _trees(ledger, old))
    elif name is not None:
        raise click.UsageError("--name is for a NEW that is a UUID or a provider")
    else:
        return rename_host_plan(old, new, _trees(ledger, old))
    if old.withheld is not None and not plan.drain:
        say(
            f"moorage: {old.name} is withheld ({old.withheld}); look whether what takes its place"
            " should be",
            err=True,
        )
    return plan


def _split(
    text: str,
    path: str,
    parse: "Callable[[Any, ProviderShown], Evidence]",
    output: str,
    *,
    fit: bool,
    accept_drift: tuple[str, ...],
) -> None:
    """Write the plan that splits a provider by a file."""
    from moorage.client.plans.splitting import split_plan

    with at_server(Ledger) as ledger, _plan_errors():
        parent = ids.provider_named(ledger, text)
        evidence = read(path, "the evidence", lambda document: parse(document, parent))
        named = (ledger.providers_named(child.name) for child in evidence.children)
        children = {one.name: one for found in named for one in found}
        plan = split_plan(
            parent,
            children,
            _consumers(ledger, [parent, *children.values()]),
            evidence,
            fit=fit,
            accept_drift=[one.lower() for one in accept_drift],
        )
    _written(plan, output)


def _consumers(ledger: Ledger, providers: list[ProviderShown]) -> list[ConsumerShown]:
    """Return all consumers that hold something of these providers, by UUID."""
    found: dict[str, ConsumerShown] = {}
    for one in providers:
        asked = ConsumersAsked(provider=one.uuid)
        found.update((consumer.uuid, consumer) for consumer in ledger.consumers(asked))
    return [found[uuid] for uuid in sorted(found)]


def _trees(ledger: Ledger, *tops: ProviderShown) -> list[ProviderShown]:
    """Return all providers of the trees that these belong to."""
    roots = {one.root for one in tops}
    return [one for one in ledger.providers() if one.root in roots]


@contextmanager
def _plan_errors() -> Iterator[None]:
    """Raise Failure, 1, if no plan can be made."""
    from moorage.client.plans.plan_error import PlanError

    try:
        yield
    except PlanError as error:
        raise Failure(FAILED, str(error)) from None


def _written(plan: ReshapePlan, output: str) -> None:
    """Write a plan without its empty members; say what it has, if it goes to a file."""
    document = {name: value for name, value in members(plan).items() if value}
    document.pop("expect", None)
    write(output, document)
    if output != STREAM:
        stay = f", {counted(len(plan.stay), 'consumer')} without evidence" if plan.stay else ""
        say(f"{output}: {counted(len(plan.moves), 'move')}{stay}")
        say(f"look at it with: moorage reshape plan {output}")
