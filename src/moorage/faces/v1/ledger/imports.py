"""Moving the ledger in from another one: begin, rows, finish, abort; and its rows as they are."""

from collections.abc import Callable, Iterable
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

from moorage.core.errors import Code, Error
from moorage.core.ids import AggregateId, ConsumerId, ProviderId
from moorage.core.ledger.import_mark import Beginning
from moorage.core.ledger.imported_rows import ProviderImage, Rows, check_count
from moorage.core.ledger.model import (
    Consumer,
    CustomName,
    Described,
    Import,
    Inventory,
)
from moorage.core.limits import IMPORT_BYTES_MAX, IMPORT_NAMES_MAX, IMPORT_ROW_NAMES_MAX
from moorage.faces.json_decoding import decoded, json_decode
from moorage.faces.v1.decoding import fitted, misfit
from moorage.faces.v1.routing import Handlers, Request
from moorage.faces.web import RefusalError
from moorage.service.fair_turns import Pieces
from moorage.service.values import instant_of, time_of, uuid_of
from moorage.wire.imports import (
    ConsumerRow,
    FinishAsked,
    ImportShown,
    ImportWanted,
    InventoryRow,
    LedgerRows,
    NameRow,
    ProviderRow,
    RowsAsked,
    RowsGone,
    RowsWanted,
)
from moorage.wire.operations import imports as operations

T = TypeVar("T")
W = TypeVar("W")


async def begin(request: Request[ImportWanted, None]) -> ImportShown:
    """Begin an import, or resume it."""
    body = request.body
    wanted = Beginning(body.source, body.writer, body.resumes)
    return _shown(await request.service.imports.begin(wanted, request.actor))


async def read(request: Request[None, None]) -> ImportShown:
    """Return the import that is under way."""
    return _shown(await request.service.imports.under_way())


async def write(request: Request[bytes, None]) -> None:
    """Write rows of the import, all or nothing."""
    rows, writer = await _rows(request.body, Pieces(request.service.turns))
    await request.service.imports.write(rows, writer)


async def finish(request: Request[None, FinishAsked]) -> None:
    """End the import."""
    await request.service.imports.finish(request.actor, request.parameters.writer)


async def abort(request: Request[None, None]) -> None:
    """Delete what was imported, and end the import."""
    await request.service.imports.abort(request.actor)


async def page(request: Request[None, RowsAsked]) -> LedgerRows:
    """Return rows of one kind, by name or UUID."""
    asked, imports = request.parameters, request.service.imports
    pieces = Pieces(request.service.turns)
    if asked.kind == "providers":
        revision, providers, following = await imports.providers(asked.after, asked.limit)
        provider_rows = [_provider_shown(one) async for one in pieces.each(providers)]
        return LedgerRows(providers=provider_rows, next=following, revision=revision)
    if asked.kind == "consumers":
        after = ConsumerId(asked.after)
        revision, consumers, following = await imports.consumers(after, asked.limit)
        consumer_rows = [_consumer_shown(one) async for one in pieces.each(consumers)]
        return LedgerRows(consumers=consumer_rows, next=following, revision=revision)
    revision, names, following = await imports.names(asked.kind, asked.after, asked.limit)
    shown = [_name_shown(one) for one in names]
    if asked.kind == "classes":
        return LedgerRows(classes=shown, next=following, revision=revision)
    return LedgerRows(traits=shown, next=following, revision=revision)


HANDLERS: Handlers = {
    operations.BEGIN_IMPORT: begin,
    operations.GET_IMPORT: read,
    operations.WRITE_IMPORTED_ROWS: write,
    operations.FINISH_IMPORT: finish,
    operations.ABORT_IMPORT: abort,
    operations.LIST_LEDGER_ROWS: page,
}


async def _rows(body: bytes, pieces: Pieces) -> tuple[Rows, str | None]:
    """Decode rows, some at a time, and who writes them.

    Raises RefusalError, and `Error`: LIMIT_EXCEEDED, INVALID.
    """
    if len(body) > IMPORT_BYTES_MAX:
        raise RefusalError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"Rows of more than {IMPORT_BYTES_MAX} bytes: send several requests.",
        )
    value = await decoded(body, partial(json_decode, body))
    if not isinstance(value, dict):
        raise misfit("it must be an object")
    lists = {
        name: value.pop(name)
        for name in ("classes", "traits", "providers", "consumers")
        if isinstance(value.get(name), list)
    }
    gone = value.get("gone")
    lists_gone = gone.values() if isinstance(gone, dict) else ()
    deleted = sum(len(one) for one in lists_gone if isinstance(one, list))
    check_count(deleted + sum(map(len, lists.values())))
    rest = fitted(value, RowsWanted)
    _check_widths(lists.values())

    async def each(name: str, kind: type[W], convert: Callable[[W], T]) -> list[T]:
        return [convert(fitted(row, kind)) async for row in pieces.each(lists.get(name, ()))]

    classes = await each("classes", NameRow, _name)
    traits = await each("traits", NameRow, _name)
    providers = await each("providers", ProviderRow, _provider)
    consumers = await each("consumers", ConsumerRow, _consumer)
    found = Rows(
        classes=_unique(classes, lambda one: one.name),
        traits=_unique(traits, lambda one: one.name),
        providers=_unique(providers, lambda one: one.uuid),
        consumers=_unique(consumers, lambda one: one.uuid),
        **_gone(rest.gone),
    )
    return found, rest.writer


def _gone(gone: RowsGone) -> dict[str, Any]:
    return {
        "gone_classes": frozenset(gone.classes),
        "gone_traits": frozenset(gone.traits),
        "gone_providers": frozenset(_provider_id(one) for one in gone.providers),
        "gone_consumers": frozenset(ConsumerId(uuid_of(one, "uuid")) for one in gone.consumers),
    }


def _check_widths(lists: Iterable[list[Any]]) -> None:
    """Raise LIMIT_EXCEEDED for rows that would take long to convert."""
    total = 0
    for rows in lists:
        for row in rows:
            width = _width(row)
            total += width
            if width > IMPORT_ROW_NAMES_MAX or total > 4 * IMPORT_NAMES_MAX:
                raise Error(
                    Code.LIMIT_EXCEEDED,
                    f"A row may have {IMPORT_ROW_NAMES_MAX} inventories, traits, aggregates and"
                    f" amounts, all rows of a request {IMPORT_NAMES_MAX}.",
                )


def _width(row: Any) -> int:
    """Return the number of values in a row, two levels deep."""
    if not isinstance(row, dict):
        return 1
    width = 0
    for one in row.values():
        if isinstance(one, list):
            width += len(one)
        elif isinstance(one, dict):
            width += len(one)
            width += sum(len(inner) for inner in one.values() if isinstance(inner, (dict, list)))
    return width


def _unique(rows: Iterable[T], key: Callable[[T], Any]) -> dict[Any, T]:
    found: dict[Any, T] = {}
    for row in rows:
        if found.setdefault(key(row), row) is not row:
            raise Error(Code.INVALID, f"'{key(row)}' is among the rows twice.")
    return found


def _name(row: NameRow) -> CustomName:
    return CustomName(
        row.name, instant_of("created_at", row.created_at), instant_of("updated_at", row.updated_at)
    )


def _provider_id(text: str) -> ProviderId:
    return ProviderId(uuid_of(text, "uuid"))


def _provider(row: ProviderRow) -> ProviderImage:
    return ProviderImage(
        uuid=_provider_id(row.uuid),
        name=row.name,
        generation=row.generation,
        parent=None if row.parent is None else _provider_id(row.parent),
        created_at=instant_of("created_at", row.created_at),
        updated_at=instant_of("updated_at", row.updated_at),
        inventories={name: _inventory(one) for name, one in row.inventories.items()},
        traits=frozenset(row.traits),
        aggregates=frozenset(AggregateId(uuid_of(one, "An aggregate")) for one in row.aggregates),
    )


def _inventory(row: InventoryRow) -> Inventory:
    return Inventory(
        total=row.total,
        reserved=row.reserved,
        min_unit=row.min_unit,
        max_unit=row.max_unit,
        step_size=row.step_size,
        allocation_ratio=row.allocation_ratio,
        created_at=instant_of("created_at", row.created_at),
        updated_at=instant_of("updated_at", row.updated_at),
    )


def _consumer(row: ConsumerRow) -> Consumer:
    return Consumer(
        uuid=ConsumerId(uuid_of(row.uuid, "uuid")),
        generation=row.generation,
        project_id=row.project,
        user_id=row.user,
        consumer_type=row.type,
        allocations={_provider_id(uuid): held for uuid, held in row.allocations.items()},
        created_at=instant_of("created_at", row.created_at),
        updated_at=instant_of("updated_at", row.updated_at),
    )


def _shown(mark: Import) -> ImportShown:
    return ImportShown(source=mark.source, since=time_of(mark.since), by=mark.by)


def _name_shown(one: CustomName) -> NameRow:
    return NameRow(
        name=one.name, created_at=time_of(one.created_at), updated_at=time_of(one.updated_at)
    )


def _provider_shown(described: Described) -> ProviderRow:
    provider, inventories, tags = described
    return ProviderRow(
        uuid=provider.uuid,
        name=provider.name,
        generation=provider.generation,
        parent=provider.parent,
        created_at=time_of(provider.created_at),
        updated_at=time_of(provider.updated_at),
        inventories={name: _inventory_shown(one) for name, one in sorted(inventories.items())},
        traits=sorted(tags.traits),
        aggregates=sorted(tags.aggregates),
    )


def _inventory_shown(one: Inventory) -> InventoryRow:
    return InventoryRow(
        total=one.total,
        reserved=one.reserved,
        min_unit=one.min_unit,
        max_unit=one.max_unit,
        step_size=one.step_size,
        allocation_ratio=one.allocation_ratio,
        created_at=time_of(one.created_at),
        updated_at=time_of(one.updated_at),
    )


def _consumer_shown(one: Consumer) -> ConsumerRow:
    allocations = {uuid: dict(sorted(held.items())) for uuid, held in one.allocations.items()}
    return ConsumerRow(
        uuid=one.uuid,
        generation=one.generation,
        project=one.project_id,
        user=one.user_id,
        type=one.consumer_type,
        allocations=dict(sorted(allocations.items())),
        created_at=time_of(one.created_at),
        updated_at=time_of(one.updated_at),
    )
