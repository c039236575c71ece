"""The operations whose work is counted: their requests, and what is sent before them.

Most are one request. A lease is asked for and then released: two requests, one after the other.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice

from bench import admission, agents, native, questions
from bench.fleet import Fleet
from bench.questions import CLAIMED, CONSUMER
from bench.wire import Answer, request
from tests.budgets.driving import BOSKOS_TYPE, CONNECTIONS, Server

HOSTS = Fleet("flat", 64)
NODES = 1_000
"""Nodes of a report."""

GROUP, MEMBER = "budget", "one"
"""The reporter."""


@dataclass(frozen=True)
class Step:
    """A request of an operation.

    `make` gets the number of the operation, its place among those that are sent at once, and the
    answer to the step before it (None: it is the first).
    """

    name: str
    """The operation that it counts for."""
    status: int
    """The expected status of the answer."""
    make: Callable[[int, int, Answer | None], bytes]
    boskos: bool = False
    """Whether it goes to the address for clients of Boskos."""
    costly: bool = False
    """Whether few of them are enough, because each does much."""


Chain = Sequence[Step]
"""Steps that follow each other; those of one name are one operation."""


def chains(server: Server, only: str = "") -> list[Chain]:
    """Prepare a server; return all operations, or the chain with the one of a name."""
    _prepare(server)
    report = cache(partial(_reported, server))
    question = next(questions.flat_questions(10))
    beats = list(islice(agents.beats(CONNECTIONS), CONNECTIONS))
    everything: list[Chain] = [
        [
            Step("claim", 204, lambda number, *_: _claim(number)),
            Step("release", 204, lambda number, *_: _release(number)),
        ],
        [Step("search, limit=10", 200, lambda *_: question)],
        [
            Step("lease", 201, lambda number, *_: _ask(number)),
            Step("lease", 200, lambda _, __, granted: admission.release(_id(granted))),
        ],
        [Step("sign of life", 200, lambda _, place, __: beats[place])],
        [Step("report of 1,000 nodes", 200, lambda *_: report(), costly=True)],
        [Step("Boskos poll", 404, lambda *_: _poll(), boskos=True)],
    ]
    return [one for one in everything if not only or only in {step.name for step in one}]


def _prepare(server: Server) -> None:
    group, *created = agents.creations(CONNECTIONS)
    for one in (native.report(HOSTS, HOSTS.size), admission.grant_pool(), group):
        _send(server, one)
    for together in (created, agents.registers(CONNECTIONS), agents.reports(CONNECTIONS)):
        _send(server, *together)
    ((taken,), _) = server.ask([_poll()], boskos=True)
    assert taken.status == 200, taken  # there is no other one


def _reported(server: Server) -> bytes:
    """Join as a reporter, and send a report; return it."""
    wanted = json.dumps({"instance": CONSUMER.format(0, 0), "ttl": 3_600}).encode()
    joined = _send(server, request("PUT", f"/v1/reporter-groups/{GROUP}/members/{MEMBER}", wanted))
    report = _report(json.loads(joined.body)["token"])
    _send(server, report)
    return report


def _send(server: Server, *requests: bytes) -> Answer:
    """Send requests at once; return the last answer."""
    answers, _ = server.ask(requests)
    assert all(one.status < 300 for one in answers), answers
    return answers[-1]


def _claim(number: int) -> bytes:
    return next(questions.disjoint_claims(iter([number]), HOSTS))


def _release(number: int) -> bytes:
    return request("DELETE", f"/allocations/{CONSUMER.format(CLAIMED, number)}")


def _ask(number: int) -> bytes:
    return admission.ask(admission.POOL, f"budget-{number}")


def _id(granted: Answer | None) -> str:
    assert granted is not None
    lease: str = json.loads(granted.body)["id"]
    return lease


def _poll() -> bytes:
    return request("POST", f"/acquire?type={BOSKOS_TYPE}&state=free&dest=busy&owner=ci")


def _report(token: str) -> bytes:
    nodes = [
        {
            "uuid": f"{number:08d}-0000-4000-8000-00000000beef",
            "name": f"node-{number}",
            "inventories": {"CUSTOM_BAREMETAL_GOLD": {"total": 1}},
            "traits": ["CUSTOM_RACK_7"],
            "aggregates": [],
        }
        for number in range(NODES)
    ]
    whole = {"group": GROUP, "member": MEMBER, "token": token, "nodes": nodes}
    return request("POST", "/v1/reports", json.dumps(whole).encode())
