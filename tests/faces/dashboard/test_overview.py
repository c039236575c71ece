"""The overview claims nothing about what it has not looked at; its alarms lead to their causes."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from uuid import NAMESPACE_DNS, uuid4, uuid5

import pytest

from tests.e2e.support.server import serve
from tests.faces.dashboard.support.browserless import signed_in
from tests.faces.v1.leasing import ask
from tests.faces.v1.native import Native

LOOKED_AT = 500
MORE = 520
EXPORTED = 1_000


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Native]:
    """Return a caller of a server with more pools than the overview looks at."""
    database: Path = tmp_path_factory.mktemp("crowded") / "moorage.sqlite"
    with serve(database, "--no-access-log") as server:
        native = Native(server.url, database)
        for number in range(MORE):
            native.ask("PUT", f"/v1/pools/p{number:04}", {"limit": 1, "pacing": None})
        yield native


def test_it_says_which_pools_it_has_looked_at(crowded: Native) -> None:
    """An alarm of another pool is not denied; the link shows that pool."""
    last = f"p{MORE - 1:04}"
    ask(crowded, last)
    crowded.ask("PUT", f"/v1/pools/{last}", {"limit": 0})
    browser = signed_in(crowded, "reader")
    page = browser.get("/ui").document
    assert "Nothing needs attention" not in page.text
    assert f"Nothing of the first {LOOKED_AT} pools by name needs attention." in page.text
    (others,) = [link for link in page.links if "cursor" in link]
    shown = browser.get(others).document.text
    assert last in shown
    assert "over its limit" in shown


def test_it_says_how_many_lines_it_does_not_show(crowded: Native) -> None:
    """The first ones of eight pools are shown."""
    for number in range(10):
        ask(crowded, f"p{number:04}")
        ask(crowded, f"p{number:04}")
    assert "2 more pools have a line." in signed_in(crowded, "reader").get("/ui").document.text


def test_an_alarm_of_agents_leads_to_these_agents(native: Native) -> None:
    """To those that it counts: not to those of other groups, or that were drained."""
    agents = ((f"host-{number}", group) for number, group in enumerate(("r/1", "r/1", "r")))
    for host, group in agents:
        agent = f"/v1/agents/{uuid5(NAMESPACE_DNS, host)}"
        assert native.ask("PUT", agent, {"group": group}).status < 300
        wanted = {"boot_id": str(uuid4()), "facts": {"hostname": host}, "parts": []}
        assert native.ask("POST", f"{agent}/register", wanted).status == 200
        if host == "host-1":
            assert native.ask("POST", f"{agent}/drain", {}).status == 200
    after = "1.0"
    while sum(one["late"] for one in native.ask("GET", "/v1/groups").body["groups"]) < 2:
        after = native.ask("GET", f"/v1/watch?after={after}&kinds=agent&wait=20").body["next"]
    browser = signed_in(native, "reader")
    links = [link for link in browser.get("/ui").document.links if "agents=late" in link]
    shown = [browser.get(link.partition("#")[0]).document.text for link in links]
    hosts = [{host for host in ("host-0", "host-1", "host-2") if host in one} for one in shown]
    assert sorted(hosts, key=sorted) == [{"host-0"}, {"host-2"}]


def test_an_incomplete_export_says_so(crowded: Native) -> None:
    """In the name of the file, and in JSON; rows of a list are of the revision that they name."""
    browser = signed_in(crowded, "reader")
    whole = browser.get("/ui/pools.csv")
    assert whole.headers["content-disposition"] == 'attachment; filename="pools.csv"'
    rows = [*csv.DictReader(io.StringIO(whole.body))]
    assert [row["name"] for row in rows] == [f"p{number:04}" for number in range(MORE)]
    assert len({row["as_of"] for row in rows}) == 1
    leases = 0
    while leases <= EXPORTED:
        wanted = [{"needs": [{"pool": "p0400"}], "key": f"k{leases + one}"} for one in range(100)]
        for one in wanted:
            assert crowded.ask("POST", "/v1/leases", {**one, "patience": 3600}).status < 300
        leases += len(wanted)
    part = browser.get("/ui/leases.csv?state=all&pool=p0400")
    assert part.headers["content-disposition"] == 'attachment; filename="leases-part.csv"'
    found = json.loads(browser.get("/ui/leases.json?state=all&pool=p0400").body)
    assert (len(found["leases"]), found["complete"]) == (EXPORTED, False)
    rest = json.loads(
        browser.get(f"/ui/leases.json?state=all&pool=p0400&cursor={found['next']}").body
    )
    assert rest["complete"] is True
    keys = [one["key"] for one in found["leases"] + rest["leases"]]
    assert keys == [f"k{number}" for number in range(leases)]
    text = browser.get("/ui/leases?state=all&pool=p0400").document.text
    assert "Export up to 1,000 rows" in text
