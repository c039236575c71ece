"""What goes wrong with single requests, on demand."""

from dataclasses import dataclass, field
from typing import Literal

from tests.support.kubernetes_double.requests import Received

DROP: Literal["drop"] = "drop"
STATUSES = (401, 403, 410, 422, 429, 500, 503, 504)


@dataclass
class Fault:
    """What happens to the next `times` requests with a verb, to a resource, to a name.

    None means any. `carry_out`: the write is done before the answer goes wrong. `answer`: a status
    code, `drop` (the connection is closed without an answer), or None: the request only waits.
    `says` is the message of a status code. `retry_after` is a number of seconds for the client.
    `wait` delays the request.
    """

    verb: str | None = None
    plural: str | None = None
    name: str | None = None
    times: int = 1
    carry_out: bool = False
    answer: int | Literal["drop"] | None = None
    says: str = "the double was asked to fail"
    retry_after: int | None = None
    wait: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what would never happen. Raises ValueError."""
        if self.answer not in (None, DROP, *STATUSES):
            raise ValueError(f"no such answer: {self.answer}")

    def concerns(self, request: Received) -> bool:
        """Return whether the fault happens to a request."""
        return (
            self.verb in (None, request.verb)
            and self.plural in (None, request.target.kind.plural)
            and self.name in (None, request.target.name)
        )


@dataclass
class Faults:
    """All faults that are still to happen, in their order."""

    pending: list[Fault] = field(default_factory=list)

    def next(self, request: Received) -> Fault | None:
        """Return the fault that happens to a request, which is then one fewer."""
        for fault in self.pending:
            if fault.concerns(request):
                fault.times -= 1
                if fault.times <= 0:
                    self.pending.remove(fault)
                return fault
        return None
