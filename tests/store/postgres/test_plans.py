"""The plans of our statements: none reads a whole table for every row of another."""

import json
import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from moorage.store.postgres.migrate import migrate
from moorage.store.sql import blocks
from tests.support import cluster

Node = dict[str, Any]


@pytest.fixture(scope="module")
def server() -> Iterator[psycopg.Connection]:
    """Return a session on an empty ledger that uses indexes wherever possible."""
    url = cluster.fresh()
    migrate(url)
    with psycopg.connect(url, autocommit=True) as session:
        session.execute("SET plan_cache_mode = force_generic_plan")
        session.execute("SET enable_seqscan = off")
        yield session


def plan_of(server: psycopg.Connection, statement: str) -> Node:
    """Return the generic plan of a statement."""
    count = max(map(int, re.findall(r"\$(\d+)", statement)), default=0)
    nothing = f"({', '.join(['NULL'] * count)})" if count else ""
    server.pgconn.exec_(b"DEALLOCATE ALL")
    for text in (
        f"PREPARE planned AS {statement}",
        f"EXPLAIN (FORMAT JSON) EXECUTE planned{nothing}",
    ):
        result = server.pgconn.exec_(text.encode())
        assert not result.error_message, result.error_message
    value = result.get_value(0, 0)
    assert value is not None
    plan: Node = json.loads(value)[0]["Plan"]
    return plan


def repeated_scans(plan: Node) -> list[str]:
    """Return the tables that are scanned once for each row of another table."""
    text = json.dumps(plan)
    repeated = [
        node
        for node in nodes(plan)
        if node.get("Parent Relationship") == "SubPlan"
        and f"hashed {node['Subplan Name']}" not in text  # a hashed subplan runs once
    ]
    for node in nodes(plan):
        if node["Node Type"] == "Nested Loop":
            sides = {child["Parent Relationship"]: child for child in node["Plans"]}
            outer, inner = sides["Outer"], sides["Inner"]
            if any(scanned(outer)):  # otherwise it is a list from the parameters, or one row
                repeated.append(inner)
    return sorted({table for node in repeated for table in scanned(node)})


def nodes(plan: Node) -> Iterator[Node]:
    """Yield all nodes of a plan."""
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def scanned(plan: Node) -> Iterator[str]:
    """Yield the tables below a node that are read without an index condition."""
    for node in nodes(plan):
        if "Relation Name" in node and "Index Cond" not in node and "Recheck Cond" not in node:
            yield node["Relation Name"]


def is_plannable(statement: str) -> bool:
    """Does the statement have a plan?"""
    return statement.startswith(("SELECT", "INSERT", "UPDATE", "DELETE", "WITH"))


PLANNABLE = sorted(name for name, text in blocks("postgres").items() if is_plannable(text))


FEW_ROWS = {
    "resource_class_uses_count": ["provider"],
    "trait_uses_count": ["provider_tags"],
    "pool_load": ["service_clock"],
    "pools_window": ["service_clock"],
    "pools_load": ["service_clock"],
    "token_ends_load": ["token_ends"],
}
"""The first two are scanned once per name that a batch deletes: at most 64 times, and no index
covers such uses. The clock and the count of ended tokens have one row."""


@pytest.mark.parametrize("block", PLANNABLE)
def test_no_table_is_read_for_each_row_of_another(server: psycopg.Connection, block: str) -> None:
    """The time of such a statement would grow with the square of the ledger's size."""
    found = repeated_scans(plan_of(server, blocks("postgres")[block]))
    assert found == FEW_ROWS.get(block, [])


def test_the_check_finds_such_a_statement(server: psycopg.Connection) -> None:
    """The control: a correlated subquery without an index."""
    bad = """
        UPDATE consumer SET allocations = r.new FROM unnest($1::text[], $2::text[]) AS r(new, old)
        WHERE uuid IN (
            SELECT holder.consumer FROM holder JOIN provider ON provider.uuid = holder.provider
            WHERE strpos(inventories, r.old) > 0
        )
    """
    assert "provider" in repeated_scans(plan_of(server, bad))
    worse = "SELECT 1 FROM consumer JOIN provider ON strpos(allocations, provider.uuid) > 0"
    assert repeated_scans(plan_of(server, worse)) in (["provider"], ["consumer"])


def indexes(plan: Node) -> set[str]:
    """Return the indexes that a plan reads."""
    return {node["Index Name"] for node in nodes(plan) if "Index Name" in node}


def test_the_beginning_of_an_id_is_looked_for_by_ids(server: psycopg.Connection) -> None:
    """The index of arrivals is not read: it has all leases of a day, not of a minute."""
    found = indexes(plan_of(server, blocks("postgres")["leases_window_by_id"]))
    assert "lease_pkey" in found
    assert "lease_arrival" not in found


def test_the_check_finds_the_index_of_arrivals(server: psycopg.Connection) -> None:
    """The control: the same rows without the range of ids."""
    live = blocks("postgres")["leases_window_by_pool"]
    assert "lease_pkey" in indexes(plan_of(server, live))
    bad = """
        SELECT body FROM lease WHERE left(id, 13) = $1 AND (arrival, id) > ($2, $3)
        ORDER BY arrival, id LIMIT $4
    """
    assert "lease_arrival" in indexes(plan_of(server, bad))


def test_the_audit_log_of_a_target_is_read_by_target(server: psycopg.Connection) -> None:
    """Newest first, without sorting; the control has no index."""
    plan = plan_of(server, blocks("postgres")["audit_window_of_target"])
    assert indexes(plan) == {"audit_target"}
    assert "Sort" not in {node["Node Type"] for node in nodes(plan)}
    bad = "SELECT id FROM audit WHERE target = $1 ORDER BY at DESC, id DESC LIMIT $2"
    assert "audit_target" not in indexes(plan_of(server, bad))
