"""What a hostile or broken Ironic answers: it harms neither the reporter nor the ledger."""

import asyncio
import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from moorage.integrations.answers import ANSWER_BYTES_MAX
from moorage.integrations.ironic import nodes as module
from moorage.integrations.ironic.nodes import IronicError, NodeReader
from moorage.integrations.ironic.report.mapping import (
    FIELDS,
    UnreadableNodeError,
    reported,
    uuid_of,
)
from moorage.integrations.ironic.report.remarks import NAME_LENGTH_MAX
from tests.integrations.ironic.report.twisted import TwistedIronic
from tests.integrations.ironic.report.world import CONDUCTORS, GROUP, World, logged, played, whole
from tests.support.ironic_double.server import IronicDouble

BROKEN: dict[str, Callable[[Any], Any]] = {
    "a list": lambda page: [page],
    "a number": lambda _: 7,
    "no JSON": lambda _: b"<html>",
    "nothing": lambda _: b"",
    "not UTF-8": lambda _: b'{"nodes": ["\xff"]}',
    "NaN": lambda _: b'{"nodes": [{"uuid": "x", "weight": NaN}]}',
    "a huge number": lambda _: b'{"nodes": [], "x": ' + b"9" * 5_000 + b"}",
    "nesting": lambda _: b"[" * 200_000,
    "nested nodes": lambda _: b'{"nodes": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "nested errors": lambda _: b'{"error_message": ' + b"[" * 200_000,
    "very many values": lambda _: b'{"nodes": [' + b"1," * 2_000_001 + b"1]}",
    "an object of nodes": lambda page: {"nodes": {"0": page.get("nodes")}},
    "nodes that are lists": lambda page: {"nodes": [[one] for one in page.get("nodes", ())]},
    "nodes without UUIDs": lambda _: {"nodes": [{"resource_class": "baremetal"}]},
    "UUIDs that are numbers": lambda _: {"nodes": [{"uuid": 12}]},
    "an odd link": lambda page: {**page, "next": {"href": 1}},
    "a link without marker": lambda page: {**page, "next": "http://[/v1/nodes?limit=1"},
    "a long marker": lambda page: {**page, "next": f"/v1/nodes?marker={'x' * 256}"},
    "the same page again": lambda page: {**page, "next": "/v1/nodes?marker=node-1"},
}


@played(3)
async def test_broken_answers(it: World) -> None:
    """Each ends the pass and the full reading with an error; the ledger stays; then all goes on."""
    async with (
        TwistedIronic(it.double.url) as ironic,
        it.reporter(conductors=CONDUCTORS, ironic=ironic.url) as reporter,
    ):
        await whole(reporter)
        before = {uuid: one.generation for uuid, one in it.providers().items()}
        for what, broken in BROKEN.items():
            ironic.twist = lambda _, page, broken=broken: broken(page)
            reporter.read_all_soon()
            assert not await reporter.tick(), what
            with logged() as lines:
                await reporter._read_all_pages()
            assert reporter.progress.full_trouble, what
            assert all(line.isprintable() and len(line) < 600 for line in lines)
            ironic.twist = None
            await whole(reporter)
        assert {uuid: one.generation for uuid, one in it.providers().items()} == before


ODD: dict[str, dict[str, Any]] = {
    "an upper-case UUID": {"uuid": "6E0F3C52-0000-4000-8000-00000000000A"},
    "braces": {"uuid": "{6e0f3c52-0000-4000-8000-00000000000b}"},
    "no UUID": {"uuid": "\x1b]0;owned\x07\n" * 50},
    "a surrogate": {"uuid": "\ud800"},
    "an empty UUID": {"uuid": ""},
    "a UUID that is null": {"uuid": None},
    "a UUID that is a number": {"uuid": 12},
    "a UUID without dashes": {"uuid": "6e0f3c5200004000800000000000000c"},
    "a URN": {"uuid": "urn:uuid:6e0f3c52-0000-4000-8000-00000000000d"},
    "a class that is a list": {"resource_class": ["baremetal"]},
    "a long class": {"resource_class": "x" * 300},
    "a state that is a number": {"provision_state": 1},
    "power that is an object": {"power_state": {"on": True}},
    "an instance that is true": {"instance_uuid": True},
    "maintenance in words": {"maintenance": "false"},
    "maintenance as a number": {"maintenance": 0},
    "traits that are a text": {"traits": "CUSTOM_A"},
    "a trait that is a number": {"traits": [1]},
    "a trait with a line break": {"traits": ["CUSTOM_A\nB"]},
    "a trait that cannot be encoded": {"traits": ["CUSTOM_\ud800"]},
    "very many traits": {"traits": [f"CUSTOM_{n}" for n in range(101)]},
}


@played(len(ODD) + 2)
async def test_odd_nodes(it: World) -> None:
    """Nothing is reported of them, the log says why; all others follow, and nothing is removed."""
    async with (
        TwistedIronic(it.double.url) as ironic,
        it.reporter(ironic=ironic.url) as reporter,
    ):
        await whole(reporter)
        before = {uuid: one.generation for uuid, one in it.providers().items()}

        def twist(_: str, page: Any) -> Any:
            odd = {it.node(number).uuid: change for number, change in enumerate(ODD.values(), 1)}
            shown = [{**one, **odd.get(one["uuid"], {})} for one in page.get("nodes", ())]
            return {**page, "nodes": shown} if "nodes" in page else page

        ironic.twist = twist
        last = len(ODD) + 1
        for number in range(1, last + 1):
            it.change(number, maintenance=True)
        with logged() as lines:
            assert await reporter.tick(), reporter.progress.trouble
            await whole(reporter)
        assert it.reserved(last) == 1
        assert it.reserved(last + 1) == 0
        untouched = {it.node(number).uuid for number in range(1, last)}
        after = {uuid: one.generation for uuid, one in it.providers().items()}
        assert len(after) == last + 1
        assert all(after[uuid] == before[uuid] for uuid in untouched)
        said = [line for line in lines if "it is not reported: its " in line]
        assert said and any("remarks on" in line for line in lines)
        assert all(line.isprintable() and len(line) < 300 for line in lines)
        (member,) = it.reporting.group(GROUP).members
        assert await reporter.tick()
        (member,) = it.reporting.group(GROUP).members
        assert member.last_pass is not None
        assert member.last_pass.refused["unreadable"] == len(ODD), "each is counted"
        ironic.twist = None
        await whole(reporter)
        assert [await reporter.tick() for _ in range(2)] == [True, True]  # the second one says it
        (member,) = it.reporting.group(GROUP).members
        assert member.last_pass is not None
        assert member.last_pass.refused == {}, "and none that is as it should be"


ANYTHING: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 1.5, 10**30, "", " ", "x", "ä", "\ud800", "\x00", "\u202e"),
    *("x" * 10_000, "x y-z", "CUSTOM_A", "OWNER_NOVA", [], {}, [[]], [None], ["CUSTOM_A"], ["a"]),
    *(["CUSTOM_A"] * 200, {"a": {}}, "6E0F3C52-0000-4000-8000-00000000000A", ["HW_CPU_X86_AVX2"]),
    *(["NO_SUCH_TRAIT"], ["OWNER_NOVA"], "2026-01-01", "9999-12-31T23:59:59+14:00"),
)
"""Values of any kind."""

MEMBERS = ("uuid", *FIELDS, "name", "updated_at", "created_at", "properties", "extra", "owner")
NODES = 30


@played(NODES + 1)
async def test_nodes_with_anything_in_them(it: World) -> None:
    """No node stops a pass: each that is odd is counted and named, and a good one follows."""
    chance = random.Random(39)
    last = NODES + 1
    async with (
        TwistedIronic(it.double.url) as ironic,
        it.reporter(ironic=ironic.url) as reporter,
    ):
        for turn in range(12):
            changes = {
                it.node(number).uuid: {
                    name: chance.choice(ANYTHING) for name in chance.sample(MEMBERS, 1 + turn % 3)
                }
                for number in range(1, last)
            }
            seen: dict[str, Any] = {}

            def twist(_: str, page: Any, changes: Any = changes, seen: Any = seen) -> Any:
                if "nodes" not in page:
                    return page
                shown = [{**one, **changes.get(one["uuid"], {})} for one in page["nodes"]]
                seen.update(zip((one["uuid"] for one in page["nodes"]), shown, strict=True))
                return {**page, "nodes": shown}

            ironic.twist = twist
            for number in range(1, last + 1):
                it.change(number, maintenance=turn % 2 == 0)
            with logged() as lines:
                assert await reporter.tick(), reporter.progress.trouble
                await whole(reporter)
                assert [await reporter.tick() for _ in range(2)] == [True, True]
            assert it.reserved(last) == (turn % 2 == 0)
            odd = {name_of(one, number) for number, one in enumerate(seen.values())} - {None}
            progress = reporter.progress
            assert progress.unreadable == len(odd), (turn, changes)
            (member,) = it.reporting.group(GROUP).members
            assert member.last_pass is not None
            assert member.last_pass.refused.get("unreadable", 0) == len(odd)
            assert member.last_pass.nodes == progress.own - progress.unclassed
            assert all(line.isprintable() and len(line) < 400 for line in lines)


def name_of(node: dict[str, Any], number: int) -> str | int | None:
    """Return what tells a node apart of which nothing can be reported; None: something can be."""
    text = node["uuid"]
    if not isinstance(text, str):
        return number
    try:
        reported(node)
    except UnreadableNodeError:
        return uuid_of(text) or text[:NAME_LENGTH_MAX]
    return None


@played(3)
async def test_nodes_too_large_to_read_as_a_whole(it: World) -> None:
    """Their properties are not needed: the nodes are read without them instead of never."""
    async with (
        TwistedIronic(it.double.url) as ironic,
        it.reporter(ironic=ironic.url) as reporter,
    ):
        await whole(reporter)

        def twist(path: str, page: Any) -> Any:
            if "detail" not in path or len(page["nodes"]) <= 1:
                return page
            answer = web.Response(body=b" " * (ANSWER_BYTES_MAX + 1))
            answer.enable_compression()
            return answer

        ironic.twist = twist
        it.change(1, maintenance=True)
        assert await reporter.tick(), reporter.progress.trouble
        await reporter.read_all_done()
        assert reporter.progress.full_trouble is None
        assert it.reserved(1) == 1


@played(3)
async def test_a_known_node_gets_an_upper_case_uuid(it: World) -> None:
    """It is the same node, so it is not asked for as missing, and never reported as absent."""
    async with (
        TwistedIronic(it.double.url) as ironic,
        it.reporter(ironic=ironic.url) as reporter,
    ):
        it.double.fleet.add(
            {
                "name": "letters",
                "uuid": "6e0f3c52-0000-4000-8000-00000000000a",
                "driver": "fake-hardware",
                "resource_class": "baremetal",
            },
            "available",
        )
        await whole(reporter)
        ironic.twist = lambda _, page: {
            **page,
            "nodes": [{**one, "uuid": one["uuid"].upper()} for one in page.get("nodes", ())],
        }
        ironic.asked.clear()
        await whole(reporter)
        assert not [target for target in ironic.asked if "00000000000a?" in target]
        assert len(it.providers()) == 4


@played(3)
async def test_another_server_says_404(it: World) -> None:
    """Only Ironic's own words mean that there is no such node; another node is no answer."""
    async with (
        TwistedIronic(it.double.url) as ironic,
        it.reporter(ironic=ironic.url) as reporter,
    ):
        await whole(reporter)
        it.double.fleet.hidden.add(it.node(1).uuid)
        missing = it.node(1).uuid
        it.double.fleet.nodes.pop(missing)
        for answer in ({"error": "no such page"}, {"uuid": it.node(2).uuid}):
            ironic.twist = lambda path, page, answer=answer: (
                answer if path.endswith(missing) else page
            )
            reporter.read_all_soon()
            assert await reporter.tick()
            await reporter.read_all_done()
            assert reporter.progress.full_trouble is not None
            assert missing in it.providers()
        ironic.twist = None
        await whole(reporter)
        assert missing not in it.providers()


@played(3)
async def test_a_link_to_another_host(it: World) -> None:
    """Only its marker counts: nothing is sent to other hosts, and no other list is read."""
    async with TwistedIronic(it.double.url) as ironic, NodeReader(ironic.url) as nodes:
        first = it.node(1).uuid
        link = f"http://192.0.2.1:9/v1/ports?marker={first}&fields=driver_info&limit=1"

        def twist(_: str, page: Any) -> Any:
            return {**page, "next": link} if len(page["nodes"]) == 3 else page

        ironic.twist = twist
        listed = [node["uuid"] for node in await nodes.all(["uuid"])]
        assert len(listed) == 3 + 2
        targets = [target for target in ironic.asked if target != "/v1"]
        assert len(targets) == 2
        assert targets[1] == f"{targets[0]}&marker={first}"


@pytest.mark.parametrize("bound", ["LIST_BYTES_MAX", "ENTRIES_MAX", "PAGES_MAX"])
def test_endless_pages(bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list ends with an error after a number of bytes, of entries, or of pages."""
    monkeypatch.setattr(module, bound, 2_000 if bound == "LIST_BYTES_MAX" else 20)
    numbers = itertools.count()

    def twist(*_: Any) -> Any:
        page = {"nodes": [{"uuid": "x"}] * 2, "next": f"/v1/nodes?marker={next(numbers)}"}
        return web.json_response(page)

    async def run() -> None:
        async with (
            IronicDouble(1) as double,
            TwistedIronic(double.url, twist) as ironic,
            NodeReader(ironic.url) as nodes,
        ):
            with pytest.raises(IronicError, match=r"is longer than|does not end"):
                await nodes.all(["uuid"])

    asyncio.run(run())
    assert next(numbers) <= 40


def test_a_very_long_answer() -> None:
    """It is read up to the limit only, also if it is compressed."""

    async def run() -> None:
        def twist(*_: Any) -> Any:
            answer = web.Response(body=b" " * (ANSWER_BYTES_MAX + 1))
            answer.enable_compression()
            return answer

        async with (
            IronicDouble(1) as double,
            TwistedIronic(double.url, twist) as ironic,
            NodeReader(ironic.url) as nodes,
        ):
            with pytest.raises(IronicError, match="the answer is longer than 64 MiB"):
                await nodes.all(["uuid"])

    asyncio.run(run())


@played(3)
async def test_conductors_with_odd_names(it: World) -> None:
    """The last list stays, the error is shown, and the pass goes on."""
    async with (
        TwistedIronic(it.double.url) as ironic,
        it.reporter(conductors=CONDUCTORS, ironic=ironic.url) as reporter,
    ):
        await whole(reporter)
        seen = it.reporting.group(CONDUCTORS).observed
        for name in ("a b", "\x1b]0;", "\ud800", "x" * 300):
            shown = [{"hostname": name, "alive": True}]
            ironic.twist = lambda path, page, shown=shown: (
                {"conductors": shown} if "conductors" in path else page
            )
            assert await reporter.tick(), reporter.progress.trouble
            group = it.reporting.group(CONDUCTORS)
            assert group.observed == seen
            assert "invalid name" in group.observer_error


@played(3)
async def test_a_node_with_novas_trait(it: World) -> None:
    """It is reported without it, so that its provider still follows; the log says it once."""
    it.node(1).members["traits"] = ["OWNER_NOVA", "CUSTOM_RACK_7"]
    async with it.reporter() as reporter:
        with logged() as lines:
            await whole(reporter)
            await whole(reporter)
        assert len([line for line in lines if "OWNER_NOVA is left out" in line]) == 1
        assert it.providers()[it.node(1).uuid].traits == ["CUSTOM_RACK_7"]
        it.change(1, resource_class="other")
        assert await reporter.tick()
        assert [*it.providers()[it.node(1).uuid].inventories] == ["CUSTOM_OTHER"]
