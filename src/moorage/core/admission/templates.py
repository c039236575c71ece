"""Templates of pools: a request for a pool that does not exist may make it, and it goes again.

A template stands for all pools whose names begin with its prefix, and has their settings. A request
for such a pool makes it in its own batch, if the template lets the caller ask. If several templates
match, the one with the longest prefix makes it.

A pool that a request has made is collected once nobody has used it for the `idle` time of its
template: it has no lease, no ticket and no booking, no unit rests, and it is not paused. `admit`
looks for that after all decisions of a batch, so that a request that comes in the same batch keeps
the pool. What an operator changes stays: it is an ordinary pool from then on.

A changed or deleted template concerns pools that are made later: each pool has its own copy of the
settings and of the idle time. The number of pools of a template is bounded (`pools_max`), because
everybody who may ask may choose their names.
Source: docs/decisions/0064-only-the-newest-waits.md.
"""

from msgspec import Struct, structs

from moorage.core.admission.adaptive import rule as adaptive
from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.model import OnDemand, Pool, PoolSpec, Template
from moorage.core.admission.pools import Refusals, check_generation, check_spec, new_pool, paced
from moorage.core.admission.requests import LeaseRequest, check_duration
from moorage.core.clock import Instant
from moorage.core.counting import counted
from moorage.core.errors import Code, Error
from moorage.core.limits import POOL_NAME_LENGTH_MAX, TEMPLATE_POOLS_MAX, TEMPLATES_MAX
from moorage.core.service_time import Moment
from moorage.core.texts import check_path

OF_TEMPLATES = Refusals(Code.TEMPLATE_NOT_FOUND, Code.TEMPLATE_EXISTS, Code.TEMPLATE_GENERATION)
ANY = "*"
"""The end of a template's name: it stands for any further characters."""


class TemplateWish(Struct, frozen=True):
    """What a template should be. `paced`: the pacing follows from the hold and the limit."""

    spec: PoolSpec
    idle: int
    pools_max: int
    paced: bool = False


def put(
    facts: Facts, wall: Instant, name: str, wish: TemplateWish, generation: int | None = None
) -> tuple[Changes, Template]:
    """Create or replace a template; an equal one changes nothing, not even the generation.

    Args:
        facts: with all templates.
        wall: wall-clock time, stored in it.
        name: the beginning of the names of its pools, and `*`.
        wish: what it should be.
        generation: that the caller has seen; 0: it must not exist; None: any.

    Raises INVALID, TEMPLATE_EXISTS, TEMPLATE_GENERATION, TEMPLATE_NOT_FOUND, LIMIT_EXCEEDED.
    """
    before = facts.templates.get(name)
    check_generation(
        "template", name, None if before is None else before.generation, generation, OF_TEMPLATES
    )
    _check_name(name)
    spec = paced(None, facts, wish.spec, Instant(0)) if wish.paced else wish.spec
    if spec.limit is None or spec.native_slots or spec.per_member is not None:
        raise Error(
            Code.INVALID,
            "The pools of a template need a limit: a number of units. They have no slots, and no"
            " units per member.",
        )
    check_spec(spec)
    check_duration("idle", wish.idle)
    if not 1 <= wish.pools_max <= TEMPLATE_POOLS_MAX:
        raise Error(Code.INVALID, f"pools_max must be from 1 to {TEMPLATE_POOLS_MAX}.")
    if before is None:
        if len(facts.templates) >= TEMPLATES_MAX:
            raise Error(Code.LIMIT_EXCEEDED, f"There may be at most {TEMPLATES_MAX} templates.")
        made = Template(name, spec, wish.idle, wish.pools_max, 1, wall, wall)
    else:
        made = structs.replace(before, spec=spec, idle=wish.idle, pools_max=wish.pools_max)
        if made == before:
            return Changes(), before
        made = structs.replace(made, generation=before.generation + 1, updated_at=wall)
    return Changes(templates={name: made}), made


def delete(facts: Facts, name: str) -> Changes:
    """Remove a template; its pools stay until they are idle. Raises TEMPLATE_NOT_FOUND."""
    if name not in facts.templates:
        raise not_found(name)
    return Changes(templates={name: None})


def missing(facts: Facts, request: LeaseRequest, moment: Moment, wall: Instant) -> dict[str, Pool]:
    """Return the pools that a request needs, that do not exist, and that templates make.

    Raises INVALID: a name is not one of a pool; TEMPLATE_FULL.
    """
    made: dict[str, Pool] = {}
    for name in sorted({need.pool for need in request.needs} - facts.pools.keys()):
        template = template_of(facts, name)
        if template is None:
            continue
        check_path("A pool's name", name, POOL_NAME_LENGTH_MAX)
        new = sum(one.on_demand is not None and _is_of(one, template) for one in made.values())
        there = facts.made.get(template.name, 0) + new
        if there >= template.pools_max:
            raise Error(
                Code.TEMPLATE_FULL,
                f"Template '{template.name}' has {counted(there, 'pool')}, and pools_max is"
                f" {template.pools_max}, so it cannot make pool '{name}'. Its pools go once they"
                " are idle; an operator can raise pools_max.",
            )
        spec, adaptation = adaptive.asked(template.spec, None, moment.at)
        pool = new_pool(name, spec, wall)
        demand = OnDemand(template.name, template.idle)
        made[name] = structs.replace(pool, on_demand=demand, adaptation=adaptation)
    return made


def template_of(facts: Facts, pool: str) -> Template | None:
    """Return the template that makes a pool of this name: of those that match, the longest."""
    found = [
        one
        for one in facts.templates.values()
        if pool.startswith(one.name.removesuffix(ANY)) and len(pool) >= len(one.name)
    ]
    return max(found, key=lambda one: len(one.name), default=None)


def looked_at(pool: Pool, at: Instant) -> Pool | None:
    """Return a pool that was made on demand with the time at which it goes; None: it goes now.

    Args:
        pool: after all decisions and grants of the batch.
        at: now, in service time.
    """
    demand = pool.on_demand
    if demand is None:
        return pool
    until = demand.idle_until
    if pool.waiting or pool.occupied or pool.paused or pool.booked_until is not None:
        until = None
    elif until is None:
        rested = max((rest.until for rest in pool.resting), default=at)
        until = Instant(max(at, rested) + demand.idle)
    elif until <= at:
        return None
    if until == demand.idle_until:
        return pool
    return structs.replace(pool, on_demand=structs.replace(demand, idle_until=until))


def not_found(name: str) -> Error:
    """Return the error for a template that does not exist."""
    return Error(Code.TEMPLATE_NOT_FOUND, f"There is no template '{name}'.")


def _is_of(pool: Pool, template: Template) -> bool:
    return pool.on_demand is not None and pool.on_demand.template == template.name


def _check_name(name: str) -> None:
    prefix = name.removesuffix(ANY)
    if prefix == name or not prefix:
        raise Error(
            Code.INVALID,
            "A template's name must be the beginning of the names of its pools, and an asterisk,"
            " such as deploy/*.",
        )
    # One more character makes a name of a pool, or the beginning can be none.
    check_path("The beginning of a template's name", f"{prefix}x", POOL_NAME_LENGTH_MAX)
