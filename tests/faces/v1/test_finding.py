"""One text finds things of all kinds: those that the caller may list, and no others."""

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4

import pytest

from moorage.faces.native_api import RefusedError
from moorage.faces.v1.in_process import InProcessApi
from moorage.faces.web import Caller
from moorage.service.caller_turns import FINDS_OF_ONE_MAX
from moorage.wire.operations import finding
from tests.faces.v1.leasing import ask, make_pool
from tests.faces.v1.native import Native, Response
from tests.service.running import running

NEWEST = {"OpenStack_API_Version": "placement latest"}
AGENT = str(UUID(int=0xABCDEF01 << 96 | 7, version=4))


def find(native: Native, text: str, token: str | None = None, **more: Any) -> Response:
    """Ask what a text finds."""
    query = "".join(f"&{name}={value}" for name, value in more.items())
    return native.ask("GET", f"/v1/find?text={quote(text, safe='')}{query}", token=token)


def found(native: Native, text: str, token: str | None = None, **more: Any) -> set[tuple[str, str]]:
    """Return the kinds and ids of what a text finds."""
    answer = find(native, text, token, **more)
    assert answer.status == 200, answer
    return {(one["kind"], one["id"]) for one in answer.body["found"]}


@pytest.fixture(scope="module")
def things(native: Native) -> dict[str, str]:
    """Return the ids of one thing of each kind, all of which have `quill` in their names."""
    made = {"provider": native.provider("Rack-Quill-01"), "pool": make_pool(native, limit=3)}
    native.ask("PUT", "/v1/pools/quill/installs", {"limit": 1, "labels": {"team": "feather"}})
    lease = ask(native, "quill/installs", labels={"job": "Quill-4711"})
    ticket = ask(native, "quill/installs", labels={"job": "quill-4712"})
    made |= {"lease": lease.body["id"], "ticket": ticket.body["id"]}
    assert (lease.status, ticket.status) == (201, 202)
    native.ask("PUT", f"/v1/agents/{AGENT}", {"group": "quill-row", "labels": {"rack": "quill"}})
    consumer = str(uuid4())
    native.ask(
        "PUT",
        f"/resource_providers/{made['provider']}/inventories",
        {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}},
        OpenStack_API_Version="placement latest",
    )
    body = {
        "allocations": {made["provider"]: {"resources": {"VCPU": 1}}},
        **{"project_id": "Quill-Shop", "user_id": "u", "consumer_generation": None},
        "consumer_type": "INSTANCE",
    }
    path = f"/allocations/{consumer}"
    assert native.ask("PUT", path, body, OpenStack_API_Version="placement latest").status == 204
    native.token("reader", name="quill-bot")
    return {**made, "consumer": consumer, "agent": AGENT}


def test_a_name_finds_things_of_all_kinds(native: Native, things: dict[str, str]) -> None:
    """Upper and lower case are the same, except in the name of a project."""
    for text in ("quill", "QUILL", "  Quill "):
        kinds = found(native, text)
        assert {kind for kind, _ in kinds} == {
            *("provider", "agent", "group", "pool", "lease", "ticket", "token")
        }, text
        assert ("provider", things["provider"]) in kinds
    assert ("project", "Quill-Shop") in found(native, "Quill-Shop")
    assert ("project", "Quill-Shop") not in found(native, "quill-shop")
    assert found(native, "no such thing") == set()


def test_labels_and_ids_find_things(native: Native, things: dict[str, str]) -> None:
    """A label is written as NAME=VALUE, an id by at least 8 characters."""
    assert found(native, "job=quill-4711") == {("lease", things["lease"])}
    assert found(native, "team=feath") == {("pool", "quill/installs")}
    for kind in ("provider", "consumer", "agent"):
        for length in (8, 13, 36):
            assert (kind, things[kind]) in found(native, things[kind][:length].upper())
        assert (kind, things[kind]) not in found(native, things[kind][:7])
    assert ("ticket", things["ticket"]) in found(native, things["ticket"])


def test_nobody_finds_what_he_may_not_list(native: Native, things: dict[str, str]) -> None:
    """Readers see no tokens; those of a project see only pools and leases."""
    everything = {kind for kind, _ in found(native, "quill")}
    seen = {kind for kind, _ in found(native, "quill", native.token("reader"))}
    assert seen == everything - {"token"}
    bound = native.token("reader", "shop")
    assert {kind for kind, _ in found(native, "quill", bound)} == {"pool", "lease", "ticket"}
    assert found(native, things["provider"], bound) == set()
    assert found(native, "Quill-Shop", bound) == set()
    lists = {"provider": "providers", "agent": "agents", "token": "tokens", "pool": "pools"}
    for kind, path in lists.items():  # the control: the lists themselves say the same
        may = native.ask("GET", f"/v1/{path}", token=bound).status == 200
        assert may == (kind == "pool"), kind


def test_callers_take_turns(tmp_path: Path) -> None:
    """Each search copies the names of all things: those of one caller do not pile up."""

    async def scenario() -> None:
        async with running(tmp_path / "moorage.sqlite") as one:
            api, ended = InProcessApi(one.service), list[str]()

            async def ask(name: str) -> int:
                caller = Caller(user_id=name, project_id=None, roles=frozenset({"admin"}))
                try:
                    await api.call(caller, finding.FIND, query={"text": "quill"})
                except RefusedError as refused:
                    return refused.status
                finally:
                    ended.append(name)
                return 200

            callers = ["many"] * (FINDS_OF_ONE_MAX + 3) + ["other"]
            statuses = await asyncio.gather(*map(ask, callers))
            assert statuses == [200] * FINDS_OF_ONE_MAX + [503] * 3 + [200]
            assert ended.index("other") <= 3 + 2  # the refused ones, and a turn

    asyncio.run(scenario())


def test_the_number_of_each_kind_is_bounded(native: Native) -> None:
    """The answer says of which kinds there are more; the exact name comes first."""
    for name in ("node-7", "old-node-7", "node-70", "node-71"):
        native.provider(name)
    answer = find(native, "node-7", limit=2).body
    assert [one["name"] for one in answer["found"]] == ["node-7", "node-70"]
    assert answer["more"] == ["provider"]
    whole = find(native, "node-7", limit=4).body
    names = ["node-7", "node-70", "node-71", "old-node-7"]
    assert ([one["name"] for one in whole["found"]], whole["more"]) == (names, [])


def test_a_reshape_is_found_by_its_id(native: Native) -> None:
    """By its beginning, too; it is looked up, however many newer ones there are."""
    uuid = native.provider("to-be-renamed")
    plan = {"plan": {"rename": {uuid: "renamed"}}}
    made = [native.ask("POST", "/v1/reshapes", plan).body["id"]]
    native.ask("POST", "/v1/reshapes", {"plan": {"rename": {uuid: "to-be-renamed"}}})
    for length in (8, 20, 36):
        answer = find(native, made[0][:length].upper()).body
        assert [one["id"] for one in answer["found"] if one["kind"] == "reshape"] == made


def test_a_provider_is_found_once_that_is_named_by_its_uuid(native: Native) -> None:
    """As those of Ironic's nodes; also by an id that differs from others in its last digit."""
    begin = str(uuid4())[:-1]
    uuids = [begin + digit for digit in "0123456789abcdef"]
    for uuid in uuids:
        body = {"uuid": uuid, "name": uuid}
        assert native.ask("POST", "/resource_providers", body, **NEWEST).status in {200, 201}
    for uuid in uuids:
        answer = find(native, uuid, limit=1).body
        assert [one["id"] for one in answer["found"]] == [uuid]
        assert answer["more"] == []
        page = native.ask("GET", f"/v1/providers?id_prefix={uuid}&limit=1").body
        assert [one["uuid"] for one in page["providers"]] == [uuid]
    answer = find(native, begin, limit=16).body
    assert (sorted(one["id"] for one in answer["found"]), answer["more"]) == (uuids, [])


@pytest.mark.parametrize(
    ("text", "more"),
    [("", {}), ("q", {}), (" q ", {}), ("q" * 256, {}), ("a\nb", {}), ("\u202eab", {})],
)
def test_texts_that_cannot_be_found_are_refused(
    native: Native, text: str, more: dict[str, Any]
) -> None:
    """The refusal says what a text may be."""
    assert (find(native, text, **more).status, find(native, text).body["code"]) == (400, "invalid")


@pytest.mark.parametrize("limit", [0, -1, 101, 10**30])
def test_wrong_limits_are_refused(native: Native, limit: int) -> None:
    """From 1 to 100 of each kind."""
    assert find(native, "quill", limit=limit).status == 400


@pytest.mark.parametrize("text", ["%", "_%", "'; --", "[a-z]+", "\\", "ﬀ", "İ", "💥", "=", "=="])
def test_special_characters_find_only_themselves(native: Native, text: str) -> None:
    """Nothing is a pattern."""
    name = f"odd {text} name {uuid4()}"
    provider = native.provider(name)
    assert ("provider", provider) in found(native, name[: 5 + len(text)], limit=100)
    assert ("provider", provider) not in found(native, f"odd {text}{text} name")
