"""A claim at a place where something fits: what it would take there, and the button that claims it.

The address has the question, as that of `fit.py`, and the root of the tree in which to claim it.
"""

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any
from uuid import uuid4

from moorage.core.errors import Code
from moorage.core.ledger.requests import CandidateQuery, Group
from moorage.faces.dashboard.forms import done, noticed
from moorage.faces.dashboard.pages.fit import FIT, asked_of
from moorage.faces.dashboard.routing import ROOT, Action, Page, PageRequest, address_of
from moorage.faces.native_api import RefusedError
from moorage.faces.query_strings.pasted import pasted_query
from moorage.faces.web import Limits, RefusalError
from moorage.wire.operations import ledger

CLAIM = f"{FIT}/claim"

NEEDS = ledger.DRAIN_PROVIDER
"""Only operators claim from pages: this operation is theirs."""


async def show(request: PageRequest) -> Mapping[str, Any]:
    """Return what a claim would take at a place; nothing is claimed. Raises RefusedError."""
    text, place = _question(request), request.query.get("place", "")
    body = body_of(text, place)
    explained = await request.ask(ledger.EXPLAIN, body=body)
    found = explained.places[0] if explained.places else None
    return {
        "question": text,
        "back": address_of(FIT, {"query": text}),
        "found": found,
        "nearest": explained.nearest,
        # The id that the consumer gets makes a second click a repetition of the first one.
        "consumer": str(uuid4()),
    }


async def claim(request: PageRequest) -> str:
    """Claim what the page has shown, if it still fits there."""
    form = {name: value.strip() for name, value in request.form.items()}
    text, consumer = form.get("question", ""), form.get("consumer", "")
    if not form.get("reason"):
        raise RefusedError(HTTPStatus.BAD_REQUEST, "invalid", "Say why: others will ask.")
    if not (form.get("place") and consumer):
        raise RefusedError(HTTPStatus.BAD_REQUEST, "invalid", "Look at what it would take first.")
    wanted = {
        **body_of(text, form["place"]),
        "consumer": consumer,
        "project_id": form.get("project", ""),
        "user_id": form.get("user", ""),
        "consumer_type": form.get("type") or None,
        "choose": "pack",
        "reason": form["reason"],
    }
    try:
        made = await request.ask(ledger.CREATE_CLAIM, body=wanted)
    except RefusedError as refused:
        if refused.code == Code.CONSUMER_GENERATION:
            return done(f"{ROOT}/consumers/{consumer}", "claimed-before")
        if refused.code == Code.NO_CAPACITY:
            return noticed(FIT, {"query": text}, "no-room")
        raise
    return done(f"{ROOT}/consumers/{made.consumer}", "claimed")


def body_of(text: str, place: str) -> Mapping[str, Any]:
    """Return a question as the native API takes it, all of it in the tree of a place.

    Raises RefusedError.
    """
    try:
        query = pasted_query(text, Limits())
    except RefusalError as refused:
        raise RefusedError(refused.status, "invalid", refused.message) from None
    return {
        "groups": [_group(group, place) for group in query.groups],
        "group_policy": query.group_policy,
        "same_subtree": [sorted(names) for names in query.same_subtree],
        **_root(query),
    }


def _question(request: PageRequest) -> str:
    """Return the question of the address as a query string. Raises RefusedError."""
    pairs = [pair for pair in request.pairs if pair[0] != "place"]
    return asked_of(pairs, request.query).text


def _root(query: CandidateQuery) -> Mapping[str, Sequence[str]]:
    traits = query.root_traits
    required = [name for names in traits.required for name in sorted(names)]
    return {"root_required": required, "root_forbidden": sorted(traits.forbidden)}


def _group(group: Group, place: str) -> Mapping[str, Any]:
    return {
        "suffix": group.suffix,
        "resources": group.resources,
        "required": _lists(group.traits.required),
        "forbidden": sorted(group.traits.forbidden),
        "member_of": _lists(group.aggregates.member_of),
        "not_member_of": sorted(group.aggregates.forbidden),
        "in_tree": place or group.in_tree,
    }


def _lists(sets: Iterable[frozenset[str]]) -> list[list[str]]:
    return [sorted(names) for names in sets]


ENTRIES = (
    # The page has the id of a consumer, so it is made when somebody asks for it, not again.
    Page(
        path=CLAIM,
        title="Claim",
        template="ledger/claim.html",
        show=show,
        live=False,
        needs=NEEDS,
    ),
    Action(path=CLAIM, act=claim, asks="claim"),
)
