"""Reshapes on real servers: readers see the old or the new shape; kills; races; the event loop."""

import asyncio
import json
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from bench.loop import holding, probes
from bench.loop.reshape_probes import reshapes
from bench.wire import ask, request
from moorage.client.client import Client
from moorage.client.reshapes import PlanRefusedError
from moorage.client.transport import RefusedError, UnreachableError
from moorage.wire.ledger import InventoryWanted, ProvidersWanted, ProviderWanted
from moorage.wire.reshapes import (
    ReshapeMove,
    ReshapePlace,
    ReshapePlan,
    ReshapeProvider,
    ReshapeWanted,
    UndoWanted,
)
from tests.e2e.support.server import Server, serve
from tests.support import cluster

HOST, LEFT, RIGHT = (str(UUID(int=n)) for n in (1, 2, 3))
GUESTS = {str(UUID(int=100 + n)): units for n, units in enumerate((3, 1, 2, 1))}
CARDS = dict(zip(GUESTS, (LEFT, LEFT, RIGHT, RIGHT), strict=True))
TRAIT = "HW_GPU_API_VULKAN"
TOTAL = 8

OPTIONS = ("--auth", "noauth2", "--no-access-log")
KILLS = 8
SHAPES = 40

HUGE = (HOST.encode(), b"9" * 30)
"""The host, and a number that no program means."""

OLD = frozenset({(HOST, TOTAL, 7, ())})
NEW = frozenset({(LEFT, 4, 4, (TRAIT,)), (RIGHT, 4, 3, (TRAIT,))})
"""Who has VGPU in either shape: the provider, its total, what is used, its traits."""


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return the address of an empty database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/m.sqlite"
        return
    url = cluster.fresh()
    yield url
    cluster.shared().drop(cluster.database_of(url))


def client(server: Server) -> Client:
    """Return an administrator of a server."""
    return Client(server.url, "admin")


def call(server: Server, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Send a request."""
    raw = b"" if body is None else json.dumps(body).encode()
    answer = asyncio.run(ask(server.url, request(method, path, raw)))
    return answer.status, json.loads(answer.body) if answer.body else None


def furnish(server: Server) -> None:
    """Create the host with all units on it, and the guests."""
    stock = {"VGPU": InventoryWanted(total=TOTAL), "DISK_GB": InventoryWanted(total=10_000)}
    host = ProviderWanted(uuid=HOST, name="host", inventories=stock)
    assert client(server).ledger.providers_upsert(ProvidersWanted(providers=[host])).created == 1
    for guest, units in GUESTS.items():
        claim(server, guest, {"VGPU": units})


def claim(server: Server, consumer: str, amounts: dict[str, int]) -> None:
    """Allocate from the host."""
    body = {
        "allocations": {HOST: {"resources": amounts}},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    status, said = call(server, "PUT", f"/allocations/{consumer}", body)
    assert status == 204, said


def plan() -> ReshapePlan:
    """Return the plan that moves all units to two cards, which get a trait."""
    return ReshapePlan(
        create=[
            ReshapeProvider(uuid=one, name=f"card {one}", parent=HOST) for one in (LEFT, RIGHT)
        ],
        moves=[
            ReshapeMove(
                from_=ReshapePlace(provider=HOST, class_="VGPU"),
                to=ReshapePlace(provider=card, class_="VGPU"),
                amount=4,
                assign={
                    guest: {card: units} for guest, units in GUESTS.items() if CARDS[guest] == card
                },
            )
            for card in (LEFT, RIGHT)
        ],
        traits={LEFT: [TRAIT], RIGHT: [TRAIT]},
    )


def shape(answer: Any) -> frozenset[tuple[str, int, int, tuple[str, ...]]]:
    """Return who has VGPU by the summaries of an answer with candidates."""
    return frozenset(
        (
            uuid,
            one["resources"]["VGPU"]["capacity"],
            one["resources"]["VGPU"]["used"],
            tuple(one["traits"]),
        )
        for uuid, one in answer["provider_summaries"].items()
        if "VGPU" in one["resources"]
    )


SEARCH = "/allocation_candidates?resources=VGPU:1"


def test_a_reader_sees_the_old_or_the_new_shape(database: str) -> None:
    """Inventory, usage and traits change together for all who search; so does what is allocated.

    Claims of a class that is not moved go on beside.
    """
    with serve(database, *OPTIONS) as server:
        furnish(server)
        seen: set[frozenset[tuple[str, int, int, tuple[str, ...]]]] = set()
        wrong: list[Any] = []
        stopped = threading.Event()

        def search() -> None:
            while not stopped.is_set():
                status, answer = call(server, "GET", SEARCH)
                found = shape(answer) if status == 200 else None
                if found is not None and found in (OLD, NEW):
                    seen.add(found)
                else:
                    wrong.append((status, answer))

        def look() -> None:
            while not stopped.is_set():
                for guest, units in GUESTS.items():
                    held = call(server, "GET", f"/allocations/{guest}")[1]["allocations"]
                    amounts = {uuid: one["resources"] for uuid, one in held.items()}
                    if amounts not in ({HOST: {"VGPU": units}}, {CARDS[guest]: {"VGPU": units}}):
                        wrong.append((guest, amounts))

        def claims() -> None:
            while not stopped.is_set():
                claim(server, str(uuid4()), {"DISK_GB": 1})

        others = [threading.Thread(target=one) for one in (search, search, look, claims)]
        for one in others:
            one.start()
        try:
            reshape = client(server).reshapes
            for _ in range(SHAPES // 2):
                done = reshape.carry_out(ReshapeWanted(plan=plan()))
                reshape.undo(done.id)
        finally:
            stopped.set()
            for one in others:
                one.join()
        assert wrong == []
        assert seen == {OLD, NEW}, "the reader has not seen both, so this shows little"
        assert call(server, "POST", "/v1/database/check", {})[1]["differences"] == []


def test_the_naive_way_shows_half_a_shape(database: str) -> None:
    """The control: three calls of the Placement API leave a moment with neither shape."""
    with serve(database, *OPTIONS) as server:
        furnish(server)
        cards = [
            ProviderWanted(
                uuid=one,
                name=f"card {one}",
                parent=HOST,
                inventories={"VGPU": InventoryWanted(total=4)},
            )
            for one in (LEFT, RIGHT)
        ]
        client(server).ledger.providers_upsert(ProvidersWanted(providers=cards))
        assert shape(call(server, "GET", SEARCH)[1]) not in (OLD, NEW)


def test_killed_again_and_again(database: str) -> None:
    """After each kill all of a reshape is there, or nothing, and its answer can be had again."""
    choice = random.Random(44)
    asked: tuple[str, str | None] | None = None
    killed = 0
    for kill in range(KILLS + 1):
        with serve(database, *OPTIONS) as server:
            if kill == 0:
                furnish(server)
            one = client(server).reshapes
            found = shape(call(server, "GET", SEARCH)[1])
            assert found in (OLD, NEW), found
            assert call(server, "POST", "/v1/database/check", {})[1]["differences"] == []
            if asked is not None:
                reshape_id, undone = asked
                present = NEW if undone is None else OLD
                if found == present:
                    assert one.show(reshape_id).undoes == undone
                again = _ask(one, reshape_id, undone)
                assert again == reshape_id
                assert shape(call(server, "GET", SEARCH)[1]) == present
            if kill == KILLS:
                break
            ends = threading.Timer(0.2 + 0.4 * choice.random(), server.stop, [signal.SIGKILL])
            ends.start()
            try:
                while True:
                    last = next(iter(one.all()), None)
                    undone = None if last is None or last.undoes is not None else last.id
                    asked = str(uuid4()), undone
                    _ask(one, *asked)
            except UnreachableError:
                killed += 1
            finally:
                ends.join()
    assert killed == KILLS


def _ask(one: Any, reshape_id: str, undone: str | None) -> str:
    """Commit the plan, or undo a reshape, under this id; return the id of the answer."""
    if undone is None:
        done = one.carry_out(ReshapeWanted(plan=plan(), id=reshape_id))
    else:
        done = one.undo(undone, UndoWanted(id=reshape_id))
    found: str = done.id
    return found


def test_two_servers_commit_at_once() -> None:
    """Of two commits with the digest that both have seen, one is done and one gets 409."""
    url = cluster.fresh()
    with serve(url, *OPTIONS) as one, serve(url, *OPTIONS) as two:
        furnish(one)
        for _ in range(8):
            digest = client(one).reshapes.plan(plan()).digest
            done: list[Any] = []
            together = threading.Barrier(2)

            def commit(server: Server, digest: str, done: list[Any], together: Any) -> None:
                wanted = ReshapeWanted(plan=plan(), digest=digest)
                together.wait()
                try:
                    done.append(client(server).reshapes.carry_out(wanted))
                except PlanRefusedError as refused:
                    done.append(refused)

            both = [
                threading.Thread(target=commit, args=(server, digest, done, together))
                for server in (one, two)
            ]
            for thread in both:
                thread.start()
            for thread in both:
                thread.join()
            (refusal,) = [each for each in done if isinstance(each, PlanRefusedError)]
            (winner,) = [each for each in done if each is not refusal]
            assert (refusal.status, refusal.code) == (409, "reshape_refused")
            assert "provider_exists" in {each.code for each in refusal.plan.violations}
            for server in (one, two):
                assert shape(call(server, "GET", SEARCH)[1]) == NEW
            client(two).reshapes.undo(winner.id)
        assert call(two, "POST", "/v1/database/check", {})[1]["differences"] == []
    cluster.shared().drop(cluster.database_of(url))


def test_plans_do_not_hold_the_event_loop(database: str, tmp_path: Path) -> None:
    """A plan with as many consumers as allowed is worked on in threads, and is bounded in bytes."""
    much = probes.Sizes(planned=9_900)
    guests = [probes.CONSUMER.format(7, n) for n in range(much.planned)]
    stock = {"SRIOV_NET_VF": {"total": 2_000_000_000}}
    sends = [probes.bulk([{"uuid": probes.PLANNED, "name": "planned", "inventories": stock}])]
    for first in range(0, much.planned, much.consumers):
        count = min(much.consumers, much.planned - first)
        body = json.dumps(probes.consumers_on(probes.PLANNED, 7, first, count)).encode()
        sends.append(request("POST", "/allocations", body))

    def asked(what: str, method: str, route: str, path: str = "", body: Any = None) -> Any:
        raw = b"" if body is None else json.dumps(body).encode()
        return probes.Probe(what, method, route, request(method, path or route, raw))

    async def measured(server: holding.MeasuredServer) -> list[holding.Line]:
        await holding.send_all(server.url, iter(sends))
        every = reshapes(asked, probes.PLANNED, LEFT, guests, 1_000_000)
        found = []
        async for one, answer, held in holding.measure(server, every):
            assert (answer.status < 300) != ("invalid" in one.what), (one.what, answer.body[:500])
            assert len(answer.body) < 8 << 20, one.what
            found.append(holding.Line(f"{one.route} ({one.what})", answer.status, held))
        return found

    with holding.measured_server(database, tmp_path) as server:
        found = asyncio.run(measured(server))
    long = [str(one) for one in found if one.held.milliseconds >= holding.HELD_MILLISECONDS_MAX]
    assert long == []


def test_refusals_say_what_to_do(database: str) -> None:
    """What is no plan, an unknown reshape, and an id that another one has."""
    with serve(database, *OPTIONS) as server:
        furnish(server)
        for body, word in (
            (b"{}", "plan"),
            (b'{"plan": {"moves": [{"from": {}}]}}', "provider"),
            (b'{"plan": {"moves": [{"from_": {}}]}}', "from"),
            (b'{"plan": {"moved": []}}', "moved"),
            (b'{"plan": {"delete": ["no uuid"]}}', "UUID"),
            (b'{"plan": {}, "id": "mine"}', "UUID"),
            (b'{"plan": {"inventories": {"%b": {"VGPU": {"total": %b}}}}}' % HUGE, "at most"),
            (b'{"plan": {"inventories": {"%b": {"VGPU": {"total": -5}}}}}' % HUGE[:1], "carried"),
            (
                b'{"plan": {"inventories": {"%b": {"VGPU": {"allocation_ratio": 1e39}}}}}'
                % HUGE[:1],
                "carried",
            ),
        ):
            answer = asyncio.run(ask(server.url, request("POST", "/v1/reshapes", body)))
            assert answer.status in (400, 409), answer
            assert word in json.loads(answer.body)["detail"], answer
            assert b"from_" not in answer.body or b"from_" in body
        one = client(server).reshapes
        with pytest.raises(RefusedError) as unknown:
            one.show(str(uuid4()))
        assert (unknown.value.status, unknown.value.code) == (404, "reshape_not_found")
        done = one.carry_out(ReshapeWanted(plan=plan(), reason="a reason"))
        with pytest.raises(RefusedError) as reused:
            one.carry_out(ReshapeWanted(plan=ReshapePlan(), id=done.id))
        assert (reused.value.status, reused.value.code) == (409, "key_reused")
        assert [each.id for each in one.all()] == [done.id]
        assert one.show(done.id) == done
        with suppress(RefusedError):
            one.undo_plan(done.id)
