"""The answers about the ledger: providers and consumers."""

from moorage.wire.providers import Allocated, ConsumerShown, InventoryShown, ProviderShown
from moorage.wire.usages import UsageLine
from tests.cli.tables.building import before, built

DRAINED = "drained: the power supply is exchanged on Friday"
GONE = "its agent was last heard 35 minutes ago"


def inventory(
    total: int, used: int, ratio: float = 1.0, offered: int | None = None
) -> InventoryShown:
    """Return what a provider has of one class."""
    units = int((min(total, total if offered is None else offered) - total // 32) * ratio)
    return InventoryShown(
        total=total,
        reserved=total // 32,
        min_unit=1,
        max_unit=total,
        step_size=1,
        allocation_ratio=ratio,
        offered=offered,
        used=used,
        capacity=units,
        free=max(0, units - used),
    )


def provider(number: int) -> ProviderShown:
    """Return a host, or the part of one; every fourth is withheld."""
    uuid = f"{number * 0x1F3D5B79:08x}-0000-4000-8000-{number:012x}"
    root = number % 3 != 2
    used = number % 2 * 12
    return built(
        ProviderShown,
        uuid=uuid,
        name=f"compute-{number:02d}.eu-1.example.org" if root else f"compute-{number:02d}_numa0",
        generation=number,
        parent=None if root else PROVIDERS[-1].uuid,
        root=uuid if root else PROVIDERS[-1].root,
        inventories={
            "VCPU": inventory(64, used, 4.0),
            "MEMORY_MB": inventory(262_144, used * 2_048),
            "CUSTOM_HUGEPAGES_2MB": inventory(4_096, 0, offered=311 if number == 1 else 4_096),
        },
        traits=["COMPUTE_NODE", "HW_CPU_X86_AVX512F"][: number % 3],
        withheld=(DRAINED, GONE)[number // 4 % 2] if number % 4 == 0 else None,
        created_at=before(days=90 - number),
        updated_at=before(minutes=number * number * 7),
    )


PROVIDERS: list[ProviderShown] = []
for at in range(1, 9):
    PROVIDERS.append(provider(at))


def consumer(number: int) -> ConsumerShown:
    """Return what holds something; every third migrates, and holds of two hosts."""
    held = {"VCPU": 4, "MEMORY_MB": 8_192}
    hosts = PROVIDERS[: 1 + (number % 3 == 2)]
    return built(
        ConsumerShown,
        uuid=f"c{number * 0x1F3D5B7:07x}-7f0a-4a63-9f0e-{number:012x}",
        generation=number,
        project="shop" if number % 2 else "8c0f6a1e4b3d4a55b1a2c3d4e5f60718",
        user="alice",
        type=("INSTANCE", "INSTANCE", "MIGRATION", None)[number % 4],
        allocations=[Allocated(provider=one.uuid, name=one.name, resources=held) for one in hosts],
        created_at=before(days=number * 5, hours=3),
        updated_at=before(minutes=number * 11),
    )


CONSUMERS = [consumer(number) for number in range(1, 7)]


def usages(by: str) -> list[UsageLine]:
    """Return how much each project holds, or each of its users."""
    users = ("alice", "bob") if by == "user" else (None,)
    return [
        built(
            UsageLine,
            project=project,
            user=user,
            consumers=number * 7,
            resources={"MEMORY_MB": number * 65_536, "VCPU": number * 32},
        )
        for number, (project, user) in enumerate(
            ((one, user) for one in ("8c0f6a1e4b3d4a55b1a2c3d4e5f60718", "shop") for user in users),
            1,
        )
    ]
