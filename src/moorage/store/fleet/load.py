"""Loads the fleet's facts by keys: one round trip, a second one for the rows themselves.

Locks are taken after those of the ledger and of admission, and before the revision: first service
time, which also serves as the lock of all reporters; then the number of new agents, then groups,
then agents, so that an agent that is created or moves decides by the current defaults of its group.
"""

from moorage.core.fleet.facts import Facts, Keys
from moorage.core.service_time import Timeline
from moorage.store import service_clock
from moorage.store.api import Plan, Query
from moorage.store.encoding import encode, key_set
from moorage.store.fleet.rows import (
    agents_from_rows,
    deleted_from_row,
    group_from_row,
    member_from_row,
    reporter_group_from_row,
)


def facts_load(keys: Keys) -> Plan[Facts]:
    """Lock and load what the keys name; missing objects are not in the facts. Raises Damaged."""
    facts = Facts(asked=keys)
    roots = [Query("agent_roots_load", (key_set(keys.roots),))] if keys.roots else []
    if keys == Keys(roots=keys.roots, reporters=keys.reporters, pins=keys.pins):
        (rows,) = (yield roots) if roots else ([],)
        facts.roots.update(rows)
        return facts
    numbers = [Query("agent_number_lock")] if keys.number else []
    changed = keys.changed | keys.members
    groups = (key_set(keys.groups), key_set(changed), key_set(keys.agents))
    *_, found = yield [*numbers, Query("agent_groups_lock", groups)]
    for row in found:
        group = group_from_row(*row)
        facts.groups[group.name] = group
    queries = [Query("agents_lock", (key_set(keys.agents), key_set(keys.members)))]
    if keys.number:
        queries.append(Query("agent_number_load"))
    agents, *more = yield [*queries, *roots]
    for agent in agents_from_rows(agents):
        facts.agents[agent.uuid] = agent
    if keys.roots:
        facts.roots.update(more.pop())
    if keys.number:
        ((facts.next_number,),) = more.pop()
    yield from _groups_load(facts)
    return facts


def _groups_load(facts: Facts) -> Plan[None]:
    """Load the groups of agents that have just moved; normally all are loaded already."""
    missing = {agent.group for agent in facts.agents.values()} - facts.groups.keys()
    if missing:
        (rows,) = yield [Query("agent_groups_lock", (key_set(missing), "[]", "[]"))]
        for row in rows:
            group = group_from_row(*row)
            facts.groups[group.name] = group


def reporters_load(facts: Facts, keys: Keys) -> Plan[None]:
    """Load groups of reporters with their members, and pins. The caller has locked service time."""
    pins = encode(sorted([*pin] for pin in keys.pins))
    clock, groups, deleted, members, pinned = yield [
        Query("clock_load"),
        Query("reporter_groups_load", (key_set(keys.reporters),)),
        Query("deleted_reporter_groups_load", (key_set(keys.reporters),)),
        Query("reporters_load", (key_set(keys.reporters),)),
        Query("pins_load", (pins,)),
    ]
    facts.epoch = clock[0][0]
    for row in groups:
        facts.reporter_groups[row[0]] = reporter_group_from_row(*row)
    for row in deleted:
        facts.deleted_groups[row[0]] = deleted_from_row(*row)
    for row in members:
        facts.members[row[0], row[1]] = member_from_row(*row)
    for group, node, member in pinned:
        facts.pins[group, node] = member


def timeline_lock() -> Plan[Timeline]:
    """Lock service time, and with it all reporters: no other batch decides about them now."""
    (rows,) = yield [service_clock.LOCK]
    return service_clock.timeline_from_rows(rows)
