"""The pages of the fleet: totals at the revision they print, the map, hostile names, roles."""

import base64
import json
import random
from typing import Any
from uuid import UUID, uuid4, uuid5

import pytest

from moorage.core.fleet.parts import part_id
from moorage.core.ids import AgentId
from moorage.core.texts import plain
from moorage.faces.dashboard.static_files import assets
from tests.faces.dashboard.support.browserless import Browser, Page, signed_in
from tests.faces.dashboard.support.elements import every
from tests.faces.v1.native import Native

GONE = 7
"""The condition of machines that are not used any more."""

KINDS = ("VCPU", "MEMORY_MB", "CUSTOM_WIDE")
STATES = 25
TRIES = 1_000
"""Readings of the map until it is that of the present revision."""

SCRIPT_MAX = 5 * 1024
"""Bytes of the map's script after compression."""

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "\u202egnp.exe",
    "'{{ 7 * 7 }}' & </td>",
    "🚢" * 50,
    "n" * 200,
)


@pytest.fixture(scope="module")
def reader(native: Native) -> Browser:
    """Return somebody with the rights of an administrator."""
    return signed_in(native, "admin")


def listed(native: Native) -> tuple[str, list[dict[str, Any]]]:
    """Return all providers of the native API, and their revision."""
    answer = native.ask("GET", "/v1/providers?limit=1000").body
    assert answer["next"] is None
    return answer["as_of"], answer["providers"]


def expected(providers: list[dict[str, Any]]) -> dict[str, list[int]]:
    """Return physical, offered and used by class, added up here."""
    sums: dict[str, list[int]] = {}
    for one in providers:
        for name, held in one["inventories"].items():
            given = int((held["total"] - held["reserved"]) * held["allocation_ratio"])
            found = sums.setdefault(name, [0, 0, 0])
            for place, amount in enumerate((held["total"], given, held["used"])):
                found[place] += amount
    return sums


def shown(page: Page) -> dict[str, list[int]]:
    """Return physical, offered and used by class, as the page shows them."""
    (table,) = every(page, "table", class_="capacity")
    rows = [row for row in table.all("tr") if row.all("td")]
    sums = {}
    for row in rows:
        cells = {one.attributes["data-label"]: one.text for one in row.all("td", class_="number")}
        sums[row.all("th", scope="row")[0].text.strip()] = [
            int(cells[name].replace(",", "")) for name in ("Total", "Offered", "Used")
        ]
    return sums


def revision(page: Page) -> str:
    """Return the revision that the page prints."""
    return next(one.text for one in every(page, "code") if "data-revision" in one.attributes)


def machine(number: int, dice: random.Random) -> dict[str, Any]:
    """Return a random provider."""
    kinds = dice.sample(KINDS, dice.randint(1, 3))
    return {
        "uuid": str(uuid4()),
        "name": f"r{number % 4}-n{number}-{uuid4()}",
        "inventories": {
            name: {
                "total": dice.randint(1, 10_000),
                "reserved": dice.choice((0, 1)),
                "allocation_ratio": dice.choice((1.0, 1.5, 16.0)),
            }
            for name in kinds
        },
        "traits": dice.sample(["CUSTOM_A", "CUSTOM_B"], dice.randint(0, 2)),
        "aggregates": [],
    }


def created(native: Native, *providers: dict[str, Any]) -> None:
    """Create providers."""
    wanted = {"create_vocabulary": True, "providers": [*providers]}
    answer = native.ask("POST", "/v1/providers:bulk", wanted)
    assert answer.status == 200, answer
    assert answer.body["created"] == len(providers), answer


def test_totals_are_those_of_the_revision(native: Native, reader: Browser) -> None:
    """In random states, all figures equal sums of the list of providers at that revision."""
    dice = random.Random(18)
    seen = set()
    for number in range(STATES):
        created(native, machine(number, dice))
        claim = {
            "project_id": "p",
            "user_id": "u",
            "groups": [{"resources": {dice.choice(KINDS): dice.randint(1, 50)}}],
        }
        native.ask("POST", "/v1/claims", claim)
        page = reader.get("/ui/fleet")
        assert page.status == 200
        as_of, providers = listed(native)
        assert revision(page) == as_of
        assert shown(page) == expected(providers) != expected(providers[1:])
        seen.add(as_of)
        bars = [one.attributes.get("width", "0") for one in every(page, "rect")]
        assert max(map(float, bars)) <= 100
    assert len(seen) == STATES


def columns(native: Native, reader: Browser, query: str) -> dict[str, Any]:
    """Return the map of the present revision with its columns decoded.

    It may be somewhat older at first: no reader makes the server draw it again and again.
    """
    for _ in range(TRIES):
        page = reader.get(f"/ui/fleet/map.json?{query}")
        assert page.status == 200, page
        answer: dict[str, Any] = json.loads(page.body)
        if answer["as_of"] == native.ask("GET", "/v1/providers?limit=1").body["as_of"]:
            for name in ("used", "offered", "reserved", "condition"):
                answer[name] = base64.b64decode(answer[name])
            return answer
    raise AssertionError(f"the map stays at {answer['as_of']}")


def test_the_map_has_each_machine_once_with_its_shares(native: Native, reader: Browser) -> None:
    """Groups, sums and bytes of the map are those of the list of providers."""
    created(native, *(machine(number, random.Random(number)) for number in range(60)))
    _, providers = listed(native)
    for group in ("aggregate", "trait", "agents", "name"):
        drawn = columns(native, reader, f"group={group}&class=VCPU")
        names = json.loads(reader.get(f"/ui/fleet/names.json?group={group}&class=VCPU").body)
        assert names["order"] == drawn["order"]
        by_id = {one["uuid"].replace("-", ""): one for one in providers}
        ids = [names["ids"][at : at + 32] for at in range(0, len(names["ids"]), 32)]
        assert sorted(ids) == sorted(by_id)
        assert names["names"] == [by_id[one]["name"] for one in ids]
        assert sum(count for _, count, *_ in drawn["groups"]) == len(ids) == len(drawn["used"])
        total, capacity, used = (sum(one[at] for one in drawn["groups"]) for at in (2, 3, 4))
        assert [total, capacity, used] == expected(providers)["VCPU"]
        for one, share in zip(ids, drawn["used"], strict=True):
            held = by_id[one]["inventories"].get("VCPU")
            if held is None:
                assert share == 255
                continue
            units = int((held["total"] - held["reserved"]) * held["allocation_ratio"])
            assert share == 200 if held["used"] >= max(units, 1) else share < 200
            assert abs(share / 200 - held["used"] / max(units, 1)) <= 0.005
            assert (share == 0) == (held["used"] == 0)
    with_a = [one for one in providers if "CUSTOM_A" in one["traits"]]
    groups = {name: count for name, count, *_ in columns(native, reader, "group=trait")["groups"]}
    assert sum(count for name, count in groups.items() if "CUSTOM_A" in name) == len(with_a)


def test_a_machine_is_its_whole_tree(native: Native, reader: Browser) -> None:
    """The figures of children count for their root, and children are no machines."""
    root, child = machine(1, random.Random(1)), machine(2, random.Random(2))
    root["inventories"] = {"VCPU": {"total": 10}}
    child |= {"parent": root["uuid"], "inventories": {"VCPU": {"total": 30}}}
    before = columns(native, reader, "group=name&class=VCPU")
    created(native, root)
    created(native, child)
    after = columns(native, reader, "group=name&class=VCPU")
    assert len(after["used"]) == len(before["used"]) + 1
    gained = [sum(one[2] for one in answer["groups"]) for answer in (before, after)]
    assert gained[1] - gained[0] == 40
    page = reader.get(f"/ui/fleet/machines/{child['uuid']}")
    assert title(page) == root["name"]
    assert child["name"] in [one.text for one in every(page, "h3")]


def test_what_the_script_has_is_not_sent_again(native: Native, reader: Browser) -> None:
    """With the revision that it has, the script gets only the revision."""
    drawn = columns(native, reader, "group=trait")
    again = json.loads(reader.get(f"/ui/fleet/map.json?group=trait&have={drawn['as_of']}").body)
    assert again == {"as_of": drawn["as_of"]}
    assert "groups" in json.loads(reader.get("/ui/fleet/map.json?group=trait&have=0.9").body)


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [("group=colour", 400, "group must be one of"), ("class=CUSTOM_NONE", 404, "no such resource")],
)
def test_a_wrong_address_is_explained(reader: Browser, query: str, status: int, words: str) -> None:
    """The answer says what is wrong."""
    page = reader.get(f"/ui/fleet/map.json?{query}")
    assert (page.status, words in page.body) == (status, True)


def test_hostile_names_stay_text(native: Native, reader: Browser) -> None:
    """None becomes an element, and none changes the direction of the text around it."""
    inventories = {"CUSTOM_HOSTILE": {"total": 1}}
    for name in HOSTILE:
        wanted = {"uuid": str(uuid4()), "name": name, "inventories": inventories}
        created(native, {**wanted, "traits": [], "aggregates": []})
        page = reader.get(f"/ui/fleet/machines/{wanted['uuid']}")
        assert title(page) == plain(name)
        assert not every(page, "img", src="x")
    columns(native, reader, "group=name")
    names = json.loads(reader.get("/ui/fleet/names.json?group=name").body)["names"]
    assert set(map(plain, HOSTILE)) <= set(names)
    page = reader.get("/ui/fleet?resource_class=CUSTOM_HOSTILE")
    assert {one.text for one in every(page, "a")} & set(map(plain, HOSTILE))
    assert all(one.attributes.get("src") for one in every(page, "script"))
    assert not every(page, "img", src="x")


def title(page: Page) -> str:
    """Return the title of a page, without the button beside it."""
    return every(page, "h1")[0].text.removesuffix(" Copy")


class Agent:
    """An agent whose machine has less than is desired."""

    def __init__(self, native: Native, hostname: str) -> None:
        self.native, self.uuid = native, str(uuid4())
        self.path = f"/v1/agents/{self.uuid}"
        part = str(uuid5(UUID(self.uuid), "numa0"))
        parts = [{"provider": part, "name": "numa0", "classes": {"CUSTOM_PAGES": {"eligible": 64}}}]
        assert self._ask("PUT", "", {"group": "north"}) == 200
        body = {"boot_id": "boot-1", "facts": {"hostname": hostname}, "parts": parts}
        assert self._ask("POST", "/register", body) == 200
        body = {"resource_class": "CUSTOM_PAGES", "amount": 48}
        assert self._ask("POST", "/desired", body) == 200
        report = {
            "boot_id": "boot-1",
            "report_generation": 1,
            "desired_generation_seen": native.ask("GET", self.path).body["desired_generation"],
            "phase": "done",
            "actual": {part: {"CUSTOM_PAGES": 20}},
            "failure": {
                "code": "fragmented",
                "message": "<b>20 of 48</b>",
                "attempts": 3,
                "since": "2026-01-01T00:00:00Z",
            },
        }
        assert self._ask("PUT", "/report", report) == 200

    def _ask(self, method: str, word: str, body: Any) -> int:
        return self.native.ask(method, self.path + word, body).status


@pytest.fixture(scope="module")
def agent(native: Native) -> Agent:
    """Return an agent with a hostile hostname."""
    return Agent(native, "<i>host</i>")


def test_the_page_of_an_agent(native: Native, reader: Browser, agent: Agent) -> None:
    """It shows desired, actual, offered and used, and the failure as text."""
    page = reader.get(f"/ui/agents/{agent.uuid}")
    assert title(page) == "<i>host</i>"
    assert "<title>Agent &lt;i&gt;host&lt;/i&gt; · Moorage</title>" in page.body
    row = every(page, "table", class_="capacity")[0].all("tr")[1]
    cells = {one.attributes["data-label"]: one.text for one in row.all("td", class_="number")}
    assert cells == {
        "Eligible": "64",
        "Desired": "48",
        "Actual": "20",
        "Offered": "20",
        "Used": "0",
    }
    assert "<b>20 of 48</b>" in every(page, "p", class_="alarm")[0].text
    degraded = reader.get("/ui/fleet?agents=degraded")
    assert "<i>host</i>" in [one.text for one in every(degraded, "a")]
    lost = reader.get("/ui/fleet?agents=lost")
    assert "<i>host</i>" not in [one.text for one in every(lost, "a")]
    drawn = columns(native, reader, "group=agents")
    assert [count for name, count, *_ in drawn["groups"] if name == "north"] == [1]
    assert 4 in drawn["condition"]


def test_a_machine_has_the_condition_of_its_present_agent(native: Native, reader: Browser) -> None:
    """Not that of a former one, which stays known after it was decommissioned."""
    root = machine(1, random.Random(1))
    created(native, root)
    present, former = (f"/v1/agents/{uuid4()}" for _ in range(2))
    body = {"facts": {"hostname": "host"}, "parts": [], "root": root["uuid"]}
    for path in (present, former):
        assert native.ask("PUT", path, {"group": "moved"}).status < 300
    assert native.ask("PUT", f"{former}/root", {"root": root["uuid"]}).status == 200
    assert native.ask("POST", f"{former}/register", {**body, "boot_id": "a"}).status == 200
    for word in ("expunge", "decommission"):
        answer = native.ask("POST", f"{former}/{word}", {"reason": "replaced"})
        assert answer.status == 200, answer
    assert native.ask("PUT", f"{present}/root", {"root": root["uuid"]}).status == 200
    answer = native.ask("POST", f"{present}/register", {**body, "boot_id": "b"})
    assert answer.status == 200, answer
    drawn = columns(native, reader, "group=agents")
    names = json.loads(reader.get("/ui/fleet/names.json?group=agents").body)["names"]
    assert drawn["condition"][names.index(root["name"])] != GONE


def test_the_page_of_an_agent_says_what_became_of_its_plan(native: Native, reader: Browser) -> None:
    """With a link to the reshape; without a plan there is nothing."""
    uuid = str(uuid4())
    path = f"/v1/agents/{uuid}"
    native.ask("PUT", path, {"group": "north"})
    parts = [{"provider": uuid, "name": "", "classes": {"CUSTOM_PAGES": {"eligible": 4}}}]
    boot = {"boot_id": "boot-1", "facts": {"hostname": "planned"}, "parts": parts}
    assert native.ask("POST", f"{path}/register", boot).status == 200
    assert "Plan" not in facts_of(reader, uuid)
    root = native.ask("GET", f"/v1/providers/{uuid}").body["name"]
    child = f"{root}_usb"
    new = {"uuid": str(uuid5(UUID(uuid), child)), "name": child, "parent": uuid}
    report = {
        "boot_id": "boot-1",
        "report_generation": 1,
        "desired_generation_seen": 1,
        "phase": "done",
        "actual": {uuid: {"CUSTOM_PAGES": 4}},
        "plan": {"create": [new]},
    }
    answer = native.ask("PUT", f"{path}/report", report)
    assert answer.status == 200, answer
    plan = answer.body["plan"]
    said = facts_of(reader, uuid)["Plan"]
    assert said.startswith("carried out, ")
    assert f"in boot boot-1, by reshape {plan['reshape'][:8]}; digest {plan['digest']}" in said
    assert f"/ui/reshapes/{plan['reshape']}" in reader.get(f"/ui/agents/{uuid}").document.links
    native.ask("POST", f"/v1/reshapes/{plan['reshape']}:undo", {})
    assert native.ask("PUT", f"{path}/report", {**report, "report_generation": 2}).status == 200
    assert facts_of(reader, uuid)["Plan"].startswith("carried out, and undone by an operator since")


def facts_of(browser: Browser, uuid: str) -> dict[str, str]:
    """Return the facts on the page of an agent, by their names."""
    (shown,) = every(browser.get(f"/ui/agents/{uuid}"), "dl", class_="agent")
    names, values = ([one.text for one in shown.all(tag)] for tag in ("dt", "dd"))
    return dict(zip(names, values, strict=True))


def test_only_operators_have_buttons(native: Native, agent: Agent) -> None:
    """A reader's page has no button, and its form is refused; an operator drains and resumes."""
    path = f"/ui/agents/{agent.uuid}"
    reading = signed_in(native, "reader")
    assert not [
        one for one in every(reading.get(path), "form") if path in one.attributes.get("action", "")
    ]
    token = reading.get(path).document.forms[0].fields
    refused = reading.ask("POST", f"{path}/drain", {**token, "reason": "no"})
    assert refused.status == 403
    assert native.ask("GET", agent.path).body["policy"] == "in_service"
    operating = signed_in(native, "operator")
    wanted = {"reason": "<u>firmware</u>", "lasts": "3600"}
    assert "Done." in operating.submit(path, f"{path}/drain", **wanted).document.text
    drained = native.ask("GET", agent.path).body
    assert (drained["policy"], drained["policy_reason"]) == ("no_provision", "<u>firmware</u>")
    assert drained["policy_until"] is not None
    page = operating.get(path)
    assert "<u>firmware</u>" in every(page, "dl", class_="facts")[0].text
    assert not every(page, "form", action=f"{path}/drain")
    wrong = {**page.document.forms[0].fields, "lasts": "7"}
    assert operating.ask("POST", f"{path}/drain", wrong).status == 400
    assert "Done." in operating.submit(path, f"{path}/resume", reason="done").document.text
    assert native.ask("GET", agent.path).body["policy"] == "in_service"


def test_every_agent_is_on_one_page(native: Native, reader: Browser) -> None:
    """The links to the next page lead through all agents, each once."""
    for _ in range(60):
        native.ask("PUT", f"/v1/agents/{uuid4()}", {"group": "many"})
    address, found, pages = "/ui/fleet?agent_group=many", [], 0
    while address:
        page = reader.get(address)
        (table,) = every(page, "table", class_="agents")
        found += [one.attributes["href"] for one in table.all("a")]
        following = every(page, "a", rel="next")
        address, pages = (following[0].attributes["href"] if following else ""), pages + 1
    assert (len(found), len(set(found)), pages) == (60, 60, 2)


def test_exports_are_the_answers_of_the_native_api(
    native: Native, reader: Browser, agent: Agent
) -> None:
    """JSON has the lines of `/v1/capacity` with their revision, CSV the same in rows."""
    assert agent.uuid, "it is a degraded one"
    exported = json.loads(reader.get("/ui/fleet/capacity.json?by=trait").body)
    asked = native.ask("GET", "/v1/capacity?by=trait&ends=1&limit=1000").body
    assert (exported["capacity"], exported["as_of"]) == (asked["lines"], asked["as_of"])
    table = reader.get("/ui/fleet/capacity.csv?by=trait").body.splitlines()
    assert len(table) == len(asked["lines"]) + 1
    assert all(line.endswith(asked["as_of"]) for line in table[1:])
    agents = json.loads(reader.get("/ui/fleet/agents.json?agents=degraded").body)["agents"]
    assert {one["readiness"] for one in agents} == {"degraded"}


def test_the_script_of_the_map_is_small() -> None:
    """It keeps its budget."""
    assert 0 < len(assets()["fleet.js"].compressed) <= SCRIPT_MAX


def test_a_machine_says_what_silence_closes(native: Native) -> None:
    """Of an agent with a root of others: by default its own classes, with `all` every class."""
    root, agent = str(uuid4()), str(uuid4())
    node = {"uuid": root, "name": f"shared-{root}", "inventories": {"VCPU": {"total": 8}}}
    assert native.ask("POST", "/v1/providers:bulk", {"providers": [node]}).status == 200
    group = f"silence-{root[:8]}"
    native.ask("PUT", f"/v1/agents/{agent}", {"group": group})
    native.ask("PUT", f"/v1/agents/{agent}/root", {"root": root})
    boot = {"boot_id": "b", "root": root, "facts": {"hostname": "shared"}}
    own = part_id(AgentId(agent), "numa0")
    part = {"provider": own, "name": "numa0", "classes": {"CUSTOM_X": {"eligible": 4}}}
    answer = native.ask("POST", f"/v1/agents/{agent}/register", {**boot, "parts": [part]})
    assert answer.status == 200, answer
    browser, page = signed_in(native, "reader"), f"/ui/fleet/machines/{root}"
    assert "the others stay open" in browser.get(page).document.text
    native.ask("PUT", f"/v1/groups/{group}", {"silence": "all"})
    assert "every class of this machine is closed" in browser.get(page).document.text
    assert native.ask("POST", f"/v1/agents/{agent}/drain", {}).status == 200
    assert "an operator has drained it" in browser.get(page).document.text
    audit = signed_in(native, "admin").get(f"/ui/audit?target={agent}&action=agent.drain")
    assert f"agent.drain shared {agent} only this" in " ".join(audit.document.text.split())


def test_what_is_drained_is_named_with_its_reason(native: Native) -> None:
    """Until it is resumed."""
    name = f"drained-{uuid4()}"
    node = {"uuid": str(uuid4()), "name": name, "inventories": {"VCPU": {"total": 8}}}
    assert native.ask("POST", "/v1/providers:bulk", {"providers": [node]}).status == 200
    native.ask("POST", f"/v1/providers/{node['uuid']}/drain", {"reason": "new disks"})
    reader = signed_in(native, "reader")
    assert f"{name}: drained: new disks" in reader.get("/ui/fleet").document.text
    native.ask("POST", f"/v1/providers/{node['uuid']}/resume", {})
    assert f"{name}: drained" not in signed_in(native, "reader").get("/ui/fleet").document.text
