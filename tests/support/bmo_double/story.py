"""The story of a host, chapter by chapter, and what an operator shows of it.

Measured with baremetal-operator 02aa505 (August 2026) and its fixture provisioner on kube-apiserver
1.36.3: what `seen` says is what the real operator has stored, each once in a row. Tests hold the
double to it. All hosts of the fixture share the state of one machine, so there is one host.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from tests.support.bmo_double.hosts import DETACHED, INSPECT, PAUSED
from tests.support.kubernetes_client import CORE, Kubernetes, Object, host, hosts_in

NAME, SPACE = "storied", "metal3"
PATH = f"{hosts_in(SPACE)}/{NAME}"
SECRETS = f"{CORE}/namespaces/{SPACE}/secrets"
IMAGE = {"url": "http://image", "checksum": "http://image.sha256sum"}
HINTS = {"deviceName": "/dev/sdb"}
RAID = {"softwareRAIDVolumes": [{"level": "1", "rootVolume": False}]}
PATIENCE = 120.0
QUIET = 2.0
"""Seconds in which nothing may happen to a host that is paused."""

Ends = Callable[[Object], bool]


@dataclass(frozen=True)
class Chapter:
    """A change of the host, and what is seen until it `ends`; `quiet`: nothing is, for a while.

    Of each version there is the state, the operational status, `on`, and the error with its count.
    From here on all work of the kind `fails` fails, if it names one, and no other.
    """

    name: str
    change: Object
    ends: Ends
    seen: tuple[str, ...]
    quiet: bool = False
    fails: str = ""


class Machine(Protocol):
    """The machine behind the host."""

    def fail(self, work: str) -> None:
        """Let all work of a kind fail from now on, and no other; empty: none."""


def annotated(**values: str | None) -> Object:
    """Return a change of annotations."""
    names = {"paused": PAUSED, "inspect": INSPECT, "detached": DETACHED}
    return {"metadata": {"annotations": {names[name]: one for name, one in values.items()}}}


def status(host_: Object) -> Object:
    """Return the status of a host."""
    found: Object = host_.get("status") or {}
    return found


def provisioning(host_: Object) -> Object:
    """Return the part of the status about provisioning."""
    found: Object = status(host_).get("provisioning") or {}
    return found


def shown(host_: Object) -> str:
    """Return what is seen of a host."""
    state, its = provisioning(host_).get("state", ""), status(host_)
    words = [state, its.get("operationalStatus"), "on" if its.get("poweredOn") else ""]
    if kind := its.get("errorType"):
        words += [kind, str(its.get("errorCount"))]
    return " ".join(filter(None, words))


def is_now(words: str) -> Ends:
    """Return whether a host shows this."""
    return lambda found: shown(found) == words


FAILED = (
    *("provisioning OK on", "provisioning error on provisioning error 1"),
    *("deprovisioning error on provisioning error 1", "deprovisioning OK on", "available OK on"),
)
"""A deployment that fails: what it has left is removed, then it is tried again."""

CHAPTERS = (
    Chapter(
        "it is enrolled",
        {},
        lambda found: shown(found) == "available OK on" and "architecture" in found["spec"],
        (
            *("registering", "registering OK", "inspecting OK", "preparing OK", "available OK"),
            "available OK on",
        ),
    ),
    Chapter(
        "root device hints are taken over, and nothing is prepared",
        {"spec": {"rootDeviceHints": HINTS}},
        lambda found: provisioning(found).get("rootDeviceHints") == HINTS,
        (),
    ),
    Chapter(
        "a description changes nothing, but the status is stored again",
        {"spec": {"description": "mine"}},
        lambda found: all(
            one["observedGeneration"] == found["metadata"]["generation"]
            for one in status(found)["conditions"]
            if one["type"] != "Healthy"
        ),
        (),
    ),
    Chapter(
        "it is inspected again",
        annotated(inspect=""),
        lambda found: (
            shown(found) == "available OK on"
            and INSPECT not in (found["metadata"].get("annotations") or {})
        ),
        ("inspecting OK on", "preparing OK on", "available OK on"),
    ),
    Chapter(
        "paused with its image, it does nothing",
        {**annotated(paused="moorage"), "spec": {"image": IMAGE}},
        lambda _: False,
        (),
        quiet=True,
    ),
    Chapter(
        "it goes on",
        annotated(paused=None),
        is_now("provisioned OK on"),
        ("provisioning OK on", "provisioned OK on"),
    ),
    Chapter(
        "it is switched off",
        {"spec": {"online": False}},
        is_now("provisioned OK"),
        ("provisioned OK",),
    ),
    Chapter(
        "it is switched on",
        {"spec": {"online": True}},
        is_now("provisioned OK on"),
        ("provisioned OK on",),
    ),
    Chapter(
        "it is detached",
        annotated(detached=""),
        is_now("provisioned detached on"),
        ("provisioned detached on",),
    ),
    Chapter(
        "it is attached again",
        annotated(detached=None),
        is_now("provisioned OK on"),
        ("provisioned OK on",),
    ),
    Chapter(
        "its image is removed",
        {"spec": {"image": None}},
        is_now("available OK on"),
        ("deprovisioning OK on", "available OK on"),
    ),
    Chapter(
        "its inspection fails twice",
        annotated(inspect=""),
        is_now("inspecting error on inspection error 2"),
        (
            *("inspecting OK on", "inspecting error on inspection error 1"),
            *("inspecting OK on", "inspecting error on inspection error 2"),
        ),
        fails="inspect",
    ),
    Chapter(
        "it is inspected at last",
        {},
        is_now("available OK on"),
        ("inspecting OK on", "preparing OK on", "available OK on"),
    ),
    Chapter(
        "five deployments fail, and there is no sixth",
        {"spec": {"image": IMAGE}},
        is_now("available error on provisioning error 1"),
        (*FAILED * 5, "available error on provisioning error 1"),
        fails="provision",
    ),
    Chapter(
        "another image is deployed",
        {"spec": {"image": {"url": "http://other"}}},
        is_now("provisioned OK on"),
        ("provisioning OK on", "provisioned OK on"),
    ),
    Chapter(
        "its removal fails",
        {"spec": {"image": None}},
        is_now("deprovisioning error on provisioning error 2"),
        (
            *("deprovisioning OK on", "deprovisioning error on provisioning error 1"),
            *("deprovisioning OK on", "deprovisioning error on provisioning error 2"),
        ),
        fails="deprovision",
    ),
    Chapter(
        "it is removed at last",
        {},
        is_now("available OK on"),
        ("deprovisioning OK on", "available OK on"),
    ),
    Chapter(
        "a RAID is prepared",
        {"spec": {"raid": RAID}},
        lambda found: "raid" in provisioning(found) and shown(found) == "available OK on",
        ("preparing OK on", "available OK on"),
    ),
    Chapter(
        "its RAID is removed",
        {"spec": {"raid": None}},
        lambda found: (
            shown(found) == "available OK on"
            and provisioning(found).get("raid", {}).get("softwareRAIDVolumes") == []
        ),
        ("preparing OK on", "available OK on"),
    ),
)


class Story:
    """A story that an operator tells on an API server. `versions` are all of the host."""

    def __init__(self, api: Kubernetes, machine: Machine) -> None:
        self.versions: list[Object] = []
        self._api, self._machine = api, machine
        self._changed = asyncio.Event()

    async def tell(self) -> dict[str, tuple[str, ...]]:
        """Return what is seen in each chapter, and in the one in which the host is deleted."""
        secret = {
            "metadata": {"name": f"{NAME}-bmc"},
            "stringData": {"username": "u", "password": "p"},
        }
        await self._api.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", **secret})
        first = await self._api.create(hosts_in(SPACE), host(NAME))
        watching = asyncio.create_task(self._watch(first["metadata"]["resourceVersion"]))
        try:
            found = {one.name: await self._chapter(one) for one in CHAPTERS}
            return {**found, "it is deleted": await self._deleted()}
        finally:
            watching.cancel()

    async def _watch(self, version: str) -> None:
        async for event in self._api.watch(hosts_in(SPACE), resourceVersion=version):
            if event["object"]["metadata"].get("name") == NAME:
                gone = event["type"] == "DELETED"
                self.versions.append({} if gone else event["object"])
                self._changed.set()

    async def _chapter(self, chapter: Chapter) -> tuple[str, ...]:
        began = len(self.versions)
        before = shown(self.versions[-1]) if self.versions else ""
        self._machine.fail(chapter.fails)
        if chapter.change:
            changed = await self._api.merge(PATH, chapter.change)
            version = changed["metadata"]["resourceVersion"]
            await self._until(
                lambda one: bool(one) and one["metadata"]["resourceVersion"] == version, began
            )
        if chapter.quiet:
            writes = len(self.versions)
            self._changed.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), QUIET)
            return tuple(shown(one) for one in self.versions[writes:])
        await self._until(chapter.ends, began)
        return self._seen(began, before)

    async def _deleted(self) -> tuple[str, ...]:
        began, before = len(self.versions), shown(self.versions[-1])
        await self._api.delete(PATH)
        await self._until(lambda one: not one, began)
        return self._seen(began, before)

    def _seen(self, began: int, before: str) -> tuple[str, ...]:
        found = [before]
        for one in filter(None, self.versions[began:]):
            if shown(one) != found[-1]:
                found.append(shown(one))
        return tuple(found[1:])

    async def _until(self, ends: Ends, began: int) -> None:
        """Return when a version since then is as it should be. Raises TimeoutError."""
        async with asyncio.timeout(PATIENCE):
            while not any(ends(one) for one in self.versions[began:]):
                self._changed.clear()
                await self._changed.wait()


DELETED = ("powering off before delete OK on", "deleting OK")
"""What is seen of a host that is deleted while it is available."""


def untrue(found: dict[str, tuple[str, ...]]) -> list[str]:
    """Return in which chapters something else is seen than of the real operator."""
    right: dict[str, Any] = {one.name: one.seen for one in CHAPTERS} | {"it is deleted": DELETED}
    return [f"{name}: {found.get(name)}" for name, seen in right.items() if found.get(name) != seen]
