"""Which leases are of hosts of one installation, of all that share its pools.

To an installation, such as an Ironic, the host of another one looks as if it had been deleted. So a
host that is missing is believed to be deleted only if the lease says that it belongs here, or if it
was here before. What is neither is foreign: its unit stays.
"""

from collections.abc import Collection

from moorage.integrations.provisioning.hosts import host_of, installation_of
from moorage.wire.admission import Lease

BEFORE_IDENTITY = ":"
"""Separates a name for people from the identity; names have none."""


def named(name: str | None, identity: str) -> str:
    """Return the label of an installation with an identity that people cannot read."""
    return identity if name is None else f"{name}{BEFORE_IDENTITY}{identity}"


def identity_of(installation: str) -> str:
    """Return what is compared of the label of an installation: people may change a name."""
    return installation.rpartition(BEFORE_IDENTITY)[2]


class KnownHosts:
    """The hosts that an installation has, and had while this process looked."""

    def __init__(self, name: str | None) -> None:
        """Begin with none; `name` is that of the installation, None: it was given none."""
        self._identity = None if name is None else identity_of(name)
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
        if (installation := installation_of(lease)) is not None:
            return identity_of(installation) == self._identity
        return uuid in self._before
