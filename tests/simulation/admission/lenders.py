"""Pools that lend each other units, and wishes of clients for these; see `cohorts.py`."""

from dataclasses import replace
from random import Random

from msgspec import structs

from moorage.core.admission.model import Need, PoolSpec
from tests.simulation.admission.clients import Wishes

COHORT = "c"
LENT = "pool/lent"


def specs_of(random: Random, plain: dict[str, PoolSpec], made: set[str]) -> dict[str, PoolSpec]:
    """Return pools of which those with limits lend each other units; `made`: none of these do.

    One is added if there is nobody to lend anything.
    """
    found = dict(plain)
    lenders = [name for name, spec in plain.items() if spec.limit is not None and name not in made]
    if not lenders:
        return found
    if len(lenders) == 1:
        found[LENT] = structs.replace(plain[lenders[0]], limit=random.randrange(1, 4))
        lenders.append(LENT)
    return found | {name: lending(random, found[name]) for name in lenders}


def lending(random: Random, spec: PoolSpec) -> PoolSpec:
    """Return the settings of a pool in the cohort."""
    return structs.replace(
        spec,
        cohort=COHORT,
        lending=random.choice([None, None, 0, 1, 2]),
        borrowing=random.choice([0, 1, 1, 2, 9]),
    )


def changed(random: Random, spec: PoolSpec) -> PoolSpec:
    """Return other settings of a pool: it may leave the cohort, or come back."""
    if spec.cohort is None or random.random() < 0.5:
        return spec
    if random.random() < 0.4:
        return structs.replace(spec, cohort=None, lending=None, borrowing=0)
    return lending(random, spec)


def wishes_of(random: Random, wishes: Wishes, specs: dict[str, PoolSpec]) -> Wishes:
    """Return wishes that a cohort permits: for one pool, perhaps for units to borrow."""
    needs = [need for option in (wishes.needs, *wishes.any_of) for need in option]
    lent = [need.pool for need in needs if specs[need.pool].cohort is not None]
    if not lent:
        return wishes
    name = random.choice(lent)
    spec = specs[name]
    mates = [one for other, one in specs.items() if other != name and one.cohort is not None]
    most = sum(min(one.limit or 0, 9 if one.lending is None else one.lending) for one in mates)
    more = 0 if wishes.allocations else min(most, spec.borrowing)  # with them it does not borrow
    most = min(spec.quota or 99, (spec.limit or 0) + more)
    units = random.choice([1, random.randrange(1, most + 1)])
    return replace(wishes, needs=(Need(name, units),), any_of=())
