"""The body of a refusal. Source: RFC 9457, "Problem Details for HTTP APIs"."""

from __future__ import annotations

from moorage.wire.dataclass import dataclass
from moorage.wire.reshapes import ReshapeDifferences, ReshapePlanned, ReshapeViolation


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A refusal. `code` is stable, for programs; `detail` says what is wrong, for people."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    code: str
    request_id: str
    oldest: str | None = None
    """Only with the code `changes_gone`: the oldest cursor that can still be resumed from."""
    explain: str | None = None
    """Only with the code `no_capacity`: the address that explains why nothing is found."""
    plan: ReshapePlanned | None = None
    """Only with the codes `reshape_refused`, for all its violations, and `reshape_changed`."""
    violations: list[ReshapeViolation] | None = None
    """Only with the code `reshape_refused` for the plan of an agent: at most 500 of them."""
    differences: ReshapeDifferences | None = None
    """Only with the code `reshape_changed`, if the caller has sent the effects of its preview."""
