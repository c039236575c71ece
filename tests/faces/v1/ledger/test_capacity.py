"""The sums of all inventories by resource class, aggregate and trait."""

from typing import Any
from uuid import uuid4

import pytest

from tests.faces.v1.native import Native
from tests.faces.v1.test_lists import pages

CLASS = "CUSTOM_SUMMED"


@pytest.fixture(scope="module")
def fleet(native: Native) -> list[str]:
    """Create seven providers in two aggregates; of some of them units are used."""
    aggregates = sorted(str(uuid4()) for _ in range(2))
    providers = [
        {
            "uuid": str(uuid4()),
            "name": f"summed-{number}",
            "inventories": {
                CLASS: {"total": 10 + number, "reserved": 1, "allocation_ratio": 1.5},
                "VCPU": {"total": 4},
            },
            "traits": ["CUSTOM_GOLD"] if number % 3 == 0 else [],
            "aggregates": aggregates[: number % 3],
        }
        for number in range(7)
    ]
    wanted = {"create_vocabulary": True, "providers": providers}
    assert native.ask("POST", "/v1/providers:bulk", wanted).body["created"] == 7
    for amount in (3, 8, 8, 10):
        claim = {"project_id": "p", "user_id": "u", "groups": [{"resources": {CLASS: amount}}]}
        assert native.ask("POST", "/v1/claims", claim).status == 201
    return aggregates


def lines(native: Native, query: str) -> dict[str | None, dict[str, Any]]:
    """Return the lines of the class by group."""
    answer = native.ask("GET", f"/v1/capacity?resource_class={CLASS}{query}")
    assert answer.status == 200, answer
    return {line["group"]: line for line in answer.body["lines"]}


def expected(providers: list[dict[str, Any]]) -> dict[str, int]:
    """Return the sums over these providers, from the list of providers."""
    held = [one["inventories"][CLASS] for one in providers]
    units = [int((10 + n - 1) * 1.5) for n in (int(one["name"][-1]) for one in providers)]
    return {
        "providers": len(held),
        "total": sum(one["total"] for one in held),
        "reserved": len(held),
        "capacity": sum(units),
        "used": sum(one["used"] for one in held),
        "free": sum(unit - one["used"] for unit, one in zip(units, held, strict=True)),
    }


def test_sums_are_exact(native: Native, fleet: list[str]) -> None:
    """All figures are those of the list of providers at the same revision, for each grouping."""
    listed = pages(native, "/v1/providers", "providers", 1000)
    ours = [one for one in listed if CLASS in one["inventories"]]
    assert sum(one["inventories"][CLASS]["used"] for one in ours) == 29
    answer = native.ask("GET", "/v1/capacity").body
    assert answer["providers"] == len(listed)
    assert answer["as_of"] == native.ask("GET", "/v1/providers").body["as_of"]
    classes = [line["resource_class"] for line in answer["lines"]]
    assert classes == sorted({name for one in listed for name in one["inventories"]})
    groups: dict[str, dict[str | None, list[Any]]] = {
        "class": {None: ours},
        "trait": {
            "CUSTOM_GOLD": [one for one in ours if one["traits"]],
            None: [one for one in ours if not one["traits"]],
        },
        "aggregate": {
            None: [one for one in ours if not one["aggregates"]],
            **{uuid: [one for one in ours if uuid in one["aggregates"]] for uuid in fleet},
        },
    }
    for by, wanted in groups.items():
        found = lines(native, f"&by={by}&ends=0")
        assert {*found} == {*wanted}
        for group, providers in wanted.items():
            figures = {name: found[group][name] for name in expected(providers)}
            assert figures == expected(providers), (by, group)


def test_a_claim_moves_the_sums_and_the_revision(native: Native, fleet: list[str]) -> None:
    """The next answer after a claim has it, and a later cursor, from which nothing is missing."""
    before = native.ask("GET", "/v1/capacity").body
    used = lines(native, "")[None]["used"]
    claim = {"project_id": "p", "user_id": "u", "groups": [{"resources": {CLASS: 1}}]}
    made = native.ask("POST", "/v1/claims", claim).body
    after = native.ask("GET", "/v1/capacity").body
    assert lines(native, "")[None]["used"] == used + 1
    changes = native.ask("GET", f"/v1/watch?wait=0&after={before['as_of']}").body
    assert changes["changes"] and changes["next"] == after["as_of"]
    end = "/allocations/" + made["consumer"]
    assert native.ask("DELETE", end, OpenStack_API_Version="placement 1.28").status == 204
    assert lines(native, "")[None]["used"] == used


def test_the_ends_are_bounded(native: Native, fleet: list[str]) -> None:
    """The fullest and the emptiest providers are as many as asked for."""
    (line,) = lines(native, "&ends=2").values()
    assert len(line["fullest"]) == len(line["emptiest"]) == 2
    # Of the capacity before it is rounded down.
    numbers = [int(one["name"].removeprefix("summed-")) for one in line["fullest"]]
    units = [(10 + number - 1) * 1.5 for number in numbers]
    shares = [one["used"] / unit for one, unit in zip(line["fullest"], units, strict=True)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0 == line["emptiest"][0]["used"]
    (line,) = lines(native, "&ends=10&limit=1").values()
    assert len(line["fullest"]) == 7


def test_what_is_drained_is_not_full(native: Native, fleet: list[str]) -> None:
    """It is used, but has no capacity. It is named where it begins, with the reason."""
    assert fleet
    (before,) = lines(native, "&ends=7").values()
    full = before["fullest"][0]
    assert full["used"] > 0
    counted = native.ask("GET", "/v1/capacity?limit=1").body["withheld"]
    address = f"/v1/providers/{full['uuid']}"
    assert native.ask("POST", f"{address}/drain", {"reason": "new disks"}).status == 200
    try:
        (line,) = lines(native, "&ends=7").values()
        for end in ("fullest", "emptiest"):
            assert full["uuid"] not in {one["uuid"] for one in line[end]}
            assert len(line[end]) == 6
        assert line["used"] == before["used"]
        answer = native.ask("GET", "/v1/capacity?limit=1").body
        assert answer["withheld"] == counted + 1
        named = {one["uuid"]: (one["name"], one["reason"]) for one in answer["first_withheld"]}
        assert named[full["uuid"]] == (full["name"], "drained: new disks")
    finally:
        native.ask("POST", f"{address}/resume", {})
    assert native.ask("GET", "/v1/capacity?limit=1").body["withheld"] == counted


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("ends=11", "invalid"),
        ("ends=-1", "invalid"),
        ("limit=0", "invalid"),
        ("limit=1001", "invalid"),
        ("limit=1000", "invalid"),
        ("by=host", "refused"),
    ],
)
def test_too_much_is_refused(native: Native, query: str, code: str) -> None:
    """What would make the answer too long is refused; the message says what is allowed."""
    answer = native.ask("GET", f"/v1/capacity?{query}")
    assert (answer.status, answer.body["code"]) == (400, code)


def test_lines_beyond_the_limit_are_counted(native: Native, fleet: list[str]) -> None:
    """An answer that leaves out lines says how many."""
    answer = native.ask("GET", f"/v1/capacity?resource_class={CLASS}&by=aggregate&limit=2").body
    assert [line["group"] for line in answer["lines"]] == [None, fleet[0]]
    assert answer["left_out"] == 1


def test_only_readers_may_ask(native: Native) -> None:
    """A token for a project does not learn how large the fleet is."""
    token = native.token("reader", project="p", name="bound")
    assert native.ask("GET", "/v1/capacity", token=token).status == 403
    assert native.ask("GET", "/v1/capacity", token=native.token("reader")).status == 200
