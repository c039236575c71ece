"""Measures one scan of long lines, with and without tickets that have alternatives.

Run it as `python -m bench.any_of`. Three scenes: almost all pools are full, so that the scan ends
early; nobody may have more, so that it passes over every ticket; everything is granted at once.
"""

import statistics
import sys
import time
from collections.abc import Iterator
from typing import Any

from moorage.core.admission.admit import admit
from moorage.core.admission.alternatives import lined_up
from moorage.core.admission.draft import Draft
from moorage.core.admission.facts import Facts, Line
from moorage.core.admission.model import Choice, Lease, Need, PoolSpec
from moorage.core.admission.pools import new_pool
from moorage.core.clock import SECOND, Instant
from moorage.core.ids import LeaseId
from moorage.core.service_time import Moment

TICKETS = 10_000
POOLS = 200
EACH = 3
"""Alternatives of a ticket that has some."""

SHARE = 0.3
"""The part of the tickets that has alternatives."""

ROUNDS = 15
AT = Instant(1_000 * SECOND)
MOMENT = Moment(AT, AT, Instant(0))

SCENES = {
    "a free unit in each pool": {"limit": 1},
    "the quota is used up": {"limit": TICKETS, "quota": 1},
    "all are granted": {"limit": TICKETS},
}
"""The settings of all pools."""


def world(settings: dict[str, Any], share: float) -> Facts:
    """Return pools with these settings, and their lines; this share has alternatives."""
    spec = PoolSpec(ttl=60 * SECOND, ttl_max=60 * SECOND, queue_max=TICKETS, **settings)
    names = [f"pool/{n:03}" for n in range(POOLS)]
    facts = Facts(pools={name: new_pool(name, spec, AT) for name in names})
    for name in names:
        facts.held[name, "owner"] = 1
        facts.lines[name] = Line(whole=True)
    for ticket in _tickets(names, share):
        draft = Draft(facts, MOMENT, AT)
        draft.put(ticket)
        draft.wait(ticket)
        facts.apply(draft.changes)
    return facts


def _tickets(names: list[str], share: float) -> Iterator[Lease]:
    for n in range(TICKETS):
        chosen = n % 10 < 10 * share
        options = tuple(
            (Need(names[(n + 67 * step) % POOLS], 1),) for step in range(EACH if chosen else 1)
        )
        yield Lease(
            id=LeaseId(f"{n:05}"),
            owner="owner",
            key=f"{n}",
            digest="",
            needs=lined_up(options),
            state="waiting",
            priority=0,
            arrival=n,
            ttl=60 * SECOND,
            hold=None,
            patience=60 * SECOND,
            labels={},
            forced=False,
            pull=False,
            keep=False,
            asked_at=AT,
            heard_until=None,
            alternatives=options if chosen else (),
            choice=Choice() if chosen else None,
        )


def main() -> None:
    """Print a table in Markdown: milliseconds of a scan."""
    say = sys.stdout.write
    say("| scene | without alternatives | 30 % have three | ratio |\n|---|---|---|---|\n")
    for name, settings in SCENES.items():
        plain, some = (_median(world(settings, share)) for share in (0, SHARE))
        say(f"| {name} | {plain:.1f} | {some:.1f} | {some / plain:.2f} |\n")


def _median(facts: Facts) -> float:
    taken = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        admit(facts, MOMENT, AT)
        taken.append(1_000 * (time.process_time() - begun))
    return statistics.median(taken)


if __name__ == "__main__":
    main()
