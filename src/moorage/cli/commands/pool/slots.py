"""`moorage pool slots` and `moorage pool slot`: the named slots of a pool."""

from collections.abc import Mapping
from datetime import datetime

import click

from moorage.cli.support import completion, ids
from moorage.cli.support.command import administering, at_server, server_now
from moorage.cli.support.irreversible import Ask, irreversible
from moorage.cli.support.options import example, json_option, label_option, wide_option
from moorage.cli.support.output import say, say_or_json, show_json
from moorage.cli.support.tables import NOTHING, Cell, Column, Row, show_rows
from moorage.cli.support.views.cells import age_cell, id_cells, state_cell
from moorage.cli.support.views.lease_text import late_line
from moorage.cli.support.views.pool_text import plain_text
from moorage.client.admission import Admission
from moorage.core.counting import counted
from moorage.wire.labels import holder_of
from moorage.wire.slots import Slot

COLUMNS = (
    Column("slot"),
    Column("state"),
    Column("since", "age", right=True),
    Column("holder", dropped=2, least=12),
    Column("lease", dropped=4),
    Column("labels", dropped=3, least=16),
    Column("reason", dropped=1, least=14, last=True),
)

_POOL = click.argument("name", metavar="POOL", shell_complete=completion.pools)
_SLOT = click.argument("slot")


_LABELS = label_option("NAME=VALUE; may be repeated.")


@click.command("slots", epilog=example("moorage pool slots clusters/aws"))
@administering
@_POOL
@wide_option
@json_option
def list_(name: str, wide: bool, as_json: bool) -> None:
    """Print the named slots of POOL: their states, holders and labels."""
    with at_server(Admission) as admission:
        slots = ids.pool_of(
            admission, name, lambda one: list(admission.slots(one).all()), reads=True
        )
    if as_json:
        show_json(slots)
        return
    leases, now = id_cells(slot.lease for slot in slots if slot.lease is not None), server_now()
    show_rows(COLUMNS, [_row(slot, leases, now) for slot in slots], wide=wide)


@click.group("slot")
def group() -> None:
    """Add, label, drain and remove named slots."""


@group.command(epilog=example("moorage pool slot add clusters/aws eu-1 eu-2 --label region=eu"))
@administering
@_POOL
@click.argument("slots", nargs=-1, required=True)
@_LABELS
@json_option
def add(name: str, slots: tuple[str, ...], labels: dict[str, str] | None, as_json: bool) -> None:
    """Add free SLOTS to POOL, which was created with --native-slots."""
    with at_server(Admission) as admission:
        ids.pool_of(admission, name, lambda one: admission.slots(one).add([*slots], labels or {}))
    say_or_json(
        as_json, {"pool": name, "slots": [*slots]}, f"{name} has {counted(len(slots), 'slot')}:"
    )
    if not as_json:
        say(f"  {' '.join(slots)}")


@group.command(epilog=example("moorage pool slot label clusters/aws eu-1 --label region=eu"))
@administering
@_POOL
@_SLOT
@_LABELS
@json_option
def label(name: str, slot: str, labels: dict[str, str] | None, as_json: bool) -> None:
    """Replace all labels of SLOT; without --label it has none."""
    with at_server(Admission) as admission:
        found = ids.pool_of(
            admission, name, lambda one: admission.slots(one).label(slot, labels or {})
        )
    say_or_json(as_json, found, f"labelled {slot}: {plain_text(found.labels)}")


@group.command(epilog=example("moorage pool slot drain clusters/aws eu-1 --reason 'disk fails'"))
@administering
@_POOL
@_SLOT
@click.option("--keep", is_flag=True, help="Keep the slot once it is free, instead of removing it.")
@click.option("--reason", default="", help="Reason, shown with the slot.")
@json_option
def drain(name: str, slot: str, keep: bool, reason: str, as_json: bool) -> None:
    """Never grant SLOT again; remove it once it is free, unless there is --keep."""
    with at_server(Admission) as admission:
        found = ids.pool_of(
            admission, name, lambda one: admission.slots(one).drain(slot, keep=keep, reason=reason)
        )
    if found is None:
        line = f"removed {slot}: it was free"
    elif found.owner is None:
        line = f"drained {slot}: it is free, and stays drained until it is resumed or removed"
    else:
        then = "stays drained" if keep else "is removed"
        line = f"draining {slot}: {_holder(found)} holds it; once released, it {then}"
    say_or_json(as_json, {"slot": found}, line)


@group.command(epilog=example("moorage pool slot resume clusters/aws eu-1"))
@administering
@_POOL
@_SLOT
@json_option
def resume(name: str, slot: str, as_json: bool) -> None:
    """Let the drained SLOT be granted again."""
    with at_server(Admission) as admission:
        found = ids.pool_of(admission, name, lambda one: admission.slots(one).resume(slot))
    say_or_json(as_json, found, f"resumed {slot}")


@group.command(epilog=example("moorage pool slot remove clusters/aws eu-1"))
@administering
@_POOL
@_SLOT
@irreversible("pool slot remove")
@json_option
def remove(name: str, slot: str, sure: Ask, as_json: bool) -> None:
    """Remove the free SLOT; exit code 4 if it is held (drain it instead)."""
    sure(f"{slot} of {name}")
    with at_server(Admission) as admission:
        ids.pool_of(admission, name, lambda one: admission.slots(one).remove(slot))
    say_or_json(as_json, {"pool": name, "slot": slot, "removed": True}, f"removed {slot}")


def _row(slot: Slot, leases: Mapping[str, Cell], now: datetime) -> Row:
    return [
        slot.name,
        state_cell(slot.state),
        age_cell(slot.since, now),
        _holder(slot),
        NOTHING if slot.lease is None else leases[slot.lease],
        plain_text(slot.labels),
        _reason(slot),
    ]


def _reason(slot: Slot) -> str:
    """Return why it is drained, and whose late release is expected."""
    said = [] if slot.drain is None else [slot.drain.reason]
    said += [late_line(one) for one in slot.late_releases if one.until is not None]
    return "; ".join(filter(None, said)) or NOTHING


def _holder(slot: Slot) -> str:
    return NOTHING if slot.owner is None else holder_of(slot.owner, slot.lease_labels)
