"""More agents than a server can take at once: some are sent away, and none loses anything."""

from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

import psycopg

from tests.e2e.support.server import serve
from tests.faces.v1.fleet.machine import Machine
from tests.faces.v1.native import Native, Response
from tests.support import cluster

AGENTS = 12
QUEUE = 4
"""Agents may fill half of it."""


def test_agents_that_find_the_queue_full(tmp_path: Path) -> None:
    """503 with Retry-After and nothing stored; after the crowd each is accepted."""
    url = cluster.fresh()
    (tmp_path / "m.token").write_text("admin")
    options = ("--auth", "noauth2", "--no-access-log", "--queue-max", str(QUEUE))
    with serve(url, *options) as server:
        native = Native(server.url, tmp_path / "m")
        machines = [Machine(native) for _ in range(AGENTS)]
        for one in machines:
            assert one.put().status == 200
        with ThreadPoolExecutor(AGENTS) as pool, psycopg.connect(url) as held:
            held.execute("SELECT FROM agent FOR UPDATE")  # the batch under way must wait
            asked = {pool.submit(one.register, native.secret): one for one in machines}
            answered = wait_for(asked, 4)
            held.rollback()
        assert {sent.result().status for sent in answered} == {503}, "the others had to wait"
        assert {sent.result().status for sent in asked} == {200, 503}
        for sent, one in asked.items():
            answer = sent.result()
            assert (one.shown()["boot_id"] is None) == (answer.status == 503)
            if answer.status == 503:
                assert answer.body["code"] == "overloaded"
                assert "requests of agents are waiting already" in answer.body["detail"]
                assert int(answer.headers["retry-after"]) >= 1
                assert one.register(native.secret).status == 200
    cluster.shared().drop(cluster.database_of(url))


def wait_for(asked: Iterable["Future[Response]"], count: int) -> "set[Future[Response]]":
    """Return what was answered, once it is at least this many."""
    done: set[Future[Response]] = set()
    left = {*asked}
    while len(done) < count:
        found, left = wait(left, timeout=30, return_when=FIRST_COMPLETED)
        assert found, "nobody was sent away"
        done |= found
    return done
