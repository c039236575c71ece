"""The operator: workers that look at hosts (`Reconcile` in `baremetalhost_controller.go`)."""

import asyncio
import contextlib
import json
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

import aiohttp

from tests.support.bmo_double import conditions, hosts
from tests.support.bmo_double.actions import Actions
from tests.support.bmo_double.hosts import Object
from tests.support.bmo_double.informer import Informer
from tests.support.bmo_double.nodes import Nodes, Transient
from tests.support.bmo_double.provisioner import Provisioner
from tests.support.bmo_double.queue import WorkQueue
from tests.support.bmo_double.results import Result
from tests.support.bmo_double.state_machine import StateMachine
from tests.support.bmo_double.throttle import Bucket
from tests.support.ironic_double.agenda import Agenda
from tests.support.kubernetes_client import CORE, Answered, Kubernetes, hosts_in

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
"""Second 0 of the agenda."""

UNREAD = ("", "unmanaged")
"""The states in which no secret is read."""

SECRET_RETRY = 10.0
"""Seconds after which a host is looked at again whose secret is missing: `hostErrorRetryDelay`."""


@dataclass(frozen=True)
class Settings:
    """How the operator runs; the defaults are its own, but for `limit` (20).

    `lag`: how far its cache is behind, in seconds. `retries`: how often one image may fail; 0: for
    ever, as before `provisioningFailCount` (v0.13 and earlier).
    """

    workers: int = 8
    limit: int = 1_000
    retries: int = 5
    rate: float = 20.0
    burst: int = 30
    lag: tuple[float, float] = (0.005, 0.5)
    seed: int = 1


class Operator:
    """A running operator. Asynchronous context manager; it may be ended and started again."""

    def __init__(
        self, api: Kubernetes, agenda: Agenda, nodes: Nodes, settings: Settings | None = None
    ) -> None:
        self.settings = settings or Settings()
        self.looks: Counter[str] = Counter()
        self.paused: Counter[str] = Counter()
        self.conflicts = 0
        self.missing: set[str] = set()
        """The names of the secrets that are not there."""
        self._api, self._agenda = api, agenda
        self._provisioner = Provisioner(nodes, self.settings.limit)
        self._random = Random(self.settings.seed)
        self._queue = WorkQueue(agenda)
        self._throttle = Bucket(agenda, self.settings.rate, self.settings.burst)
        self.informer = Informer(api, agenda, self.settings.lag, self._changed)
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "Operator":
        self._tasks = [asyncio.create_task(self.informer.run())]
        self._tasks += [asyncio.create_task(self._work()) for _ in range(self.settings.workers)]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        for found in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(found, Exception):
                raise found

    def now(self) -> datetime:
        """Return the time of the agenda."""
        self._agenda.catch_up()
        return BEGAN + timedelta(seconds=self._agenda.now)

    def _changed(self, key: str, before: Object | None, after: Object | None) -> None:
        """Queue a host, unless only its status changed: `updateEventHandler`."""
        if before is not None and after is not None:
            old, new = before["metadata"], after["metadata"]
            watched = ("generation", "finalizers", "annotations", "deletionTimestamp")
            if all(old.get(name) == new.get(name) for name in watched):
                return
        self._queue.add(key)

    async def _work(self) -> None:
        while True:
            key = await self._queue.take()
            try:
                result = await self._reconcile(key)
            except Answered as answered:
                self.conflicts += answered.code == 409
                self._queue.add_limited(key)
            except (Transient, aiohttp.ClientError, OSError):
                self._queue.add_limited(key)
            else:
                self._again(key, result)
            finally:
                self._queue.done(key)

    def _again(self, key: str, result: Result) -> None:
        if result.again and not result.after:
            self._queue.add_limited(key)
            return
        self._queue.forget(key)
        if result.again:
            self._queue.add_after(key, result.after)

    async def _reconcile(self, key: str) -> Result:
        """Look at a host once: `Reconcile`. Raises Answered, Transient."""
        host = self.informer.get(key)
        if host is None:
            return Result(again=False)
        if hosts.PAUSED in hosts.annotations(host):
            self.paused[key] += 1
            return Result(again=False)
        self.looks[key] += 1
        for known in (self._status_restored, self._architecture_known):
            if (result := await known(host)) is not None:
                return result
        metadata = host["metadata"]
        finalizers = metadata.setdefault("finalizers", [])
        if not metadata.get("deletionTimestamp") and hosts.FINALIZER not in finalizers:
            finalizers.append(hosts.FINALIZER)
            await self._save(host)
            return Result()
        if self._lacks_secret(host):
            return await self._without_secret(host)
        actions = Actions(host, self._provisioner, self._random, self.settings.retries)
        result = await StateMachine(actions).reconcile()
        if actions.changed_metadata:
            await self._save(host)
        elif conditions.update(host, self._text_of_now()) or result.dirty:
            host["status"]["lastUpdated"] = self._text_of_now()
            await self._save(host, "/status")
        for reason, message in actions.events:
            await self._post(host, reason, message)
        return result

    def _lacks_secret(self, host: Object) -> bool:
        read = hosts.state(host) not in UNREAD and not host["metadata"].get("deletionTimestamp")
        return read and (host["spec"].get("bmc") or {}).get("credentialsName") in self.missing

    async def _without_secret(self, host: Object) -> Result:
        """Record one more error, and look again without a back-off: `credentialsErrorResult`."""
        hosts.set_error(host, "registration error", "the BMC secret does not exist")
        conditions.update(host, self._text_of_now())
        host["status"]["lastUpdated"] = self._text_of_now()
        await self._save(host, "/status")
        await self._post(host, "BMCCredentialError", "the BMC secret does not exist")
        return Result(after=SECRET_RETRY)

    def _text_of_now(self) -> str:
        return f"{self.now():%Y-%m-%dT%H:%M:%SZ}"

    async def _architecture_known(self, host: Object) -> Result | None:
        """Note in the specification what an inspection has found; None: go on: `reconcileHostData`.

        So the operator itself raises the generation of each new host once.
        """
        found = host.get("status", {}).get("hardware", {}).get("cpu", {}).get("arch")
        if not found or host["spec"].get("architecture"):
            return None
        host["spec"]["architecture"] = found
        await self._save(host)
        return Result()

    async def _status_restored(self, host: Object) -> Result | None:
        """Take the status from its annotation, if there is none; None: go on: `reconcileHostData`.

        The annotation is removed once there is a status.
        """
        said = hosts.annotations(host).get(hosts.STATUS)
        if said is None:
            return None
        if not host.get("status", {}).get("lastUpdated"):
            with contextlib.suppress(ValueError):
                host["status"] = {"lastUpdated": self._text_of_now()}
                host["status"] |= json.loads(said)
                await self._save(host, "/status")
                return Result()
        del host["metadata"]["annotations"][hosts.STATUS]
        await self._save(host)
        return Result()

    async def _save(self, host: Object, part: str = "") -> None:
        """Store a host, as it was read: a newer one on the server is a conflict."""
        await self._throttle.take()
        metadata = host["metadata"]
        path = f"{hosts_in(metadata['namespace'])}/{metadata['name']}{part}"
        if part == "/status":
            host["status"] = hosts.whole_status(host)
        await self._api.update(path, host)

    async def _post(self, host: Object, reason: str, message: str) -> None:
        """Post an event; like the original's, an event that cannot be posted is lost."""
        await self._throttle.take()
        metadata = host["metadata"]
        named = {name: metadata[name] for name in ("name", "namespace", "uid")}
        event = {
            "metadata": {"generateName": f"{metadata['name']}-"},
            "involvedObject": {"kind": host["kind"], "apiVersion": host["apiVersion"], **named},
            "reason": reason,
            "message": message,
            "type": "Normal",
        }
        with contextlib.suppress(Answered, aiohttp.ClientError):
            await self._api.create(f"{CORE}/namespaces/{metadata['namespace']}/events", event)
