"""The cache that the operator reads: behind the server by a little, and never ahead of it."""

import asyncio
import copy
import json
from collections.abc import Callable
from random import Random

import aiohttp

from tests.support.bmo_double.hosts import Object
from tests.support.ironic_double.agenda import Agenda
from tests.support.kubernetes_client import HOSTS, Answered, Kubernetes

AGAIN_SECONDS = 1.0
Changed = Callable[[str, Object | None, Object | None], None]
"""Called with the key of a host, what it was and what it is; None: there is no such host."""


class Informer:
    """All hosts, as a list and a watch have shown them, each change `lag` seconds late.

    `lag` is the least and the most, in virtual seconds.
    """

    def __init__(
        self, api: Kubernetes, agenda: Agenda, lag: tuple[float, float], changed: Changed
    ) -> None:
        self._api, self._agenda, self._lag, self._changed = api, agenda, lag, changed
        self._random = Random(1)
        self._hosts: dict[str, Object] = {}
        self._due = 0.0
        self.lists = 0

    def get(self, key: str) -> Object | None:
        """Return a copy of a host; None: there is none."""
        return copy.deepcopy(self._hosts.get(key))

    async def run(self) -> None:
        """List and watch until it is cancelled."""
        while True:
            try:
                await self._follow(await self._list())
            except (aiohttp.ClientError, Answered, OSError):
                # As client-go: list again after a pause, whatever the reason.
                await self._pause()

    async def _pause(self) -> None:
        self._agenda.catch_up()
        await self._agenda.wait(AGAIN_SECONDS, lambda: None)

    async def _list(self) -> str:
        found = await self._api.get(f"{HOSTS}/baremetalhosts")
        self.lists += 1
        listed = {_key(one): one for one in found["items"]}
        for key in self._hosts.keys() - listed.keys():
            self._later(key, None)
        for key, one in listed.items():
            self._later(key, one)
        return str(found["metadata"]["resourceVersion"])

    async def _follow(self, version: str) -> None:
        """Watch, and watch again from where it ended, until the server refuses the version."""
        while True:
            query = {"resourceVersion": version, "allowWatchBookmarks": "true"}
            try:
                async for event in self._api.watch(f"{HOSTS}/baremetalhosts", **query):
                    if event["type"] == "ERROR":
                        return
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        gone = event["type"] == "DELETED"
                        self._later(_key(event["object"]), None if gone else event["object"])
            except (aiohttp.ClientError, OSError, json.JSONDecodeError):
                await self._pause()
            await asyncio.sleep(0)

    def _later(self, key: str, host: Object | None) -> None:
        """Let a change reach the cache after the lag, and never before an earlier one."""
        self._agenda.catch_up()
        self._due = max(self._due, self._agenda.now + self._random.uniform(*self._lag))
        self._agenda.at(self._due - self._agenda.now, lambda: self._take(key, host))

    def _take(self, key: str, host: Object | None) -> None:
        before = self._hosts.pop(key, None)
        if host is not None:
            self._hosts[key] = host
        self._changed(key, before, host)


def _key(host: Object) -> str:
    return f"{host['metadata']['namespace']}/{host['metadata']['name']}"
