"""Which amounts a server must hold, by its flavor. Pure.

Source: nova 34, `nova/scheduler/utils.py`, `ResourceRequest`. What else a server may hold comes
from its image, its ports and its devices: those classes are not compared.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

CPUS: Final = ("VCPU", "PCPU")
MEGABYTES: Final = 1024
GRANULAR: Final = re.compile(r"resources(_?[A-Za-z0-9_-]*):([A-Z0-9_]+)")
ISOLATED: Final = "hw:emulator_threads_policy"
"""The extra spec by which a server may have one processor more."""


def amounts_of(flavor: Mapping[str, Any], *, volume_backed: bool) -> dict[str, int] | None:
    """Return what a flavor asks for by class; None: it does not say.

    `VCPU` is the sum of `VCPU` and `PCPU`: which of both it is depends on the image, too.
    """
    specs = flavor.get("extra_specs")
    if not isinstance(specs, dict):
        return None
    try:
        disk = 0 if volume_backed else int(flavor["disk"])
        swap = -(-int(flavor.get("swap") or 0) // MEGABYTES)
        asked = {
            "VCPU": int(flavor["vcpus"]),
            "MEMORY_MB": int(flavor["ram"]),
            "DISK_GB": disk + int(flavor["ephemeral"]) + swap,
        }
        return _overridden(asked, specs)
    except (KeyError, TypeError, ValueError):
        return None


def _overridden(asked: dict[str, int], specs: Mapping[str, Any]) -> dict[str, int]:
    """Apply the extra specs `resources:CLASS=AMOUNT`; those of a group are added."""
    plain: dict[str, int] = {}
    grouped: dict[str, int] = {}
    for name, value in specs.items():
        if found := GRANULAR.fullmatch(name):
            group, resource_class = found.groups()
            of = grouped if group else plain
            of[resource_class] = of.get(resource_class, 0) + int(value)
    if not plain.keys().isdisjoint(CPUS):
        plain["VCPU"] = sum(plain.pop(name, 0) for name in CPUS)
    if "PCPU" in grouped:
        grouped["VCPU"] = grouped.get("VCPU", 0) + grouped.pop("PCPU")
    asked = {**asked, **plain}
    return {name: asked.get(name, 0) + grouped.get(name, 0) for name in asked | grouped}


def differences(
    flavor: Mapping[str, Any], held: Mapping[str, int], *, volume_backed: bool
) -> dict[str, tuple[int, int]]:
    """Return the classes with another amount: what a server asks for, and what it holds."""
    asked = amounts_of(flavor, volume_backed=volume_backed)
    if asked is None:
        return {}
    if ISOLATED in flavor["extra_specs"]:
        asked.pop("VCPU", None)
    sums = {**held, "VCPU": sum(held.get(name, 0) for name in CPUS)}
    return {
        name: (amount, sums.get(name, 0))
        for name, amount in asked.items()
        if sums.get(name, 0) != amount
    }
