"""Plays the conversation with a server."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import aiohttp

from tests.support.kubernetes_conversation import (
    admitting,
    aging,
    hosts,
    patching,
    serving,
    watching,
)
from tests.support.kubernetes_conversation.normal import Normal
from tests.support.kubernetes_conversation.steps import Ask, Of, Step, Watch, create
from tests.support.kubernetes_double.patches import merged

STEPS: tuple[Step, ...] = (
    *hosts.CREATED,
    *serving.DISCOVERED,
    *hosts.READ,
    *hosts.REPLACED,
    *patching.PATCHES,
    *patching.APPLIES,
    *serving.ALLOWED,
    *serving.POSTED,
    *watching.WATCHES,
    *hosts.DELETED,
)
PATIENCE = 20.0
"""Seconds until a server must be so far that it answers as a step wants."""
PAUSE = 0.05

Answer = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """A server, and how an administrator reaches it."""

    url: str
    token: str = ""
    tls: ssl.SSLContext | None = None


class World(Protocol):
    """What is done to a server."""

    async def compact(self) -> None:
        """Let its etcd forget all versions but the present one."""

    async def restart(self) -> None:
        """End it, and start it again at the same address."""


class Conversation:
    """A conversation that is being held. `answers` has what was answered to each step by name."""

    def __init__(self, place: Place, session: aiohttp.ClientSession) -> None:
        self.answers: dict[str, Answer] = {}
        self._place, self._session = place, session
        self._bodies: dict[str, Any] = {}
        self._normal = Normal()

    async def play(self, steps: tuple[Step, ...]) -> None:
        """Play steps, one after the other."""
        for step in steps:
            if isinstance(step, Watch):
                await self._watch(step)
            else:
                await self._ask(step)

    async def play_aging(self, world: World) -> None:
        """Play the steps about lists and watches that get old."""
        await self.play(aging.YOUNG)
        await world.compact()
        await self.play(aging.COMPACTED)
        await world.restart()
        await self.play(aging.RESTARTED)

    async def play_admission(self, folder: Path) -> None:
        """Play the steps about a webhook; note what it was asked."""
        async with admitting.webhook(folder) as (url, bundle, reviews):
            wanted = admitting.configuration(url, bundle)
            setting = create("the webhook", wanted, admitting.CONFIGURATIONS)
            await self.play((setting, admitting.in_force()))
            del self.answers["the webhook"]
            reviews.clear()
            await self.play((*admitting.ADMITTED, admitting.END))
            shown = [{**one, "userInfo": None, "uid": None} for one in reviews]
        self.answers["reviews"] = self._normal.answer({"body": shown}, fields=True)

    async def _ask(self, step: Ask) -> None:
        loop = asyncio.get_running_loop()
        last = loop.time() + PATIENCE
        found = await self._send(step)
        while step.until and found["status"] != step.until and loop.time() < last:
            # There is no event to wait for: the server reads rights a moment after they are stored.
            await _pause()
            found = await self._send(step)
        self._bodies[step.name] = found["body"]
        self.answers[step.name] = self._normal.answer(found, fields=step.fields)

    async def _send(self, step: Ask) -> Answer:
        data = None if step.body is None else json.dumps(self._filled(step.body))
        async with self._session.request(
            step.method,
            self._place.url + step.path,
            params=self._filled(dict(step.query)),
            data=data,
            headers=self._headers(step.accept, step.kind, step.user),
        ) as answer:
            return await _read(answer)

    def _headers(self, accept: str, kind: str = "", user: str = "") -> dict[str, str]:
        headers = {"Accept": accept, "User-Agent": "talk/1"}
        if self._place.token:
            headers["Authorization"] = f"Bearer {self._place.token}"
        if kind:
            headers["Content-Type"] = kind
        return {**headers, "Impersonate-User": user} if user else headers

    async def _watch(self, step: Watch) -> None:
        async with self._session.get(
            self._place.url + step.path,
            params=self._filled({"watch": "1", **step.query}),
            headers=self._headers(step.accept),
        ) as answer:
            if answer.status != 200:
                self.answers[step.name] = self._normal.answer(await _read(answer))
                return
            for ask in step.during:
                await self._ask(ask)
            events: list[Any] = []
            async for event in _events(answer):
                found = self._normal.event(event)
                # Before the end of a watch a server may send its last bookmark twice.
                if found["type"] != "BOOKMARK" or found not in events[-1:]:
                    events.append(found)
        self.answers[step.name] = {"status": answer.status, "events": events}

    def _filled(self, value: Any) -> Any:
        """Return a value in which earlier answers stand where they are meant."""
        if isinstance(value, Of):
            found = self._bodies[value.step]
            for name in filter(None, value.way.split(".")):
                found = found.get(name, "missing") if isinstance(found, dict) else "missing"
            return found if value.change is None else merged(found, self._filled(value.change))
        if isinstance(value, dict):
            return {name: self._filled(one) for name, one in value.items()}
        return [self._filled(one) for one in value] if isinstance(value, list) else value


async def _pause() -> None:
    over = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(PAUSE, over.set_result, None)
    await over


async def _read(answer: aiohttp.ClientResponse) -> Answer:
    text = await answer.text()
    try:
        body = json.loads(text)
    except ValueError:
        body = text
    found = {"status": answer.status, "body": body}
    if warnings := answer.headers.getall("Warning", []):
        found["warnings"] = sorted(warnings)
    if (after := answer.headers.get("Retry-After")) is not None:
        found["retry after"] = after
    return found


async def _events(answer: aiohttp.ClientResponse) -> AsyncIterator[Any]:
    async for line in answer.content:
        yield json.loads(line)


async def hold(
    place: Place,
    folder: Path | None = None,
    world: World | None = None,
    steps: tuple[Step, ...] = STEPS,
) -> dict[str, Answer]:
    """Hold the conversation with a server; return its answers.

    `folder` is for the certificate of a webhook; None: there is none. `world` restarts the server;
    None: it is not restarted.
    """
    names = [one.name for step in steps for one in (step, *getattr(step, "during", ()))]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"two steps have the same name: {twice}")
    connector = aiohttp.TCPConnector(ssl=place.tls or True)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        conversation = Conversation(place, session)
        await conversation.play(steps)
        if folder is not None:
            await conversation.play_admission(folder)
        if world is not None:
            await conversation.play_aging(world)
        return conversation.answers
