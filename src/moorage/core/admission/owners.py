"""Owners of leases that are not callers by name: nobody may have such a name."""

from moorage.wire.labels import GOVERNOR

BOSKOS = "boskos:"
"""The prefix of the owner of a lease that was made through the Boskos face."""

LEASE_PROXY = "lease-proxy"
"""The owner of all leases made through the lease proxy."""

GOVERNORS = f"{GOVERNOR}hosts"
"""The one owner of the leases of all governors: each continues what another has begun."""


def is_reserved(owner: str) -> bool:
    """Is this no name for a token, project or user, because it owns the leases of others?"""
    return owner.startswith((BOSKOS, GOVERNOR)) or owner == LEASE_PROXY


def is_foreign(owner: str) -> bool:
    """Is this the owner of leases made through Boskos or the lease proxy?

    Their holders cannot learn of new leases: they do not know the native API.
    """
    return owner.startswith(BOSKOS) or owner == LEASE_PROXY


def project_of(owner: str) -> str | None:
    """Return the project of an owner, `PROJECT/NAME`; None: it is bound to none.

    The name of a project may contain slashes, that of a token or user may not: so an owner of
    project `a/b` is none of project `a`, although its name begins with `a/`.
    """
    project, slash, _ = owner.rpartition("/")
    return project if slash and not is_reserved(owner) else None
