"""Every answer of `/v1/capacity` is exactly that of its revision, while claims are executed."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from uuid import UUID

import pytest

from moorage.client.ledger import Ledger
from moorage.client.transport import Transport
from moorage.wire.capacity import Capacity, CapacityAsked
from moorage.wire.ledger import (
    ClaimWanted,
    GroupAsked,
    InventoryWanted,
    ProvidersWanted,
    ProviderWanted,
)
from tests.e2e.support.server import serve
from tests.support import cluster

HOSTS = 3_000
CLAIMS = 60
ANSWERS = 25
AMOUNTS = {"VCPU": 2, "MEMORY_MB": 512}


@pytest.fixture(params=["sqlite", "postgresql"])
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[Ledger]]:
    """Return two ways to a ledger: to one server, or to two with a database in common."""
    with ExitStack() as stack:
        options = ("--auth", "noauth2", "--no-access-log")
        if request.param == "sqlite":
            urls = [stack.enter_context(serve(tmp_path / "m.sqlite", *options)).url] * 2
        else:
            made = cluster.fresh()
            stack.callback(cluster.shared().drop, cluster.database_of(made))
            urls = [stack.enter_context(serve(made, *options)).url for _ in range(2)]
        yield [Ledger(Transport(url, "admin")) for url in urls]


def used_at(ledger: Ledger, begin: str, ends: set[int]) -> dict[int, Counter[str]]:
    """Return how much of each class was used at each of these revisions, from the change stream.

    It must go on behind the last one.
    """
    used: dict[str, int] = {}
    found: dict[int, Counter[str]] = {}
    left = sorted(ends)
    for change in ledger.watch(begin, ["inventory"]):
        while left and change.revision > left[0]:
            found[left.pop(0)] = sums(used)
        if not left:
            return found
        used[change.key] = change.value.used
    raise AssertionError("the stream has ended")


def revision_of(answer: Capacity) -> int:
    """Return the revision of an answer."""
    return int(answer.as_of.partition(".")[2])


def sums(used: dict[str, int]) -> Counter[str]:
    """Return the sums by class."""
    found: Counter[str] = Counter()
    for key, amount in used.items():
        found[key.partition("/")[2]] += amount
    return found


def test_answers_are_exact_while_claims_are_executed(servers: list[Ledger]) -> None:
    """What the change stream says is used at the cursor of an answer is what the answer says.

    An answer has every claim that was acknowledged before the question, also by another process.
    """
    writing, asking = servers
    for first in range(0, HOSTS, HOSTS // 3):
        hosts = [
            ProviderWanted(
                uuid=str(UUID(int=number + 1)),
                name=f"host-{number}",
                inventories={name: InventoryWanted(total=100_000) for name in AMOUNTS},
            )
            for number in range(first, first + HOSTS // 3)
        ]
        writing.providers_upsert(ProvidersWanted(providers=hosts))
    begin = asking.capacity().as_of
    wanted = ClaimWanted(groups=[GroupAsked(resources=AMOUNTS)], project_id="p", user_id="u")

    def claim(_: int) -> None:
        writing.claim(wanted)

    with ThreadPoolExecutor(3) as threads:
        claims = [threads.submit(claim, number) for number in range(CLAIMS)]
        answers = []
        for _ in range(ANSWERS):
            least = sum(one.done() for one in claims)
            answers.append((least, asking.capacity(CapacityAsked(ends=1))))
        for one in claims:
            one.result()
    answers.append((CLAIMS, asking.capacity()))
    writing.claim(wanted)  # so that the stream goes on behind the last answer
    found = used_at(asking, begin, {revision_of(answer) for _, answer in answers})
    for least, answer in answers:
        used = {line.resource_class: line.used for line in answer.lines}
        stream = found[revision_of(answer)]
        assert used == {name: stream[name] for name in AMOUNTS}
        assert used["VCPU"] >= least * AMOUNTS["VCPU"]
        assert total(answer) == HOSTS * 100_000 * len(AMOUNTS)
    assert len({answer.as_of for _, answer in answers}) > 3, "the claims did not run meanwhile"


def total(answer: Capacity) -> int:
    """Return what is used and what is free together: what there is."""
    return sum(line.used + line.free for line in answer.lines)
