"""How large a report may be: it is refused before anything is done, and divided by its names."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from moorage.core.errors import Code, Error
from moorage.core.ids import AggregateId
from moorage.core.ledger.reported import Node
from moorage.core.limits import (
    BULK_PROVIDERS_MAX,
    REPORT_NAMES_MAX,
    REPORT_NEW_NAMES_MAX,
    REPORTED_NAMES_MAX,
)
from moorage.service.fleet.report_bounds import UNIT_NAMES, ReportedNodes, units
from moorage.service.ledger.bulk import UNIT_PROVIDERS
from tests.service.fleet.alone import play as alone
from tests.service.fleet.reporters.reporting import join, node, nodes, outcomes, report
from tests.service.running import Running, provider_id


def named(n: int, traits: int, first: int = 0) -> Node:
    """Describe a node with VCPU, and this many traits that nobody has yet."""
    return replace(node(n), traits=frozenset(f"CUSTOM_T{first + each}" for each in range(traits)))


def test_a_node_with_too_many_names_is_refused() -> None:
    """Inventories, traits and aggregates count together; the message says how many there are."""
    aggregates = frozenset(AggregateId(str(n)) for n in range(9))
    most = replace(named(1, REPORTED_NAMES_MAX - 10), aggregates=aggregates)
    ReportedNodes().add(most)
    with pytest.raises(Error, match=f"has {REPORTED_NAMES_MAX + 1} classes") as refused:
        ReportedNodes().add(replace(named(1, REPORTED_NAMES_MAX - 9), aggregates=aggregates))
    assert refused.value.code is Code.LIMIT_EXCEEDED


def test_a_report_with_too_many_names_is_refused() -> None:
    """The limit is that of all nodes together."""
    bounds = ReportedNodes()
    for n in range(REPORT_NAMES_MAX // REPORTED_NAMES_MAX):
        bounds.add(named(n, REPORTED_NAMES_MAX - 1))
    with pytest.raises(Error, match="send several") as refused:
        bounds.add(named(REPORT_NAMES_MAX, 0))
    assert refused.value.code is Code.LIMIT_EXCEEDED
    assert REPORT_NAMES_MAX <= BULK_PROVIDERS_MAX * REPORTED_NAMES_MAX


def test_units_have_few_names() -> None:
    """A transaction has few nodes and few names, but at least one node; all are in order."""
    sent = [*nodes(100), *(named(n, 400) for n in range(100, 110)), named(110, 2 * UNIT_NAMES)]
    found = [*units(sent)]
    assert [one for unit in found for one in unit] == sent
    assert max(map(len, found)) == UNIT_PROVIDERS
    assert all(len(unit) == 1 or sum(one.names for one in unit) <= UNIT_NAMES for unit in found)
    assert len(found) == 3 + 5 + 1


def test_too_many_new_names_are_refused_before_anything_is_done(tmp_path: Path) -> None:
    """Known ones do not count: those of the ledger, and of nodes that are as reported."""

    async def scenario(one: Running) -> None:
        token = (await join(one.service, "a")).member.token
        each = REPORTED_NAMES_MAX - 2
        count = REPORT_NEW_NAMES_MAX // each
        few = [named(n, each, first=n * each) for n in range(3)]
        assert outcomes(await report(one.service, "a", token, few)) == ["created"] * 3
        most = [named(n, each, first=n * each) for n in range(count + 4)]
        revision = one.service.index.revision
        with pytest.raises(Error, match="send several") as refused:
            await report(one.service, "a", token, most)
        assert refused.value.code is Code.LIMIT_EXCEEDED
        aggregates = [
            replace(
                node(n),
                aggregates=frozenset(AggregateId(provider_id(n * each + i)) for i in range(each)),
            )
            for n in range(count + 1)
        ]
        with pytest.raises(Error, match="send several"):
            await report(one.service, "a", token, aggregates)
        assert one.service.index.revision == revision
        assert one.service.index.catalog.record(most[-1].uuid) is None

    alone(tmp_path, scenario)
