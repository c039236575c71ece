"""Converts queries from their wire form, and builds the addresses of their explanations."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any
from urllib.parse import quote

import msgspec

from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger.requests import AggregateFilter, CandidateQuery, Group, TraitFilter
from moorage.core.ledger.search.validation import check_sense
from moorage.service.native.bounds import uuid_of
from moorage.wire.ledger import GroupAsked, Question

ADDRESS_LENGTH_MAX = 4_096
"""Longer addresses are not returned: clients, proxies or logs might truncate them."""


def query_of(asked: Question) -> CandidateQuery:
    """Convert a query to the ledger's type. Raises `Error`: INVALID, LIMIT_EXCEEDED."""
    query = CandidateQuery(
        groups=tuple(_group(group) for group in asked.groups),
        group_policy=asked.group_policy,
        same_subtree=tuple(frozenset(suffixes) for suffixes in asked.same_subtree),
        root_traits=TraitFilter(
            tuple(frozenset((name,)) for name in asked.root_required),
            frozenset(asked.root_forbidden),
        ),
    )
    check_sense(query)
    return query


def explaining_address(asked: Question) -> str:
    """Return the address that explains a query; it contains the query, unless that is too long."""
    members = {
        field.name: value
        for field in fields(Question)
        if (value := _brief(getattr(asked, field.name)))
    }
    address = f"/v1/explain?query={quote(msgspec.json.encode(members), safe='')}"
    return address if len(address) <= ADDRESS_LENGTH_MAX else "/v1/explain"


def _group(asked: GroupAsked) -> Group:
    return Group(
        suffix=asked.suffix,
        resources=asked.resources,
        traits=TraitFilter(_sets(asked.required), frozenset(asked.forbidden)),
        aggregates=AggregateFilter(
            tuple(frozenset(map(_aggregate, names)) for names in _sets(asked.member_of)),
            frozenset(map(_aggregate, asked.not_member_of)),
        ),
        in_tree=None if asked.in_tree is None else ProviderId(uuid_of(asked.in_tree, "in_tree")),
    )


def _sets(entries: Iterable[str | list[str]]) -> tuple[frozenset[str], ...]:
    return tuple(frozenset((e,) if isinstance(e, str) else e) for e in entries)


def _aggregate(text: str) -> AggregateId:
    return AggregateId(uuid_of(text, "An aggregate"))


def _brief(value: Any) -> Any:
    """Omit empty members of groups."""
    if isinstance(value, list):
        return [_brief(each) for each in value]
    if isinstance(value, GroupAsked):
        members = ((field.name, getattr(value, field.name)) for field in fields(value))
        return {name: member for name, member in members if member}
    return value
