"""The rehearsal of a pool's own jobs: the same as on the command line, of what was asked for."""

from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import pytest

from tests.cli.command import answer
from tests.faces.dashboard.support.browserless import signed_in
from tests.faces.v1.leasing import ask, make_pool
from tests.faces.v1.native import Native

JOBS = 60
FIGURES = ("jobs", "never", "starts_per_minute", "running", "waiting", "last_start_seconds")


def jobs_that_asked_together(native: Native, pool: str, count: int = JOBS) -> None:
    """Let many jobs ask at the same time, so that some do so in one batch, and end at random."""
    with ThreadPoolExecutor(8) as threads:
        asked = threads.map(
            lambda n: ask(native, pool, needs=[{"pool": pool, "units": 1 + n % 2}]), range(count)
        )
        leases = [one.body["id"] for one in asked]
    Random(1).shuffle(leases)
    for lease in leases:
        assert native.ask("DELETE", f"/v1/leases/{lease}").status == 200


def table_of(body: str) -> str:
    """Return the table of a page."""
    return body.partition('<table class="stack">')[2].partition("</table>")[0]


def test_it_has_the_figures_of_the_command_line(peers: list[Native]) -> None:
    """Also if jobs asked at the same time: their order decides who waits."""
    native = peers[0]
    pool = make_pool(native, limit=2 * JOBS, pacing=None)
    jobs_that_asked_together(native, pool)
    leases = native.ask("GET", f"/v1/leases?pool={pool}&limit=1000").body["leases"]
    assert len({one["asked_at"] for one in leases}) < JOBS, "some asked at the same time"
    body = {"scenes": [{"limit": 3, "pacing": {"interval": 0.05, "burst": 2, "jitter": 0.02}}]}
    rehearsed = peers[-1].ask("POST", f"/v1/pools/{pool}:rehearse", body).body
    arguments = ("--replay", pool, "--limit", "3", "--pacing", "0.05sx2+0.02s")
    server = {"MOORAGE_URL": native.url, "MOORAGE_TOKEN": native.secret}
    actual, scene = answer("simulate", *arguments, **server)
    for one, other in ((rehearsed["actual"], actual), (rehearsed["scenes"][0], scene)):
        assert [one[name] for name in FIGURES] == [other[name] for name in FIGURES]
        assert one["waited"] == other["waited_seconds"]


@pytest.mark.parametrize(
    "wanted",
    [
        {"limit": 4, "pacing": None},
        {"limit": 4, "pacing": {"interval": 0.25, "burst": 3}},
        {"limit": 7, "hold": 1200},
        {"limit": 7, "pacing": {"interval": 2.0, "burst": 2, "jitter": 0.5}},
    ],
)
def test_without_a_question_nothing_would_have_been_different(
    native: Native, wanted: dict[str, Any]
) -> None:
    """The page begins with the pool's own limit and pacing, whatever they are."""
    pool = make_pool(native, **wanted)
    lease = ask(native, pool).body["id"]
    native.ask("DELETE", f"/v1/leases/{lease}")
    browser = signed_in(native, "reader")
    page = browser.get(f"/ui/pools/{pool}:what-if")
    assert page.status == 200, page
    table = table_of(page.body)
    now, then = (row.partition("</th>")[2] for row in table.split("<th ")[-2:])
    assert now.partition("</tr>")[0] == then.partition("</tr>")[0]
    (form,) = [one for one in page.document.forms if one.action.endswith(":what-if")]
    query = "&".join(f"{name}={value}" for name, value in form.fields.items())
    assert table_of(browser.get(f"/ui/pools/{pool}:what-if?{query}").body) == table


def test_a_pool_with_a_limit_of_0_has_a_what_if(native: Native) -> None:
    """Its jobs are played with a limit of 1 until the reader chooses another one."""
    pool = make_pool(native)
    native.ask("DELETE", f"/v1/leases/{ask(native, pool).body['id']}")
    native.ask("PUT", f"/v1/pools/{pool}", {"limit": 0})
    page = signed_in(native, "reader").get(f"/ui/pools/{pool}:what-if")
    assert "What if" in page.document.text
    assert 'role="alert"' not in page.body


@pytest.mark.parametrize(
    "query", ["limit=x", "limit=0", "limit=1000000", "interval=-1", "interval=1e3", "burst=0"]
)
def test_other_questions_are_refused(native: Native, query: str) -> None:
    """Instead of playing something that nobody has asked for."""
    pool = make_pool(native)
    answer = signed_in(native, "reader").get(f"/ui/pools/{pool}:what-if?{query}")
    assert answer.status == 400, answer
    assert "must be a" in answer.document.text
