"""What the example consists of: the same names and shapes for the same seed."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import NAMESPACE_URL, uuid5

RACK_HOSTS = 40
GROUPS_OF_RACKS = 5
"""Racks that have one kind of host, before the next ones have another."""

AGENTS_MAX = 60

BAREMETAL, VCPU, MEMORY, GPU = "CUSTOM_BAREMETAL_LARGE", "VCPU", "MEMORY_MB", "CUSTOM_GPU_A100"
NVME, WATER = "CUSTOM_NVME", "CUSTOM_WATER_COOLED"

USERS = ("anna", "ben", "chidi", "dana", "emeka")
SUITES = ("e2e-install", "e2e-upgrade", "conformance", "perf-scale", "nightly-soak")


@dataclass(frozen=True)
class PoolSetting:
    """A pool, how many jobs come, and how long they run, in seconds."""

    name: str
    wanted: dict[str, Any]
    seconds: tuple[float, float]
    per_minute: float = 0.0
    """How many jobs come on average."""
    swing: float = 0.0
    """By which share there are more at the busiest time."""
    period: float = 1_500.0
    """The seconds from one busiest time to the next."""
    failures: float = 0.02
    """The share of starts that fail or are throttled."""
    slots: bool = False
    paused: bool = False


PAUSED = PoolSetting(
    "install/aws",
    {"limit": 15, "hold": 900.0, "pacing": None, "labels": {"team": "ci", "cloud": "aws"}},
    seconds=(300.0, 900.0),
    per_minute=1.2,
    paused=True,
)
PAUSED_BECAUSE = "The account is over its quota of addresses until the request is granted"

POOLS = (
    PoolSetting(
        "install/azure",
        {"limit": 20, "hold": 180.0, "labels": {"team": "ci", "cloud": "azure"}},
        seconds=(120.0, 480.0),
        per_minute=6.6,
        swing=0.6,
        failures=0.08,
    ),
    PoolSetting(
        "provision/rack",
        {"limit": 40, "pacing": None, "cooldown": 2.0, "labels": {"team": "metal"}},
        seconds=(180.0, 520.0),
        per_minute=6.5,
        swing=0.5,
    ),
    PoolSetting(
        "gpu",
        {"native_slots": True, "pacing": None, "labels": {"team": "ml"}},
        seconds=(200.0, 600.0),
        per_minute=1.6,
        swing=0.7,
        slots=True,
    ),
    PAUSED,
)
PAUSED_FROM = 0.6
"""When an operator pauses it, as a share of the past."""

ROLLOUT = PoolSetting(
    "rollout/firmware-7.2",
    {"limit": 10, "pacing": {"interval": 4.0, "burst": 2}, "labels": {"team": "metal"}},
    seconds=(50.0, 90.0),
)
ROLLOUT_FROM, ROLLOUT_EVERY = 0.4, 7.0
"""When the rollout begins, as a share of the past; the seconds from one host to the next."""

ALL_POOLS = (*POOLS, ROLLOUT)
SLOTS = {"eu": [f"a100-eu-{n}" for n in range(1, 9)], "us": [f"a100-us-{n}" for n in range(1, 5)]}


def identity(*parts: object) -> str:
    """Return the UUID of a name."""
    return str(uuid5(NAMESPACE_URL, "moorage-demo/" + "/".join(map(str, parts))))


@dataclass(frozen=True)
class Host:
    """A machine of the fleet."""

    number: int

    @property
    def rack(self) -> int:
        """The number of its rack."""
        return self.number // RACK_HOSTS

    @property
    def name(self) -> str:
        """Its name, which begins with that of its rack."""
        return f"r{self.rack:02d}-n{self.number % RACK_HOSTS:02d}"

    @property
    def uuid(self) -> str:
        """The UUID of its provider, and of its agent, if it has one."""
        return identity("host", self.number)

    @property
    def kind(self) -> int:
        """What kind of host it is: bare metal, a hypervisor, or one with GPUs."""
        return self.rack // GROUPS_OF_RACKS % 3

    def providers(self, dice: random.Random) -> Iterator[dict[str, Any]]:
        """Yield the descriptions of its provider, and of those below it."""
        traits = [NVME] if self.rack % 2 else []
        traits += [WATER] if self.kind == 2 else []
        base = {
            "uuid": self.uuid,
            "name": self.name,
            "traits": traits,
            "aggregates": [identity("rack", self.rack)],
        }
        if self.kind == 0:
            broken = dice.random() < 0.03
            inventory: dict[str, Any] = {BAREMETAL: {"total": 1, "reserved": int(broken)}}
        else:
            inventory = {
                VCPU: {"total": 128, "allocation_ratio": 4.0},
                MEMORY: {"total": 524_288, "reserved": 16_384},
            }
        yield {**base, "inventories": inventory}
        if self.kind == 2:
            for number in range(2):
                yield {
                    "uuid": identity("gpu", self.number, number),
                    "name": f"{self.name}_gpu{number}",
                    "parent": self.uuid,
                    "inventories": {GPU: {"total": 4}},
                }

    @property
    def claim(self) -> dict[str, int]:
        """What one consumer of such a host takes."""
        return ({BAREMETAL: 1}, {VCPU: 96, MEMORY: 98_304}, {VCPU: 16, MEMORY: 65_536})[self.kind]
