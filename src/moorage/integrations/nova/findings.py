"""What an audit finds: the codes, and what each says. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from moorage.wire.providers import ProviderShown

Code = Literal[
    "orphan",
    "doubled",
    "doubled_evacuated",
    "doubled_resized",
    "offloaded",
    "failed_build",
    "missing",
    "wrong_shape",
    "foreign_consumer",
    "dead_provider",
    "over_capacity",
    "trait_without_owner",
    "child_without_evidence",
    "ghost_node",
    "node_without_provider",
    "instance_disagrees",
]

CODES: Final[Mapping[Code, str]] = {
    "orphan": "Nova has neither a server nor a migration of the consumer.",
    "doubled": "A server holds units of a host that it is not on, and no migration says why.",
    "doubled_evacuated": "A server still holds units of the host that it was evacuated from.",
    "doubled_resized": "A migration that is over, or of a deleted server, still holds units.",
    "offloaded": "A server is shelved and on no host, but still holds units.",
    "failed_build": "A server could not be built and is on no host, but still holds units.",
    "missing": "A server is on a host, but holds nothing of it.",
    "wrong_shape": "A server holds other amounts than its flavor says.",
    "foreign_consumer": "A consumer of a compute node is not Nova's: it is never changed.",
    "dead_provider": "A provider of a compute node that Nova does not know.",
    "over_capacity": "More of a provider is used than it offers.",
    "trait_without_owner": "A provider has a trait that nobody gives it any more.",
    "child_without_evidence": "A provider below a compute node offers nothing, and is not used.",
    "ghost_node": "A provider of a node that Ironic does not know.",
    "node_without_provider": "A node of Ironic has no provider.",
    "instance_disagrees": "Ironic, Nova and the ledger name different servers for a node.",
}
"""The stable code of each kind of finding, and what it says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding.

    `consumer` and `provider` are what it is about; empty: it is about the other one. `generation`
    is that of the consumer, or of the provider if there is no consumer. `host` is for people.
    `release` has the units that a heal would take from the consumer, by provider and class,
    `delete` the providers that it would delete; both empty: it is reported only.
    """

    code: Code
    message: str
    consumer: str = ""
    provider: str = ""
    generation: int = 0
    host: str = ""
    release: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    delete: tuple[str, ...] = ()

    @property
    def is_healable(self) -> bool:
        """Return whether a heal changes something."""
        return bool(self.release or self.delete)

    @property
    def key(self) -> tuple[str, str, str]:
        """Return what tells it from all others of one audit."""
        return self.code, self.consumer, self.provider


def about(
    provider: "ProviderShown",
    code: Code,
    message: str,
    *,
    host: str | None = None,
    delete: tuple[str, ...] = (),
) -> Finding:
    """Return a finding about a provider; `host`: that of its tree, by default itself."""
    return Finding(
        code=code,
        message=message,
        provider=provider.uuid,
        generation=provider.generation,
        host=provider.name if host is None else host,
        delete=delete,
    )


@dataclass(frozen=True, slots=True)
class Unclear:
    """The evidence does not suffice to say whether something is wrong; and why."""

    subject: str
    reason: str
