"""`moorage provider list`, `show`, `drain` and `delete`, and the group of all its commands."""

from collections.abc import Iterable
from itertools import islice

import click

from moorage.cli.commands.provider import change, tree
from moorage.cli.support import completion, ids
from moorage.cli.support.command import administering, at_server, server_now
from moorage.cli.support.irreversible import Ask, irreversible
from moorage.cli.support.options import WholeNumber, example, json_option, wide_option
from moorage.cli.support.output import CONFLICT, Failure, say, say_or_json, show_json, show_table
from moorage.cli.support.tables import NOTHING, Column, Row, show_rows
from moorage.cli.support.views.cells import age_cell, id_cells, state_cell
from moorage.cli.support.views.consumer_text import COLUMNS as CONSUMERS
from moorage.cli.support.views.consumer_text import resources_text, row
from moorage.cli.support.views.provider_text import state_text
from moorage.client.ledger import Ledger
from moorage.wire.providers import ConsumersAsked, InventoryShown, ProviderShown

COLUMNS = (
    Column("id"),
    Column("name", least=20),
    Column("state"),
    Column("used", dropped=1, least=16),
    Column("parent", dropped=2, least=8),
    Column("traits", dropped=4, right=True),
    Column("changed", dropped=3, right=True),
    Column("reason", least=16, last=True),
)

INVENTORIES = (
    Column("class", least=12),
    Column("total", right=True),
    Column("reserved", dropped=2, right=True),
    Column("ratio", right=True),
    Column("offered", dropped=3, right=True),
    Column("capacity", dropped=1, added=2, right=True),
    Column("used", right=True),
    Column("free", added=1, right=True),
    Column("min", dropped=4, right=True),
    Column("max", dropped=4, right=True),
    Column("step", dropped=4, right=True),
)

SHOWN_CONSUMERS = 100
"""Consumers that `provider show` prints."""

NODE = "r05-n04"
"""The provider of the examples."""


@click.group("provider")
def group() -> None:
    """Look at providers: hosts, their parts, and what they share; change, drain, delete them.

    Name a provider by its exact name, its UUID or a prefix of the UUID.
    """


_PROVIDER = click.argument("text", metavar="PROVIDER", shell_complete=completion.providers)
_REASON = click.option("--reason", default="", help="Reason, shown in the audit log and to others.")


@group.command("list", epilog=example("moorage provider list --drained", "moorage provider list"))
@administering
@click.option("--name", help="Only providers with this text in their names.")
@click.option(
    "--class",
    "resource_class",
    metavar="CLASS",
    help="Only providers that have this resource class.",
)
@click.option("--trait", help="Only providers with this trait.")
@click.option("--root", "only_roots", is_flag=True, help="Only providers without a parent.")
@click.option("--drained", is_flag=True, help="Only providers that offer nothing.")
@click.option("--used/--unused", default=None, help="Only providers with allocations, or without.")
@click.option(
    "--limit",
    type=WholeNumber(1, 1_000_000),
    help="Print at most this many, the first by UUID; all by default.",
)
@wide_option
@json_option
def list_(
    name: str | None,
    resource_class: str | None,
    trait: str | None,
    only_roots: bool,
    drained: bool,
    used: bool | None,
    limit: int | None,
    wide: bool,
    as_json: bool,
) -> None:
    """Print providers by name, with their usage."""

    def is_wanted(one: ProviderShown) -> bool:
        return (
            (name is None or name in one.name)
            and (resource_class is None or resource_class in one.inventories)
            and (trait is None or trait in one.traits)
            and not (only_roots and one.parent is not None)
            and not (drained and one.withheld is None)
            and used in (None, _is_used(one))
        )

    with at_server(Ledger) as ledger:
        found = [*islice(filter(is_wanted, ledger.providers()), limit)]
    found.sort(key=lambda one: (one.name, one.uuid))
    if as_json:
        show_json(found)
        return
    now, shown = server_now(), id_cells(one.uuid for one in found)
    rows: list[Row] = [
        [
            shown[one.uuid],
            one.name,
            state_cell(state_text(one)),
            _used_text(one),
            one.parent or NOTHING,
            str(len(one.traits)),
            age_cell(one.updated_at, now),
            one.withheld or NOTHING,
        ]
        for one in found
    ]
    show_rows(COLUMNS, rows, wide=wide)


@group.command(epilog=example(f"moorage provider show {NODE}"))
@administering
@_PROVIDER
@wide_option
@json_option
def show(text: str, wide: bool, as_json: bool) -> None:
    """Print PROVIDER with its inventories, its children and its consumers."""
    with at_server(Ledger) as ledger:
        one = ids.provider_named(ledger, text)
        asked = ConsumersAsked(provider=one.uuid)
        consumers = [*islice(ledger.consumers(asked), SHOWN_CONSUMERS + 1)]
    more = len(consumers) > SHOWN_CONSUMERS
    consumers = consumers[:SHOWN_CONSUMERS]
    if as_json:
        shown = {"provider": one, "consumers": consumers, "more_consumers": more}
        show_json(shown)
        return
    facts = {
        "uuid": one.uuid,
        "name": one.name,
        "state": state_text(one),
        "reason": one.withheld or NOTHING,
        "parent": one.parent or NOTHING,
        "root": one.root,
        "generation": str(one.generation),
        "agent": one.agent or NOTHING,
        "traits": ", ".join(one.traits) or NOTHING,
        "aggregates": ", ".join(one.aggregates) or NOTHING,
        "reported by": ", ".join(sorted(one.reported)) or NOTHING,
    }
    show_table(["property", "value"], [[name, value] for name, value in facts.items()])
    if one.inventories:
        show_rows(INVENTORIES, [*map(_inventory_row, one.inventories.items())], wide=wide)
    if not consumers:
        say("nobody uses it")
        return
    now, texts = server_now(), id_cells(each.uuid for each in consumers)
    rows = [row(each, texts[each.uuid], now, one.uuid) for each in consumers]
    show_rows(CONSUMERS, rows, wide=wide)
    if more:
        say(f"moorage: there are more; see 'moorage consumer list --provider {one.uuid}'", err=True)


@group.command(
    epilog=example(
        f'moorage provider drain {NODE} --reason "new disks"',
        f"moorage provider drain {NODE} --undo",
    )
)
@administering
@_PROVIDER
@click.option("--undo", is_flag=True, help="End the drain: use the provider again.")
@_REASON
@json_option
def drain(text: str, undo: bool, reason: str, as_json: bool) -> None:
    """Place nothing new on PROVIDER or below it; allocations stay.

    Inventories and traits stay, and others may keep writing them. Drain the machine of an agent
    with `moorage agent drain`, and a compute node of nova also with
    `openstack compute service set --disable`.
    """
    with at_server(Ledger) as ledger:
        one = ids.provider_named(ledger, text)
        act = ledger.provider_resume if undo else ledger.provider_drain
        done = act(one.uuid, reason)
    if as_json:
        show_json(done)
    elif done.withheld is None:
        say(f"provider {done.name} is no longer drained")
    elif undo and one.withheld == done.withheld:
        say(f"provider {done.name} was not drained, but is withheld: {done.withheld}")
    else:
        left = _used_text(done)
        say(f"provider {done.name} is {done.withheld}; in use: {left}")


@group.command(epilog=example(f"moorage provider delete {NODE} --yes"))
@administering
@_PROVIDER
@_REASON
@irreversible("provider delete")
@json_option
def delete(text: str, reason: str, sure: Ask, as_json: bool) -> None:
    """Delete PROVIDER with its inventories; refused if it has allocations or children."""
    with at_server(Ledger) as ledger:
        one = ids.provider_named(ledger, text, whole=True)
        if _is_used(one):
            raise Failure(
                CONFLICT,
                f"provider {one.name} is in use ({_used_text(one)}); see"
                f" 'moorage consumer list --provider {one.name}'",
                "provider_in_use",
            )
        sure(f"{one.name} ({one.uuid})")
        ledger.provider_delete(one.uuid, reason)
    say_or_json(as_json, {"deleted": one.uuid, "name": one.name}, f"deleted provider {one.name}")


def _is_used(one: ProviderShown) -> bool:
    return any(each.used for each in one.inventories.values())


def _used_text(one: ProviderShown) -> str:
    """Return what is used of each class that is used."""
    used: Iterable[tuple[str, int]] = (
        (name, each.used) for name, each in sorted(one.inventories.items()) if each.used
    )
    return resources_text(dict(used)) or NOTHING


def _inventory_row(item: tuple[str, InventoryShown]) -> Row:
    name, one = item
    return [
        name,
        str(one.total),
        str(one.reserved),
        f"{one.allocation_ratio:g}",
        NOTHING if one.offered is None else str(one.offered),
        str(one.capacity),
        str(one.used),
        str(one.free),
        str(one.min_unit),
        str(one.max_unit),
        str(one.step_size),
    ]


group.add_command(change.set_)
group.add_command(tree.tree)
