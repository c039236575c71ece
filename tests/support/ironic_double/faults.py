"""What goes wrong with single requests, on demand."""

from dataclasses import dataclass, field
from typing import Literal, get_args

KINDS = (
    *("list", "read", "create", "patch", "delete", "provision", "power", "maintenance"),
    *("states", "validate", "heartbeat", "document", "traits", "conductors", "other"),
)
"""The kinds of requests."""

DROP, NO_WORKER, PROXY = "drop", "no worker", "proxy"

Work = Literal["first", "last", "late", "never"]


@dataclass
class Fault:
    """What happens to the next `times` requests of a kind (`on`), or of one node only.

    `work`: the request is carried out `first`, before `wait` virtual seconds pass until the
    answer, or `last`, or `late` (`late` seconds after it has arrived, whenever it is answered), or
    `never`.
    `answer`: None is Ironic's own; a status is an error; `drop` closes the connection without one;
    `no worker` is Ironic's refusal while all threads are busy, `proxy` the 503 of a proxy.
    """

    on: str
    node: str | None = None
    times: int = 1
    wait: float = 0.0
    work: Work = "first"
    late: float = 0.0
    answer: int | Literal["drop", "no worker", "proxy"] | None = None

    def __post_init__(self) -> None:
        """Refuse what would never happen. Raises ValueError."""
        if self.on not in KINDS or self.work not in get_args(Work):
            raise ValueError(f"no such fault: {self}")


@dataclass
class Faults:
    """All faults that are still to happen, in their order."""

    pending: list[Fault] = field(default_factory=list)

    def next(self, kind: str, node: str | None) -> Fault | None:
        """Return the fault that happens to a request, which is then one fewer."""
        for fault in self.pending:
            if fault.on == kind and fault.node in (None, node):
                fault.times -= 1
                if fault.times <= 0:
                    self.pending.remove(fault)
                return fault
        return None
