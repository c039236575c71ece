"""A host as the holder of leases: their keys and labels, and whose lease one is."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from moorage.client.run.labels import accepted
from moorage.wire.admission import Lease

ADOPTED = "adopted"
"""In place of the verb in the key of a host that was busy without a unit."""

LABEL_LENGTH_MAX = 255

KEY_PART_MAX = 150
"""Longer names of pools are not written into a key, which has 255 characters at most."""


@dataclass(frozen=True)
class Host:
    """A host that occupies units while it works.

    `system` is a word such as `ironic`, `uuid` the host's identity there. `labels` describe it to
    people; the label `holder` is its name.
    """

    system: str
    uuid: str
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def keys(self) -> str:
        """The beginning of the keys of all its leases."""
        return f"{self.system}/{self.uuid}/"


def key_part(pools: Iterable[str]) -> str:
    """Return a part of a key that differs for different pools: their names, if they are short."""
    names = "+".join(sorted(pools))
    return names if len(names) <= KEY_PART_MAX else sha256(names.encode()).hexdigest()


def label_text(text: str) -> str:
    """Return text that may be the value of a label."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    return accepted(shown[:LABEL_LENGTH_MAX])


def host_of(lease: Lease) -> str | None:
    """Return the UUID of the host of a lease; None: it is not the lease of a host."""
    parts = lease.key.split("/")
    return parts[1] if len(parts) >= 3 else None


def installation_of(lease: Lease) -> str | None:
    """Return the installation that the host of a lease belongs to; None: the lease does not say."""
    return lease.labels.get(lease.key.partition("/")[0])
