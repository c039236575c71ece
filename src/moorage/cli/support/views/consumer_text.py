"""Consumers as rows of a table."""

from collections.abc import Mapping
from datetime import datetime

from moorage.cli.support.tables import NOTHING, Cell, Column, Row
from moorage.cli.support.views.cells import age_cell
from moorage.wire.providers import ConsumerShown

COLUMNS = (
    Column("id"),
    Column("type", least=8),
    Column("project", least=8),
    Column("user", dropped=3, least=8),
    Column("created", "age", dropped=2, right=True),
    Column("holds", least=16, last=True),
)


def row(one: ConsumerShown, shown: Cell, now: datetime, provider: str | None = None) -> Row:
    """Return the row of a consumer; with `provider`, only what it holds there."""
    if provider is None:
        holds = "; ".join(
            f"{each.name or each.provider}: {resources_text(each.resources)}"
            for each in one.allocations
        )
    else:
        here = (each.resources for each in one.allocations if each.provider == provider)
        holds = resources_text(next(here, {}))
    created = age_cell(one.created_at, now)
    return [shown, one.type or NOTHING, one.project, one.user, created, holds or NOTHING]


def resources_text(resources: Mapping[str, int]) -> str:
    """Return amounts by resource class, as claims write them."""
    return ", ".join(f"{name}={amount}" for name, amount in resources.items())
