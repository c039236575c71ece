"""Asks Nova's API: everything that an audit reads of it."""

from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from random import Random
from typing import Any, Final, TypeVar
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from moorage.integrations.nova.facts import (
    COMPUTE,
    Hypervisor,
    Migration,
    Server,
    Service,
    UnreadableError,
    hypervisor_of,
    migration_of,
    server_of,
    service_of,
)
from moorage.integrations.nova.pacing import Answer, NoAnswerError, Paced, Send

F = TypeVar("F")

MINOR: Final = 79
"""The minor version that is asked for, of the release Train. From 2.69 Nova says which cells do not
answer; from 2.88 a list of hypervisors asks every one of them."""

PAGES_MAX: Final = 10_000
LISTS_MAX: Final = 3
"""How often a list is begun, if an entry at the end of a page is deleted meanwhile."""


class UnfitError(Exception):
    """Nova cannot be audited: the address, the token or the version is wrong."""


class MarkerError(Exception):
    """The entry at the end of a page is gone."""


class Nova:
    """One Nova. Every call raises NoAnswerError and UnfitError; 404 is an answer."""

    def __init__(self, send: Send, most: int, chance: Random | None = None) -> None:
        """Prepare to ask; `most` requests at once, `chance` for how long pauses are."""
        self._paced = Paced(send, most, chance)

    @property
    def sent(self) -> int:
        """How many requests were sent."""
        return self._paced.sent

    async def services(self) -> list[Service]:
        """Return all services `nova-compute`; those of a cell that does not answer are unknown."""
        answer = await self._content(f"/os-services?binary={COMPUTE}")
        return self._all(answer, "services", service_of)

    async def hypervisors(self) -> list[Hypervisor]:
        """Return all compute nodes of the cells that answer."""
        return await self._listed(
            "/os-hypervisors/detail", "hypervisors", hypervisor_of, to_the_end=True
        )

    async def migrations(self) -> list[Migration]:
        """Return all migrations of the cells that answer, also those that are over."""
        return await self._listed("/os-migrations", "migrations", migration_of, marker="uuid")

    async def servers_on(self, host: str) -> list[Server]:
        """Return the servers on the nodes of a service; none if its cell does not answer."""
        query = {"all_tenants": "1", "host": host}
        found = await self._listed("/servers/detail", "servers", server_of, query)
        return [one for one in found if one.host == host]

    async def server(self, uuid: str) -> Server | None:
        """Return a server, also one that is scheduled or whose cell does not answer; None: 404."""
        content = await self._one(f"/servers/{quote(uuid, safe='')}", "server")
        return None if content is None else self._read(content, server_of)

    async def remembers(self, uuid: str) -> bool:
        """Return whether Nova has the history of a server, which may be deleted."""
        path = f"/servers/{quote(uuid, safe='')}/os-instance-actions"
        return await self._one(path, "instanceActions") is not None

    async def has_hypervisor(self, uuid: str) -> bool:
        """Return whether Nova has a compute node."""
        return await self._one(f"/os-hypervisors/{quote(uuid, safe='')}", "hypervisor") is not None

    async def _one(self, path: str, member: str) -> Any:
        """Return a member of an answer; None: 404, in the words of Nova."""
        answer = await self._paced.get(path)
        if answer.status == HTTPStatus.NOT_FOUND and _is_novas(answer.content):
            return None
        found = self._good(answer, path).get(member)
        if not isinstance(found, (dict, list)):
            raise NoAnswerError(f"the answer of {path} has no {member}")
        return found

    async def _content(self, path: str) -> dict[str, Any]:
        return self._good(await self._paced.get(path), path)

    def _good(self, answer: Answer, path: str) -> dict[str, Any]:
        where = path.partition("?")[0]
        if answer.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise UnfitError(f"Nova answers {answer.status} for {where}: an administrator must ask")
        if answer.status == HTTPStatus.NOT_ACCEPTABLE:
            raise UnfitError(f"Nova is older than API version 2.{MINOR}")
        if answer.status != HTTPStatus.OK or not isinstance(answer.content, dict):
            raise NoAnswerError(f"Nova answers {answer.status} for {where}")
        return answer.content

    async def _listed(
        self,
        path: str,
        member: str,
        read: Callable[[Any], F],
        query: dict[str, str] | None = None,
        marker: str = "id",
        *,
        to_the_end: bool = False,
    ) -> list[F]:
        """Return a list over all pages; `to_the_end`: only an empty page is the last one.

        From a page of hypervisors Nova leaves out those without a service or a host mapping, and
        takes a page that is not full for the last one. Source: nova 34, `_get_hypervisors`.
        """
        for _ in range(LISTS_MAX):
            try:
                pages = self._pages(path, member, query or {}, marker, to_the_end)
                return [self._read(one, read) async for page in pages for one in page]
            except MarkerError:
                continue
        raise NoAnswerError(f"the list {path} changes faster than it is read")

    async def _pages(
        self, path: str, member: str, query: dict[str, str], marker: str, to_the_end: bool
    ) -> AsyncIterator[list[Any]]:
        asked = dict(query)
        for _ in range(PAGES_MAX):
            target = f"{path}?{urlencode(asked)}" if asked else path
            answer = await self._paced.get(target)
            if answer.status == HTTPStatus.BAD_REQUEST and "marker" in asked:
                raise MarkerError
            content = self._good(answer, path)
            page = content.get(member)
            if not isinstance(page, list):
                raise NoAnswerError(f"the answer of {path} has no list of {member}")
            yield page
            following = _marker(content.get(f"{member}_links"), page, marker, to_the_end)
            if following is None:
                return
            if following == asked.get("marker"):
                raise NoAnswerError(f"the list {path} does not end")
            asked = {**query, "marker": following}
        raise NoAnswerError(f"the list {path} does not end")

    def _all(self, content: dict[str, Any], member: str, read: Callable[[Any], F]) -> list[F]:
        found = content.get(member)
        if not isinstance(found, list):
            raise NoAnswerError(f"an answer of Nova has no list of {member}")
        return [self._read(one, read) for one in found]

    def _read(self, shown: Any, read: Callable[[Any], F]) -> F:
        try:
            return read(shown)
        except UnreadableError as error:
            raise NoAnswerError(f"an answer of Nova cannot be read: {error}") from None


def _is_novas(content: Any) -> bool:
    """Return whether a 404 is Nova's: that of a proxy, or of another path, has other words."""
    return isinstance(content, dict) and isinstance(content.get("itemNotFound"), dict)


def _marker(links: Any, page: list[Any], marker: str, to_the_end: bool) -> str | None:
    """Return where the next page begins: as its link says, or after the last entry; None: nowhere.

    `to_the_end`: there is a next page after every one that has entries. Raises NoAnswerError.
    """
    if not page or not (links or to_the_end):
        return None
    try:
        if not links:
            return str(page[-1][marker])
        link = next((one for one in links if one.get("rel") == "next"), None)
        if link is None:
            return None
        found = parse_qs(urlsplit(str(link.get("href", ""))).query).get("marker")
        return found[0] if found else str(page[-1].get(marker))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise NoAnswerError("the links of a list of Nova's cannot be read") from None
