"""What a host says of why it waits, against a real Moorage and the double of an API server."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.integrations.kubernetes.api import Connection, KubernetesApi
from moorage.integrations.metal3 import events as eventing
from moorage.integrations.metal3 import explain as explaining
from moorage.integrations.metal3 import notes as noting
from moorage.integrations.metal3.explain import Explainer
from moorage.integrations.metal3.hosts import WAITING, uid_of
from moorage.integrations.metal3.notes import TEXT_LENGTH_MAX, plain, said_by, text_of
from moorage.integrations.metal3.reconcile import host_of_object
from moorage.integrations.metal3.requests import HostRequests, body_of
from moorage.integrations.provisioning.notes import (
    UNREADABLE,
    WRITING_MAX,
    Note,
    differs,
    remark_of,
)
from moorage.integrations.provisioning.start import Start
from moorage.integrations.provisioning.unit_release import RequestOutcome
from tests.integrations.metal3.govern.test_governor import ALL, IMAGE, LIMIT, OWN, World, play
from tests.support.bmo_double.hosts import PAUSED, annotations
from tests.support.kubernetes_client import Kubernetes, Object, host
from tests.support.kubernetes_double.faults import Fault
from tests.support.kubernetes_double.server import KubernetesDouble

AT = datetime(2026, 1, 2, 3, 4, 5, 678, UTC)
NOTE: Note = {
    "pool": "deploy",
    "place": 3,
    "eta_seconds": [40, 90],
    "code": "full",
    "reason": "first in line; limit: 4 of 4 units of deploy are held by metal3/host-0 (1),"
    " metal3/host-1 (1), metal3/host-2 (1) and 1 more",
    "since": "2026-01-02T03:00:00+00:00",
}
DESCRIBED = 138
"""Characters of a line that `kubectl describe` shows."""

GOLDEN = """\
pool: "deploy"
place: 3
eta_seconds: [40, 90]
code: "full"
reason: "first in line; limit: 4 of 4 units of deploy are held by metal3/host-0 (1),
  metal3/host-1 (1), metal3/host-2 (1) and 1 more"
since: "2026-01-02T03:00:00+00:00"
noted: "2026-01-02T03:04:05+00:00\""""


def saying(text: str) -> Object:
    """Return a host with an annotation."""
    return host("a", annotations={WAITING: text})


def test_the_annotation_is_one_field_a_line() -> None:
    """It is YAML in lines that `kubectl describe` does not cut; a note that was written stays."""
    text = text_of(plain(NOTE), AT)
    assert text == GOLDEN
    assert max(map(len, text.splitlines())) < DESCRIBED
    assert yaml.safe_load(text) == {**NOTE, "noted": "2026-01-02T03:04:05+00:00"}
    assert not differs(said_by(saying(text)), NOTE)
    assert said_by(host("a")) is None


def test_a_text_of_others_cannot_add_fields() -> None:
    """Whatever a reason contains, it stays one field, and short; it is written only once."""
    evil = 'a\nplace: 1\n  b: 2\r\u2028"\ud800 \\ ' + "x " * 999
    note = {**NOTE, "reason": evil, "eta_seconds": None}
    text = text_of(plain(note), AT)
    found = yaml.safe_load(text)
    assert found.keys() == {*NOTE, "noted"}
    assert (found["place"], found["eta_seconds"]) == (3, None)
    assert len(found["reason"]) <= TEXT_LENGTH_MAX
    assert text.encode().decode() == text
    remark = plain(remark_of(evil))
    assert not differs(said_by(saying(text_of(remark, AT))), remark)
    assert differs(said_by(saying(text_of(remark, AT))), remark_of(evil))


@pytest.mark.parametrize("text", ["", "wait", "place: x", "{}\n"])
def test_an_annotation_of_others_is_replaced(text: str) -> None:
    """What cannot be read is written over, or removed."""
    assert said_by(saying(text)) == UNREADABLE
    assert differs(said_by(saying(text)), NOTE)


def notes(world: World, names: list[str]) -> dict[str, Any]:
    """Return what hosts say, of those that say something."""
    texts = {name: annotations(world.host(name)).get(WAITING) for name in names}
    return {name: yaml.safe_load(text) for name, text in texts.items() if text is not None}


def test_hosts_say_why_they_wait_until_they_start(tmp_path: Path) -> None:
    """Those without a unit say their place and the reason. The note goes in the write that removes
    our pause: no version of a host has a note without our pause. At the end none has one.
    """
    names = [f"host-{number}" for number in range(LIMIT + 2)]

    async def scene(world: World) -> None:
        for name in names:
            await world.api.create(ALL, host(name, image=IMAGE, annotations=OWN))
        async with world.governor() as first, world.governor() as second:
            await world.until(lambda: len(notes(world, names)) == 2, first, second)
            found = notes(world, names)
            assert sorted(note["place"] for note in found.values()) == [1, 2]
            assert {note["pool"] for note in found.values()} == {"deploy"}
            assert {note["code"] for note in found.values()} == {"limit", "ahead"}
            assert all(note["reason"] for note in found.values())
            await world.until(lambda: world.reached(names, "provisioned"), first, second)
        assert notes(world, names) == {}
        changes = [one.object for one in world.double.storage.after(0) if one.key[3] in names]
        said = [one for one in changes if WAITING in annotations(one)]
        assert {annotations(one)[PAUSED] for one in said} == {"moorage"}
        starts = sum(
            WAITING in annotations(one.before or {"metadata": {}})
            and WAITING not in annotations(one.object)
            for one in world.double.storage.after(0)
            if one.key[3] in names
        )
        assert starts == len({one["metadata"]["name"] for one in said})

    play(tmp_path, scene)


def test_a_host_that_others_let_go_says_nothing(tmp_path: Path) -> None:
    """If people remove our pause, the governor removes the note, and only the note."""
    names = [f"host-{number}" for number in range(LIMIT + 1)]

    async def scene(world: World) -> None:
        for name in names:
            await world.api.create(ALL, host(name, image=IMAGE, annotations={**OWN, "mine": "1"}))
        async with world.governor() as governor:
            await world.until(lambda: len(notes(world, names)) == 1, governor)
            (waiting,) = notes(world, names)
            await world.api.merge(f"{ALL}/{waiting}", {"metadata": {"annotations": {PAUSED: None}}})
            await world.until(lambda: not notes(world, names), governor)
            assert annotations(world.host(waiting))["mine"] == "1"

    play(tmp_path, scene)


@pytest.mark.parametrize("paused", [True, False])
def test_only_a_host_without_our_pause_loses_its_note(paused: bool) -> None:
    """A governor that sees no ticket leaves the note to the one that starts the host; two writes
    would be a conflict for the start. What people let go loses its note.
    """

    async def scene(requests: HostRequests, client: Kubernetes) -> None:
        marks = {WAITING: "place: 1", PAUSED: "moorage" if paused else None}
        await client.merge(f"{ALL}/a", {"metadata": {"annotations": marks}})
        hosts = {uid_of(one): one for one in await requests.all()}
        explainer = Explainer(requests, lambda: AT)
        for _ in range(2):
            await explainer.explain(hosts, {}, {}, {}, {})
        assert (WAITING in annotations(await client.get(f"{ALL}/a"))) is paused

    requested(scene)


def test_failing_notes_change_nothing_else(tmp_path: Path) -> None:
    """While notes are refused or not answered, passes succeed, and hosts start all the same."""
    names = [f"host-{number}" for number in range(LIMIT + 2)]

    async def scene(world: World) -> None:
        async with world.governor() as governor:
            for name in names[:LIMIT]:
                await world.api.create(ALL, host(name, image=IMAGE, annotations=OWN))
            await world.until(lambda: world.held() == LIMIT, governor)
            for name in names[LIMIT:]:
                await world.api.create(ALL, host(name, image=IMAGE, annotations=OWN))
            world.double.faults.pending += [
                Fault("patch", name=names[LIMIT], answer=500),
                Fault("patch", name=names[LIMIT + 1], answer="drop"),
            ]
            assert await governor.tick()
            while world.double.faults.pending:
                assert await governor.tick()
            await world.until(lambda: world.reached(names, "provisioned"), governor)

    play(tmp_path, scene)


def test_a_webhook_that_hangs_holds_up_no_notes_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Hosts whose notes, or events, are not written within moments rest; others have theirs."""
    monkeypatch.setattr(explaining, "EXPLAIN_SECONDS", 0.5)
    monkeypatch.setattr(noting, "PUT_SECONDS", 0.2)
    monkeypatch.setattr(eventing, "CREATE_SECONDS", 0.2)

    async def scene(double: KubernetesDouble, requests: HostRequests, client: Kubernetes) -> None:
        odd = [f"a-{number:02}" for number in range(2 * WRITING_MAX)]
        for name in [*odd, "z"]:
            await client.create(ALL, host(name, annotations=OWN))
        double.faults.pending = [
            Fault("patch", "baremetalhosts", name, times=10_000, wait=60.0) for name in odd
        ]
        double.faults.pending.append(Fault("create", "events", times=5, wait=60.0))
        hosts = {uid_of(one): one for one in await requests.all()}
        explainer = Explainer(requests, lambda: AT)

        async def explain() -> None:
            await explainer.explain(hosts, {}, {}, dict.fromkeys(hosts, "no pool"), {})

        async with asyncio.timeout(30):
            while WAITING not in annotations(await client.get(f"{ALL}/z") or {}):
                await explain()
            while double.counts["create", "events"] < len(hosts):
                await explain()

    async def run() -> None:
        async with (
            KubernetesDouble() as double,
            Kubernetes(double.url) as client,
            KubernetesApi(Connection(double.url)) as api,
        ):
            await scene(double, HostRequests(api), client)

    asyncio.run(run())


def start_of(read: Object) -> Start:
    """Return the start of a host."""
    return Start(host_of_object(read, "inspect", ()), "inspect", {"deploy": 1}, body_of(read))


def requested(scene: Callable[[HostRequests, Kubernetes], Awaitable[None]]) -> None:
    """Run a scene with a double that has one host with our pause."""

    async def run() -> None:
        async with (
            KubernetesDouble() as double,
            Kubernetes(double.url) as client,
            KubernetesApi(Connection(double.url)) as api,
        ):
            await client.create(ALL, host("a", image=IMAGE, annotations=OWN))
            await asyncio.wait_for(scene(HostRequests(api), client), 60)

    asyncio.run(run())


def test_a_note_does_not_delay_a_start() -> None:
    """A note that was written after the host was read, also by another process, is no change."""

    async def scene(requests: HostRequests, client: Kubernetes) -> None:
        (read,) = await requests.all()
        assert await requests.note(read, "place: 1")
        assert not await requests.note(read, "place: 2")
        result = await requests.send(start_of(dict(read)))
        assert result.outcome is RequestOutcome.ACCEPTED, result
        assert not {PAUSED, WAITING} & annotations(await client.get(f"{ALL}/a")).keys()

    requested(scene)


def test_a_start_that_another_process_was_faster_with_keeps_its_units() -> None:
    """The host has lost our pause meanwhile, so it needs the units: they are not given back."""

    async def scene(requests: HostRequests, client: Kubernetes) -> None:
        (read,) = await requests.all()
        await client.merge(f"{ALL}/a", {"metadata": {"annotations": {PAUSED: None}}})
        result = await requests.send(start_of(dict(read)))
        assert result.outcome is RequestOutcome.ACCEPTED, result

    requested(scene)


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"online": False}},
        {"metadata": {"annotations": {"mine": "1"}}},
        {"metadata": {"annotations": {PAUSED: "capm3"}}},
        {"metadata": {"labels": {"mine": "1"}}},
    ],
)
def test_every_other_change_delays_a_start(change: Object) -> None:
    """This is the control: the host is read again, and keeps its place in line meanwhile."""

    async def scene(requests: HostRequests, client: Kubernetes) -> None:
        (read,) = await requests.all()
        await client.merge(f"{ALL}/a", change)
        result = await requests.send(start_of(dict(read)))
        assert (result.outcome, result.soon) == (RequestOutcome.REFUSED, True)
        assert PAUSED in annotations(await client.get(f"{ALL}/a"))

    requested(scene)
