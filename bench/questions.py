"""The measured requests, and conversations in which a request needs an earlier answer."""

import itertools
import json
import random
from collections.abc import Callable, Iterator
from functools import partial

from bench.fleet import (
    FAST,
    FULL,
    HOT,
    HOT_CLASSES,
    MOVED,
    MOVED_COUNT,
    ONE,
    SLOT_COUNT,
    Fleet,
    flat_host,
    identifier,
    zone,
)
from bench.wire import Answer, Conversation, request

VARIANTS = 16
"""The number of different amounts, so that consecutive requests differ."""
CONSUMER = "{:08x}-0000-4000-9000-{:012x}"
CLAIMED, RESHAPED = 4, 5
"""The kinds of consumer: the first number of their identifiers."""
FAILED = 598
"""The status of a conversation that an unexpected answer ended."""
MOVED_CLASS = "MEM_ENCRYPTION_CONTEXT"


def flat_questions(limit: int | None, more: str = "") -> Iterator[bytes]:
    """Ask for candidates for one server on flat hosts, which alone offer VCPU."""
    return candidate_requests(
        f"resources=VCPU:{n},MEMORY_MB:{512 * n},DISK_GB:{n}{more}{_limited(limit)}"
        for n in range(1, VARIANTS + 1)
    )


def labelled_questions(limit: int | None) -> Iterator[bytes]:
    """Ask for one server on a fast flat host in one of two zones: one host in ten fits."""
    return flat_questions(limit, f"&required={FAST}&member_of=in:{zone(0)},{zone(4)}")


def unfit_questions() -> Iterator[bytes]:
    """Ask for more memory than any host has free: every provider is checked, none fits."""
    return candidate_requests(
        f"resources=VCPU:{n},MEMORY_MB:262144&limit=10" for n in range(1, VARIANTS + 1)
    )


def nested_questions(limit: int | None, policy: str = "none", more: str = "") -> Iterator[bytes]:
    """Ask for pinned processors of one cell, a virtual function, and disk of the host."""
    return candidate_requests(
        f"resources=DISK_GB:{n}&resources_CPU=PCPU:{n},MEMORY_MB:{512 * n}"
        f"&resources_NET=SRIOV_NET_VF:1&group_policy={policy}{more}{_limited(limit)}"
        for n in range(1, VARIANTS + 1)
    )


def granular_questions(limit: int | None) -> Iterator[bytes]:
    """Ask like `nested_questions`, isolated, with a trait and two zones: one host in ten fits."""
    return nested_questions(
        limit, "isolate", f"&required_CPU={FAST}&member_of=in:{zone(0)},{zone(4)}"
    )


def unfit_nested_questions() -> Iterator[bytes]:
    """Ask for more pinned processors than any cell has."""
    return candidate_requests(
        f"resources=DISK_GB:{n}&resources_CPU=PCPU:33,MEMORY_MB:512"
        "&resources_NET=SRIOV_NET_VF:1&group_policy=none&limit=10"
        for n in range(1, VARIANTS + 1)
    )


def slot_questions(limit: int) -> Iterator[bytes]:
    """Ask for eight groups of one unit, on eight children of one unit."""
    groups = "&".join(f"resources_{number}=FPGA:1" for number in range(SLOT_COUNT))
    return candidate_requests(iter([f"{groups}&group_policy=isolate&limit={limit}"]))


def port_questions(limit: int) -> Iterator[bytes]:
    """Ask for three groups of one unit, each on a different child."""
    groups = "&".join(f"resources_{number}=SRIOV_NET_VF:1" for number in range(3))
    return candidate_requests(iter([f"{groups}&group_policy=isolate&limit={limit}"]))


Line = tuple[str, int, Callable[[], Iterator[bytes]]]
"""A name, the number of connections, and a function that returns the requests."""

FEW, SEVERAL = 1, 8
"""The connections of most lines."""

LARGE_ANSWER = "candidates, no limit"


def flat_lines() -> list[Line]:
    """Return all lines of candidates on flat hosts."""
    return [
        ("candidates limit=10", FEW, partial(flat_questions, 10)),
        ("candidates limit=10", SEVERAL, partial(flat_questions, 10)),
        ("candidates limit=1000", FEW, partial(flat_questions, 1000)),
        (LARGE_ANSWER, FEW, partial(flat_questions, None)),
        ("candidates trait, zones, limit=1000", FEW, partial(labelled_questions, 1000)),
        ("candidates, nothing fits", FEW, unfit_questions),
    ]


def nested_lines() -> list[Line]:
    """Return all lines of candidates on nested hosts."""
    return [
        ("candidates limit=10", FEW, partial(nested_questions, 10)),
        ("candidates limit=10", SEVERAL, partial(nested_questions, 10)),
        ("candidates limit=1000", FEW, partial(nested_questions, 1000)),
        (LARGE_ANSWER, FEW, partial(nested_questions, None)),
        ("candidates isolate, trait, zones, limit=10", FEW, partial(granular_questions, 10)),
        ("candidates isolate, trait, zones, limit=1000", FEW, partial(granular_questions, 1000)),
        ("candidates, nothing fits", FEW, unfit_nested_questions),
    ]


def candidate_requests(queries: Iterator[str]) -> Iterator[bytes]:
    """Return endless requests for candidates, by these queries in turn."""
    return itertools.cycle([request("GET", f"/allocation_candidates?{one}") for one in queries])


def _limited(limit: int | None) -> str:
    return "" if limit is None else f"&limit={limit}"


def disjoint_claims(numbers: Iterator[int], fleet: Fleet) -> Iterator[bytes]:
    """Claim for new consumers, each on another flat host."""
    # A step that is coprime to the size of the fleet visits every host before it repeats one.
    step = 7_919 if fleet.size % 7_919 else 7_907
    amounts = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}
    for number in numbers:
        host = flat_host(number * step % fleet.size)[0]
        yield claim(number, {host.uuid: {"resources": amounts}})


def contended_claims(numbers: Iterator[int]) -> Iterator[bytes]:
    """Claim for new consumers on a single host, with as many classes as other claims."""
    place = {identifier(HOT, 0): {"resources": dict.fromkeys(HOT_CLASSES, 1)}}
    return (claim(number, place) for number in numbers)


def filling_claims(numbers: Iterator[int]) -> Iterator[bytes]:
    """Claim one unit for each new consumer, all on the host that gets full."""
    place = {identifier(FULL, 0): {"resources": {"PGPU": 1}}}
    return (claim(number, place) for number in numbers)


def racing_claims(numbers: Iterator[int], number: int) -> Iterator[bytes]:
    """Claim the only unit of a host for many new consumers."""
    place = {identifier(ONE, number): {"resources": {"VGPU": 1}}}
    return (claim(one, place) for one in numbers)


def claim(
    number: int, allocations: object, kind: int = CLAIMED, generation: int | None = None
) -> bytes:
    """Return a request that replaces a consumer's allocations."""
    body = _consumer(allocations, generation)
    return request(
        "PUT", f"/allocations/{CONSUMER.format(kind, number)}", json.dumps(body).encode()
    )


def _consumer(allocations: object, generation: int | None) -> dict[str, object]:
    return {
        "allocations": allocations,
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
        "project_id": "bench",
        "user_id": "bench",
    }


def releases(claimed: list[bytes]) -> Iterator[bytes]:
    """Return requests that delete the allocations of these claims."""
    return (request("DELETE", one.split(b" ", 2)[1].decode()) for one in claimed)


def schedules(numbers: Iterator[int], limit: int = 10) -> Iterator[Conversation]:
    """Do as a scheduler does: ask for candidates, then claim one of them."""
    questions = flat_questions(limit)
    chance = random.Random(1)
    return (_schedule(next(questions), number, chance) for number in numbers)


def _schedule(question: bytes, number: int, chance: random.Random) -> Conversation:
    answer = yield question
    if answer.status != 200:
        return answer.status
    found = json.loads(answer.body)["allocation_requests"]
    if not found:
        return FAILED
    answer = yield claim(number, chance.choice(found)["allocations"])
    return answer.status


def refreshes(fleet: Fleet, count: int) -> Iterator[Conversation]:
    """Refresh `count` unchanged hosts in turn, without end, as a reporter does."""
    numbers = itertools.cycle(range(min(count, fleet.size)))
    return (_refresh(flat_host(number)[0].uuid) for number in numbers)


def _refresh(uuid: str) -> Conversation:
    """Send what nova's report client sends to refresh the associations of one node."""
    path = f"/resource_providers/{uuid}"
    answer = yield request("GET", f"/resource_providers?in_tree={uuid}")
    answer = yield request("GET", f"{path}/inventories")
    answer = yield request("GET", f"{path}/aggregates")
    if answer.status != 200:
        return answer.status
    aggregates = ",".join(json.loads(answer.body)["aggregates"])
    yield request("GET", f"{path}/traits")
    yield request(
        "GET",
        f"/resource_providers?member_of=in:{aggregates}&required=MISC_SHARES_VIA_AGGREGATE",
    )
    return None


def moving(host: str) -> Iterator[bytes]:
    """Claim one unit for each consumer that the reshapes move."""
    place = {host: {"resources": {MOVED_CLASS: 1}}}
    return (claim(number, place, RESHAPED) for number in range(MOVED_COUNT))


def reshapes() -> Iterator[Conversation]:
    """Move a class with its consumers from a host to its child and back, without end."""
    ends = identifier(MOVED, 0), identifier(MOVED, 0, 1)
    for generation in itertools.count(1):
        yield _reshape(*(ends if generation % 2 else ends[::-1]), generation)


def _reshape(source: str, goal: str, generation: int) -> Conversation:
    """Read the generations of both providers, then reshape."""
    inventories = {}
    for uuid, stock in ((source, {}), (goal, {MOVED_CLASS: {"total": MOVED_COUNT}})):
        answer = yield request("GET", f"/resource_providers/{uuid}/inventories")
        if answer.status != 200:
            return answer.status
        known = json.loads(answer.body)["resource_provider_generation"]
        inventories[uuid] = {"resource_provider_generation": known, "inventories": stock}
    place = {goal: {"resources": {MOVED_CLASS: 1}}}
    consumers = {
        CONSUMER.format(RESHAPED, number): _consumer(place, generation)
        for number in range(MOVED_COUNT)
    }
    body = json.dumps({"inventories": inventories, "allocations": consumers}).encode()
    answer = yield request("POST", "/reshaper", body)
    return answer.status


def used(uuid: str, name: str, answer: Answer) -> int:
    """Return how much of a class is in use, from the answer to `usages(uuid)`."""
    count: int = json.loads(answer.body)["usages"][name]
    return count


def usages(uuid: str) -> bytes:
    """Return a request for the usages of a provider."""
    return request("GET", f"/resource_providers/{uuid}/usages")
