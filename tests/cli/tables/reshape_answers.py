"""The answers about reshapes: a compute node that was split over its cards, and what undid it."""

from moorage.wire.reshapes import (
    Reshape,
    ReshapeDelta,
    ReshapeEntry,
    ReshapeGenerations,
    ReshapeLevel,
    ReshapeNode,
    ReshapePlaceChange,
    ReshapeProviderChange,
    ReshapeSummary,
)
from tests.cli.tables.building import before, built
from tests.cli.tables.ledger_answers import CONSUMERS

HOST = "3f1c52aa-0000-4000-8000-000000000001"
CARDS = [f"9d{number}04e11-0000-4000-8000-00000000000{number}" for number in (2, 3)]
NAME = "compute-01.eu-1.example.org"
DIGEST = "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"


def entry(number: int, **more: str | None) -> ReshapeEntry:
    """Return a reshape; the higher the number, the older it is."""
    return built(
        ReshapeEntry,
        id=f"{number * 0x2A3B4C5D:08x}-5555-4555-8555-{number:012x}",
        at=before(minutes=number**3 * 17),
        who=("alice", "the-pipeline-of-the-fleet@ci")[number % 2],
        role="operator",
        digest=DIGEST,
        providers=3 + number,
        consumers=number * 121 % 97,
        **more,
    )


OLD = entry(3, reason="the cards of this rack are seen one by one since the upgrade on Friday")
ENTRIES = [entry(1), entry(2, undoes=OLD.id), OLD]
ENTRIES[2] = entry(3, reason=OLD.reason, undone_by=ENTRIES[1].id)


def level(total: int, used: int, reserved: int = 0) -> ReshapeLevel:
    """Return the amounts of a place."""
    free = total - reserved - used
    return ReshapeLevel(total=total, reserved=reserved, used=used, free=free)


GUESTS = [one.uuid for one in CONSUMERS[:2]]
MEMORY = level(262_144, 49_152, 8_192)

SHOWN = Reshape(
    **{name: getattr(ENTRIES[2], name) for name in ("id", "at", "who", "role", "reason")},
    digest=DIGEST,
    providers=3,
    consumers=2,
    undoes=None,
    undone_by=ENTRIES[1].id,
    effects=[],
    generations=ReshapeGenerations(),
    summary=ReshapeSummary(
        providers=[
            ReshapeProviderChange(
                provider=HOST,
                before=ReshapeNode(name=NAME, parent=None),
                after=ReshapeNode(name=NAME, parent=None),
            ),
            *(
                ReshapeProviderChange(
                    provider=card,
                    before=None,
                    after=ReshapeNode(name=f"{NAME}_gpu{number}", parent=HOST),
                )
                for number, card in enumerate(CARDS)
            ),
        ],
        places=[
            ReshapePlaceChange(provider=HOST, class_="MEMORY_MB", before=MEMORY, after=MEMORY),
            ReshapePlaceChange(
                provider=HOST, class_="VGPU", before=level(16, 7), after=level(2, 2, 2)
            ),
            *(
                ReshapePlaceChange(
                    provider=card, class_="VGPU", before=None, after=level(7, 2 + number)
                )
                for number, card in enumerate(CARDS)
            ),
        ],
        consumers=[
            ReshapeDelta(consumer=guest, provider=where, class_="VGPU", amount=amount)
            for number, guest in enumerate(GUESTS)
            for where, amount in ((HOST, -2 - number), (CARDS[number], 2 + number))
        ],
    ),
)
