"""Answers with pages and their streams: what a page is asked with, and what all of them show."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, NamedTuple

from moorage.core.clock import SECOND
from moorage.faces.addresses import client_of
from moorage.faces.dashboard.forms import NOTICES, QUESTIONS, form_token, with_form_token
from moorage.faces.dashboard.headers import Reply, html
from moorage.faces.dashboard.live import EVENTS, Live, View
from moorage.faces.dashboard.recent_answers import RecentAnswers
from moorage.faces.dashboard.rendering import (
    ALONE,
    FORM_TOKEN_PLACE,
    FRAGMENT,
    WHOLE,
    Templates,
    rendered,
)
from moorage.faces.dashboard.routing import ROOT, Page, PageRequest, pairs_of
from moorage.faces.dashboard.signing_in import Reader, Readers
from moorage.faces.native_api import NativeApi, RefusedError
from moorage.faces.streaming import Stream
from moorage.faces.web import Limits, Scope
from moorage.service.app import Service
from moorage.service.fair_turns import Pieces
from moorage.wire.operations import admin, bookings, feed, leases, ledger, pools, reshapes


class PageAnswers:
    """Renders pages on behalf of readers, once or whenever something changes."""

    def __init__(
        self,
        service: Service,
        api: NativeApi,
        limits: Limits,
        readers: Readers,
        templates: Templates,
    ) -> None:
        self._service = service
        self._api = api
        self._limits = limits
        self._readers = readers
        self._templates = templates
        self._live = Live(service)
        self._answers = RecentAnswers()

    def request(
        self, scope: Scope, reader: Reader, path: str, variables: dict[str, str]
    ) -> PageRequest:
        """Return the input of a page, an action or data. Raises RefusalError: 400, 414."""
        pairs = pairs_of(scope["query_string"], self._limits)
        return self._request(reader, path, variables, pairs)

    def _request(
        self,
        reader: Reader,
        path: str,
        variables: Mapping[str, str],
        pairs: Sequence[tuple[str, str]],
    ) -> PageRequest:
        return PageRequest(
            service=self._service,
            api=self._api,
            caller=reader.caller,
            path=path,
            variables=variables,
            pairs=pairs,
            query=dict(pairs),
            now=datetime.fromtimestamp(self._service.clock.now() / SECOND, UTC),
            answers=self._answers,
        )

    async def page(self, page: Page, request: PageRequest, reader: Reader) -> Reply:
        """Answer with a whole page. Raises RefusedError."""
        return html(with_form_token(await self._text(page, request, WHOLE), reader.secret))

    async def _text(self, page: Page, request: PageRequest, layout: str) -> str:
        if not request.permits(page.needs):
            raise RefusedError(
                HTTPStatus.FORBIDDEN, "forbidden", "This page needs a token with more rights."
            )
        shown = await page.show(request)
        common = {**_common(request, page.title), "live": page.live, "layout": layout}
        work = rendered(self._templates.get(page.template), {**common, **shown})
        turns = self._service.turns
        # Nobody waits for an open page: it takes what turns are left.
        return await (Pieces(turns).driven(work) if request.streamed else turns.driven(work))

    def error(self, scope: Scope, reader: Reader | None, shown: Mapping[str, Any]) -> str:
        """Return the page of an error, with the navigation if somebody is signed in."""
        template = self._templates.get("error.html")
        if reader is None:
            return template.render(shown, layout=ALONE)
        # The address may be what was refused, so its parameters are left out.
        request = self._request(reader, scope["path"], {}, ())
        common = _common(request, shown["title"])
        return with_form_token(template.render({**common, **shown}, layout=WHOLE), reader.secret)

    def stream(self, scope: Scope, page: Page, request: PageRequest, reader: Reader) -> Stream:
        """Answer with the fragments of an open page, until the reader's session ends."""
        client = client_of(scope)

        async def render() -> str:
            current = self.request(scope, reader, request.path, dict(request.variables))
            return await self._text(page, replace(current, streamed=True), FRAGMENT)

        async def signed_in() -> bool:
            return await self._readers.find(reader.secret, client, used=False) is not None

        query = tuple(sorted(request.pairs))
        key = request.reader_key
        if page.personal:
            key = (*key, request.caller.user_id)
        view = View(request.path, query, key)
        pieces = self._live.events(reader.caller.identity, view, render, signed_in)
        return Stream(EVENTS, _with_form_tokens(pieces, reader))

    def signed_out(self) -> Stream:
        """Answer a stream without a session: a redirect would end the browser's source."""
        return Stream(EVENTS, self._live.signed_out())


async def _with_form_tokens(
    pieces: AsyncGenerator[bytes, None], reader: Reader
) -> AsyncGenerator[bytes, None]:
    place, token = FORM_TOKEN_PLACE.encode(), form_token(reader.secret).encode()
    async with aclosing(pieces):
        async for piece in pieces:
            yield piece.replace(place, token)


def _common(request: PageRequest, title: str) -> dict[str, Any]:
    return {
        "title": title,
        "now": request.now,
        "request": request,
        "navigation": navigation(request),
        "reader": request.caller.user_id,
        "live": False,
        "questions": QUESTIONS,
        "notice": NOTICES.get(request.query.get("notice", ""), ""),
    }


class Link(NamedTuple):
    """One link; `current` marks the section that the reader is in."""

    address: str
    text: str
    current: bool
    key: str
    """The key that leads there, after `g`."""


SECTIONS = (
    (ROOT, "Overview", "o", pools.LIST_POOLS),
    (f"{ROOT}/pools", "Pools", "p", pools.LIST_POOLS),
    (f"{ROOT}/leases", "Leases", "l", leases.LIST_LEASES),
    (f"{ROOT}/bookings", "Bookings", "b", bookings.LIST_BOOKINGS),
    (f"{ROOT}/fleet", "Fleet", "f", ledger.GET_CAPACITY),
    (f"{ROOT}/consumers", "Consumers", "u", ledger.LIST_CONSUMERS),
    (f"{ROOT}/projects", "Projects", "j", ledger.LIST_USAGES),
    (f"{ROOT}/fit", "Where does it fit?", "w", ledger.EXPLAIN_BY_QUERY),
    (f"{ROOT}/reshapes", "Reshapes", "r", reshapes.LIST_RESHAPES),
    (f"{ROOT}/audit", "Audit", "a", admin.LIST_AUDIT),
    (f"{ROOT}/changes", "Changes", "c", feed.WATCH),
)
"""Address, text, key, and the operation that a reader must be permitted to call."""


def navigation(request: PageRequest) -> list[Link]:
    """Return the links to sections that the reader may see."""
    return [
        Link(address, text, _is_current(address, request.path), key)
        for address, text, key, operation in SECTIONS
        if request.permits(operation)
    ]


def _is_current(address: str, path: str) -> bool:
    return path == address if address == ROOT else f"{path}/".startswith(f"{address}/")
