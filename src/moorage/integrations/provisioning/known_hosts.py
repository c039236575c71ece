"""Which leases are of hosts of one installation, of all that share its pools.

To an installation, such as an Ironic, the host of another one looks as if it had been deleted. So a
missing host counts as deleted only if its lease says that it belongs here, or if it was here
before. All other missing hosts are foreign: their units stay.
"""

from collections.abc import Collection

from moorage.integrations.provisioning.hosts import host_of, installation_of
from moorage.wire.admission import Lease

BEFORE_IDENTITY = ":"
"""Separates a name for people from the identity; names have none."""


BEFORE_PART = "/"
"""Separates the identity of an installation from the part of it that a governor governs."""


def named(name: str | None, identity: str) -> str:
    """Return the label of an installation with an identity that people cannot read."""
    return identity if name is None else f"{name}{BEFORE_IDENTITY}{identity}"


def identity_of(installation: str) -> str:
    """Return what is compared of the label of an installation: people may change a name."""
    return installation.rpartition(BEFORE_IDENTITY)[2]


class KnownHosts:
    """The hosts that an installation has, and had while this process looked."""

    def __init__(self, name: str | None, *, are_unique: bool = False) -> None:
        """Begin with none.

        Args:
            name: of the installation; None: it was given none.
            are_unique: whether no host ever has the UUID of one of another installation. A node can
                be enrolled in another Ironic with its UUID.
        """
        self._identity = None if name is None else identity_of(name)
        self._are_unique = are_unique
        self._here: frozenset[str] = frozenset()
        self._before: frozenset[str] = frozenset()

    def look(self, here: Collection[str], working: Collection[str]) -> None:
        """Take note of the hosts that are here, and of those with units, which are remembered.

        Others are remembered until the next look, so that their tickets can be withdrawn.
        """
        self._before = self._here | self._before.intersection(working)
        self._here = frozenset(here)

    def has(self, lease: Lease) -> bool:
        """Return whether the host of a lease is here, or was: only then its lease may be judged."""
        uuid = host_of(lease)
        if uuid in self._here:
            return True
        installation = installation_of(lease)
        if uuid in self._before and (self._are_unique or installation is None):
            return True
        if installation is None or self._identity is None:
            return False
        identity = identity_of(installation)
        return identity == self._identity or (
            self._are_unique and identity.startswith(f"{self._identity}{BEFORE_PART}")
        )
