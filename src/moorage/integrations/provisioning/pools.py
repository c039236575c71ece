"""Checks that pools can hold the units of hosts that work.

A host works until it is seen not to, however long that takes. So no lease may end by itself.
"""

from collections.abc import Collection

from moorage.client.transport import RefusedError
from moorage.integrations.lease_api import LeaseApi
from moorage.wire.admission import Pool

UNKNOWN = "pool_not_found"
"""Code of a refusal: there is no such pool."""

HOLDS = "pool_has_hold"
"""Code of our own refusal: a unit of the pool would be free while its host works."""

WRONG_TOKENS = {"invalid": "the token does not have the role governor", "forbidden": ""}
"""The meaning of refusals for the token, by code; empty: the refusal says it. `invalid` is the
refusal to list keys of all owners."""

KEYS = "hosts/"
"""Any beginning of keys."""


class PoolError(ValueError):
    """A pool cannot be used; the message says what to change, in one line."""


async def check(api: LeaseApi, names: Collection[str]) -> list[Pool]:
    """Return pools that can be used, by a token that governs them.

    Raises PoolError, UnreachableError, RefusedError.
    """
    try:
        # Only who governs pools may ask for keys without naming an owner.
        async for _ in api.leases(state="granted", key_prefix=KEYS):
            break
        return [await _checked(api, name) for name in names]
    except RefusedError as refusal:
        why = WRONG_TOKENS.get(refusal.code)
        if why is None:
            raise
        scope = " ".join(f"--for pool={name}" for name in names) or "--for pool=NAME"
        raise PoolError(
            f"{why or str(refusal).rstrip('.')}: run"
            f" `moorage token create --name NAME --role governor {scope}`"
        ) from None


def hold_refusal(names: Collection[str]) -> RefusedError:
    """Return the refusal for a lease that got a hold, because a pool has been changed since."""
    return RefusedError(
        409,
        HOLDS,
        f"leases of {' and '.join(sorted(names))} end while hosts still work: run"
        " `moorage pool change NAME --hold none`",
        "",
    )


async def _checked(api: LeaseApi, name: str) -> Pool:
    try:
        pool = await api.pool(name)
    except RefusedError as refusal:
        if refusal.code != UNKNOWN:
            raise
        raise PoolError(
            f"there is no pool '{name}': run `moorage pool create {name} --limit N --expire keep`"
        ) from None
    if pool.expire != "keep":
        raise PoolError(
            f"leases of pool '{name}' end while hosts still work if nobody renews them: run"
            f" `moorage pool change {name} --expire keep`"
        )
    if pool.hold is not None:
        raise PoolError(
            f"leases of pool '{name}' end after its hold while hosts still work: run"
            f" `moorage pool change {name} --hold none`"
        )
    return pool
