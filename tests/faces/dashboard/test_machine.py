"""The page of a machine: who has it, its tree, leases, agent and story, as of one revision."""

from random import Random
from typing import Any
from uuid import UUID, uuid4

from moorage.faces.dashboard.pages.claims_story import REVISIONS_BACK
from tests.faces.dashboard.support.browserless import Browser, Page, signed_in
from tests.faces.dashboard.support.elements import every
from tests.faces.v1.leasing import make_pool
from tests.faces.v1.native import Native
from tests.faces.v1.reshaping import Split

MANY = 45
SHOWN = 20


def machine(native: Native, name: str, parts: int = 0, **more: Any) -> str:
    """Create a machine with parts; return its UUID."""
    root = str(uuid4())
    wanted = [{"uuid": root, "name": name, "inventories": {"VCPU": {"total": 96}}, **more}]
    wanted += [
        {
            "uuid": str(uuid4()),
            "name": f"{name}-part{number}",
            "parent": root,
            "inventories": {"MEMORY_MB": {"total": 512}},
        }
        for number in range(parts)
    ]
    answer = native.ask("POST", "/v1/providers:bulk", {"providers": wanted})
    assert answer.body["created"] == 1 + parts, answer
    return root


def claim(native: Native, root: str, project: str = "shop", **resources: int) -> str:
    """Claim something of a machine; return the consumer."""
    group = {"resources": resources, "in_tree": root}
    body = {"groups": [group], "project_id": project, "user_id": "alice"}
    answer = native.ask("POST", "/v1/claims", body)
    assert answer.status == 201, answer
    return str(answer.body["consumer"])


def reader(native: Native) -> Browser:
    """Return somebody who may see everything."""
    return signed_in(native, "admin")


def consumers(page: Page) -> list[str]:
    """Return the ids of the rows of consumers."""
    ids = (one.attributes.get("id", "") for one in every(page, "tr"))
    return [one for one in ids if one.startswith("consumer-")]


def test_machines_are_listed_by_name(native: Native) -> None:
    """Over all pages, each once, also names with the letters of an address; the end is known."""
    dice = Random(5)
    names = [
        f"m{dice.randint(0, 40):02}{dice.choice(('/', ',', '?&', '%2F'))}{number}-{uuid4()}"
        for number in range(120)
    ]
    machines = [{"uuid": str(uuid4()), "name": name} for name in names]
    assert native.ask("POST", "/v1/providers:bulk", {"providers": machines}).status == 200
    browser, seen = reader(native), list[str]()
    address: str | None = "/ui/fleet/machines"
    while address is not None:
        page = browser.get(address)
        assert page.status == 200
        seen += [one.text.strip() for one in every(page, "th", scope="rowgroup")]
        address = next((one.attributes["href"] for one in every(page, "a", rel="next")), None)
    assert [name for name in seen if name in names] == sorted(names)
    assert seen == sorted(seen)
    for after in ("x", "/", "a/b/c", "%F0%9F%9A%A2/zz"):
        assert browser.get(f"/ui/fleet/machines?after={after}").status == 200


def test_who_has_it_is_answered(native: Native) -> None:
    """Consumers of the whole tree with amounts there, projects and links; the verdict first."""
    root = machine(native, f"who-{uuid4()}", parts=2)
    other = machine(native, f"other-{uuid4()}")
    first = claim(native, root, VCPU=4, MEMORY_MB=100)
    claim(native, root, project="a b/c", MEMORY_MB=8)
    elsewhere = claim(native, other, VCPU=1)
    page = reader(native).get(f"/ui/fleet/machines/{root}")
    assert page.status == 200 and page.document.inline == []
    assert "2 consumers" in page.document.text
    assert f"/ui/consumers/{first}" in page.document.links
    assert elsewhere[:8] not in page.body
    assert {"/ui/consumers?project=a%20b/c&amp;user=alice"} & {
        link.replace("&", "&amp;") for link in page.document.links
    }
    (row,) = every(page, "tr", id=f"consumer-{first}")
    assert "4 VCPU" in row.text and "100 MEMORY_MB" in row.text


def test_many_consumers_are_counted(native: Native) -> None:
    """The page shows some and counts the others; the link leads to all, page by page."""
    root = machine(native, f"many-{uuid4()}", parts=1)
    for _ in range(MANY):
        claim(native, root, VCPU=1, MEMORY_MB=1)
    browser = reader(native)
    page = browser.get(f"/ui/fleet/machines/{root}")
    assert len(consumers(page)) == SHOWN
    assert f"{MANY - SHOWN} more" in page.document.text
    assert f"/ui/consumers?tree={root}" in page.document.links
    listed = browser.get(f"/ui/consumers?tree={root}")
    assert len(consumers(listed)) == MANY
    assert f"{MANY} consumers in all" in listed.document.text
    assert listed.document.revisions == page.document.revisions
    answer = native.ask("GET", f"/v1/consumers?tree={root}&limit=10").body
    seen = {one["uuid"] for one in answer["consumers"]}
    assert answer["holders"] == MANY and len(seen) == 10
    while answer["next"]:
        answer = native.ask(
            "GET", f"/v1/consumers?tree={root}&limit=10&cursor={answer['next']}"
        ).body
        assert answer["holders"] is None
        assert not seen & {one["uuid"] for one in answer["consumers"]}
        seen |= {one["uuid"] for one in answer["consumers"]}
    assert len(seen) == MANY


def test_the_tree_is_shown_with_inventories(native: Native) -> None:
    """Each child with its own, from whichever provider of the tree one comes."""
    name = f"tree-{uuid4()}"
    root = machine(native, name, parts=3, traits=["COMPUTE_NODE"])
    listed = native.ask("GET", "/v1/providers?limit=1000").body["providers"]
    child = next(one["uuid"] for one in listed if one["parent"] == root)
    for uuid in (root, child):
        text = reader(native).get(f"/ui/fleet/machines/{uuid}").document.text
        for number in range(3):
            assert f"{name}-part{number}" in text
        assert "COMPUTE_NODE" in text and "96" in text


def test_leases_of_a_machine(native: Native) -> None:
    """By the labels of gates and governors, and by allocations; those of others are not shown."""
    name, pool = f"leased-{uuid4()}", make_pool(native, limit=9)
    root = machine(native, name)
    needs = [{"pool": pool, "units": 1}]
    consumer = str(uuid4())
    allocations = {
        "consumer": consumer,
        "allocations": {root: {"VCPU": 2}},
        "project_id": "p",
        "user_id": "u",
    }
    wanted: list[dict[str, Any]] = [
        {"labels": {"node": root}},
        {"labels": {"holder": name}},
        {"labels": {"holder": f"metal3/{name}"}},
        {"labels": {"host": name}},
        {"allocations": allocations},
        {"labels": {"holder": f"x{name}"}},
        {"labels": {"build": name}},
        {},
    ]
    ids = []
    for number, more in enumerate(wanted):
        body = {"needs": needs, "key": f"{name}-{number}", "ttl": 3600, **more}
        answer = native.ask("POST", "/v1/leases", body)
        assert answer.status in (201, 202), answer
        ids.append(answer.body["id"])
    found = native.ask("GET", f"/v1/leases?machine={name}&machine={root}").body["leases"]
    assert [one["id"] for one in found] == ids[:5]
    links = reader(native).get(f"/ui/fleet/machines/{root}").document.links
    for number, lease in enumerate(ids):
        assert (f"/ui/leases/{lease}" in links) == (number < 5), wanted[number]
    many = "&".join(f"machine={number}" for number in range(33))
    assert native.ask("GET", f"/v1/leases?{many}").status == 400


def test_the_story_has_reshapes_and_actions(native: Native) -> None:
    """Newest first, with links; a reshape of another tree is not in it."""
    split = Split(native)
    reshape = split.committed().body["id"]
    other = Split(native).committed().body["id"]
    native.ask("POST", f"/v1/providers/{split.host}/drain", {"reason": "a fan is loud"})
    browser = reader(native)
    page = browser.get(f"/ui/fleet/machines/{split.host}")
    assert f"/ui/reshapes/{reshape}" in page.document.links
    assert f"/ui/reshapes/{other}" not in page.document.links
    text = page.document.text
    assert text.index("provider.drain by") < text.index("Reshaped by") < text.rindex("Created")
    assert "Nothing is offered:" in text and "a fan is loud" in text
    listed = native.ask("GET", f"/v1/reshapes?tree={split.host}").body
    assert [one["id"] for one in listed["reshapes"]] == [reshape]
    assert native.ask("GET", f"/v1/reshapes?tree={uuid4()}").body["reshapes"] == []
    # Rights: readers see no audit log, so their story has no actions, and no link to it.
    plain = signed_in(native, "reader").get(f"/ui/fleet/machines/{split.host}").document
    assert "provider.drain by" not in plain.text and "Reshaped by" in plain.text


def test_unknown_machines_are_not_found(native: Native) -> None:
    """Whatever stands in the address."""
    for text in (str(UUID(int=1)), "x", "%F0%9F%9A%A2"):
        assert reader(native).get(f"/ui/fleet/machines/{text}").status == 404


def story(native: Native, root: str) -> str:
    """Return the story of a machine as readers see it."""
    text = signed_in(native, "reader").get(f"/ui/fleet/machines/{root}").document.text
    return text[text.rindex("Story") :]


def test_the_story_has_who_took_and_gave_back(native: Native) -> None:
    """What and when, newest first; what others of other machines did is not in it."""
    root, other = machine(native, f"taken-{uuid4()}", parts=1), machine(native, f"not-{uuid4()}")
    gone = claim(native, root, project="first", VCPU=4, MEMORY_MB=100)
    stays = claim(native, root, project="second", VCPU=8)
    elsewhere = claim(native, other, project="third", VCPU=1)
    assert native.ask("DELETE", f"/allocations/{gone}").status == 204
    assert native.ask("DELETE", f"/allocations/{elsewhere}").status == 204
    for role in ("reader", "admin"):
        page = signed_in(native, role).get(f"/ui/fleet/machines/{root}").document
        story = page.text[page.text.rindex("Story") :]
        order = [
            "Given back by alice of first: 100 MEMORY_MB, 4 VCPU",
            "Taken by alice of second: 8 VCPU",
            "Taken by alice of first: 100 MEMORY_MB, 4 VCPU",
            "Created",
        ]
        places = [story.index(text) for text in order]
        assert places == sorted(places)
        assert story.count("Taken by") == 2 and "third" not in story
        assert f"/ui/consumers/{stays}" in page.links


def test_the_story_knows_older_holders_as_well(native: Native) -> None:
    """Those that hold something, however much has changed since; of others nothing is invented."""
    root, other = machine(native, f"older-{uuid4()}"), machine(native, f"busy-{uuid4()}")
    stays = claim(native, root, project="stays", VCPU=8)
    gone = claim(native, root, project="goes", VCPU=4)
    for _ in range(REVISIONS_BACK // 2 + 1):
        one = claim(native, other, VCPU=1)
        native.ask("DELETE", f"/allocations/{one}")
    native.ask("DELETE", f"/allocations/{gone}")
    assert "Taken by alice of stays: 8 VCPU" in story(native, root)
    smaller = {
        "allocations": {root: {"resources": {"VCPU": 6}}},
        "consumer_generation": 1,
        "project_id": "stays",
        "user_id": "alice",
        "consumer_type": "INSTANCE",
    }
    for number, text in (
        (6, "Taken by alice of stays: 6 VCPU"),
        (5, "Changed by alice of stays: 5 VCPU"),
    ):
        smaller["allocations"] = {root: {"resources": {"VCPU": number}}}
        answer = native.ask(
            "PUT", f"/allocations/{stays}", smaller, OpenStack_API_Version="placement 1.39"
        )
        assert answer.status == 204, answer
        smaller["consumer_generation"] = 2
        shown = story(native, root)
        assert text in shown and "of goes" not in shown
        assert shown.count("of stays") == 1, "it came long ago, so nothing else is known"


def test_an_operator_drains_a_machine_without_an_agent(native: Native) -> None:
    """And resumes it, from its page; a reader has neither button."""
    root = machine(native, f"bare-{uuid4()}")
    page = f"/ui/fleet/machines/{root}"
    operator, onlooker = signed_in(native, "operator"), signed_in(native, "reader")

    def buttons(browser: Browser) -> list[str]:
        targets = (one.action for one in browser.get(page).document.forms)
        return [target for target in targets if target.startswith(page)]

    assert (buttons(operator), buttons(onlooker)) == ([f"{page}/drain"], [])
    answer = operator.submit(page, f"{page}/drain", reason="smoke")
    assert (answer.status, answer.headers["location"]) == (303, f"{page}?notice=drained")
    shown = operator.get(f"{page}?notice=drained").document.text
    assert "Drained: nothing new is placed there" in shown and "drained: smoke" in shown
    assert native.ask("GET", f"/v1/providers/{root}").body["withheld"] == "drained: smoke"
    assert buttons(operator) == [f"{page}/resume"]
    answer = operator.submit(page, f"{page}/resume")
    assert answer.headers["location"] == f"{page}?notice=resumed"
    assert native.ask("GET", f"/v1/providers/{root}").body["withheld"] is None
    assert buttons(operator) == [f"{page}/drain"]
