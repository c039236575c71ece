"""What Nova says: servers, migrations, services and hypervisors, as far as an audit needs it.

Source: nova 34, `nova/api/openstack/compute/views/servers.py`, `migrations.py`, `services.py` and
`hypervisors.py`. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

SOFT_DELETED: Final = "soft-delete"
SETTLED: Final = frozenset(
    {"active", "paused", "suspended", "stopped", "rescued", "shelved", SOFT_DELETED}
)
"""The states of a server that is on its host, and stays there unless somebody asks for more."""

ERROR: Final = "error"
OFFLOADED: Final = "shelved_offloaded"
UNKNOWN: Final = "UNKNOWN"
"""The status of what is in a cell that does not answer, since microversion 2.69."""

ENDED: Final = frozenset({"completed", "confirmed", "reverted", "cancelled"})
"""The states in which nova has done all that it does for a migration."""

FAILED: Final = frozenset({"error", "failed"})
"""The states of a migration that did not work: what it holds may be in use at either end."""

EVACUATION: Final = "evacuation"
COMPUTE: Final = "nova-compute"
IRONIC: Final = "ironic"
EXTENSION: Final = "OS-EXT-SRV-ATTR:"


class UnreadableError(ValueError):
    """An answer is not as Nova describes it. The message says why."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server. `host` and `node` are empty while it is scheduled, or if it is offloaded.

    `volume_backed`: its root disk is a volume. `flavor` is what it was booted with; empty: Nova did
    not say.
    """

    uuid: str
    status: str
    project: str = ""
    host: str = ""
    node: str = ""
    vm_state: str = ""
    task_state: str = ""
    volume_backed: bool = False
    flavor: Mapping[str, Any] | None = None

    @property
    def is_unknown(self) -> bool:
        """Return whether its cell does not answer."""
        return self.status == UNKNOWN and not self.vm_state

    @property
    def is_settled(self) -> bool:
        """Return whether it is on its host, and nothing is being done to it."""
        return bool(self.host) and not self.task_state and self.vm_state in SETTLED

    def is_listed_on(self, host: str) -> bool:
        """Return whether it is in the list of a host: those that can be restored are in none."""
        return self.is_settled and self.vm_state != SOFT_DELETED and self.host == host

    @property
    def is_offloaded(self) -> bool:
        """Return whether it is shelved, on no host, and nothing is being done to it."""
        return self.vm_state == OFFLOADED and not self.host and not self.task_state

    @property
    def is_unbuilt(self) -> bool:
        """Return whether it could not be built: it failed, on no host, and nobody tries again."""
        return self.vm_state == ERROR and not self.host and not self.task_state


@dataclass(frozen=True, slots=True)
class Migration:
    """A move of a server: its UUID is the consumer that holds the source meanwhile."""

    uuid: str
    server: str
    kind: str
    status: str
    source: str
    source_node: str
    target: str
    target_node: str

    @property
    def is_over(self) -> bool:
        """Return whether nova does nothing more for it, except at an evacuated host's start."""
        evacuated = self.kind == EVACUATION and self.status == "done"
        return evacuated or self.status in ENDED or self.status in FAILED

    @property
    def has_failed(self) -> bool:
        """Return whether it did not work."""
        return self.status in FAILED

    def touches(self, names: frozenset[str]) -> bool:
        """Return whether one of these hosts or nodes is an end of it."""
        return not names.isdisjoint((self.source, self.source_node, self.target, self.target_node))


@dataclass(frozen=True, slots=True)
class Service:
    """A service `nova-compute`. Unknown: its cell does not answer."""

    host: str
    is_unknown: bool
    is_enabled: bool
    is_up: bool


@dataclass(frozen=True, slots=True)
class Hypervisor:
    """A compute node: `host` is its service, `name` its own name."""

    uuid: str
    name: str
    host: str
    kind: str


def server_of(shown: Any) -> Server:
    """Read a server. Raises UnreadableError."""
    try:
        flavor = shown.get("flavor")
        return Server(
            uuid=_text(shown, "id"),
            status=_text(shown, "status"),
            project=_text(shown, "tenant_id", ""),
            host=_text(shown, f"{EXTENSION}host", ""),
            node=_text(shown, f"{EXTENSION}hypervisor_hostname", ""),
            vm_state=_text(shown, "OS-EXT-STS:vm_state", ""),
            task_state=_text(shown, "OS-EXT-STS:task_state", ""),
            volume_backed=shown.get("image") == "",
            flavor=flavor if isinstance(flavor, dict) else None,
        )
    except (AttributeError, KeyError, TypeError):
        raise UnreadableError("it is no server as Nova describes one") from None


def migration_of(shown: Any) -> Migration:
    """Read a migration. Raises UnreadableError."""
    try:
        return Migration(
            uuid=_text(shown, "uuid"),
            server=_text(shown, "instance_uuid"),
            kind=_text(shown, "migration_type", ""),
            status=_text(shown, "status", ""),
            source=_text(shown, "source_compute", ""),
            source_node=_text(shown, "source_node", ""),
            target=_text(shown, "dest_compute", ""),
            target_node=_text(shown, "dest_node", ""),
        )
    except (AttributeError, KeyError, TypeError):
        raise UnreadableError("it is no migration as Nova describes one") from None


def service_of(shown: Any) -> Service:
    """Read a service. Raises UnreadableError."""
    try:
        status = _text(shown, "status")
        return Service(
            host=_text(shown, "host"),
            is_unknown=status == UNKNOWN,
            is_enabled=status == "enabled",
            is_up=_text(shown, "state", "") == "up",
        )
    except (AttributeError, KeyError, TypeError):
        raise UnreadableError("it is no service as Nova describes one") from None


def hypervisor_of(shown: Any) -> Hypervisor:
    """Read a hypervisor. Raises UnreadableError."""
    try:
        return Hypervisor(
            uuid=_text(shown, "id"),
            name=_text(shown, "hypervisor_hostname"),
            host=_text(shown.get("service") or {}, "host", ""),
            kind=_text(shown, "hypervisor_type", "").lower(),
        )
    except (AttributeError, KeyError, TypeError):
        raise UnreadableError("it is no hypervisor as Nova describes one") from None


def _text(shown: Mapping[str, Any], name: str, missing: str | None = None) -> str:
    """Return a text; null and a missing member are `missing`. Raises KeyError, TypeError."""
    value = shown[name] if missing is None else shown.get(name)
    if value is None and missing is not None:
        return missing
    if not isinstance(value, str):
        raise TypeError(name)
    return value
