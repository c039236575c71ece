"""The failed work of a BareMetalHost, and when it may try again.

The operator (BMO) retries all failed work, for ever: after 1 to 2 minutes, then 2 to 4, and
so on (`calculateBackoff`), for hours. Since v0.14 it gives a deployment up after five failures,
until the image is changed or the count of failures is reset; before, it never did. Meanwhile a host
needs no units, so it waits as we make it wait: paused, for as long as BMO would at most, but no
longer than an hour. How often it has failed is in an annotation of ours, because BMO begins to
count again with each state: so a host that always fails asks less and less often, and those that
wait with it go first.

Source: baremetal-operator 02aa505, `host_state_machine.go`, `baremetalhost_controller.go`,
`action_result.go`. BMO sets `errorCount` to 0 when a host ends what it does in a state, so an error
with a count was found there. One without is what a failed deployment has left.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from moorage.integrations.metal3.hosts import (
    AVAILABLE,
    HELD,
    OWN,
    BareMetalHost,
    Verb,
    annotations_of,
    is_provisioned,
    pause_of,
    retry_of,
    start_of,
    state_of,
)
from moorage.integrations.metal3.status import status_of
from moorage.integrations.provisioning.reconcile import Outcome

REGISTRATION, PROVISIONING = "registration error", "provisioning error"
"""Errors that keep an idle host from its start; others, such as of its power, do not."""

WAIT_MAX = timedelta(hours=1)
"""The longest time that a host waits after it could not start."""

TIME = re.compile(r"[0-9T:.Z+-]{1,40}")
"""A time as Kubernetes writes it."""

FAILURES = "moorage.dev/failures"
"""The annotation that says how often a host has failed since it went well, as JSON."""

FAILURES_LENGTH_MAX = 1_000
"""Characters of it that are read: ours are shorter. All who may write the host may write it."""

DOUBLINGS_MAX = 10
"""After this many failures the longest time is reached."""

LOOKED = "looked"
"""The member of a record that says when BMO had stored a status last, before the host started."""


@dataclass(frozen=True)
class Failures:
    """How often a host has failed, one time after the other.

    `kind` is the last error, `since` when BMO had found the first one, and `generation` that of the
    specification: after a change of it, people may have mended the host. `looked` is when BMO had
    stored its status last, before we paused it because nothing worked on it.
    """

    count: int
    since: str
    kind: str
    generation: int
    looked: str = ""

    def text(self) -> str:
        """Return the annotation."""
        return json.dumps(vars(self), separators=(",", ":"))


def error_kind_of(host: BareMetalHost) -> str:
    """Return BMO's word for what has failed, such as `inspection error`; empty: nothing."""
    return str(status_of(host).get("errorType") or "")


def error_of(host: BareMetalHost) -> str:
    """Return what BMO says has failed; empty: nothing."""
    kind = error_kind_of(host)
    return str(status_of(host).get("errorMessage") or kind) if kind else ""


def errors_of(host: BareMetalHost) -> int:
    """Return how many errors BMO has counted in a row in the state that a host has."""
    return _count(status_of(host).get("errorCount"))


def failures_of(host: BareMetalHost) -> Failures | None:
    """Return how often a host has failed with the specification that it has; None: never."""
    failures = _recorded(host)
    return failures if failures and failures.generation == _generation(host) else None


def is_marked_as_failed(host: BareMetalHost) -> bool:
    """Return whether a host says how often it has failed, even with another specification.

    BMO itself changes the specification after an inspection: it notes the architecture.
    """
    return FAILURES in annotations_of(host)


def has_rested_since_paused(host: BareMetalHost) -> bool:
    """Return whether we paused a host because nothing worked on it, and BMO did nothing since.

    So it says also in a process that has just begun to look, and whatever people do to the error.
    """
    failures, stored = _recorded(host), _stored_at(host)
    if pause_of(host) != OWN or failures is None or not stored:
        return False
    return failures.looked == stored


def _recorded(host: BareMetalHost) -> Failures | None:
    """Return what is recorded of the failures of a host; None: nothing, or nothing of ours."""
    text: object = annotations_of(host).get(FAILURES)
    if not isinstance(text, str) or len(text) > FAILURES_LENGTH_MAX:
        return None
    try:
        found = json.loads(text)
        failures = Failures(**found)
    except (ValueError, TypeError, RecursionError):
        return None
    values: tuple[object, ...] = tuple(vars(failures).values())
    count, since, kind, generation, looked = values
    if not all(isinstance(one, int) and one >= 0 for one in (count, generation)):
        return None
    if not all(isinstance(one, str) for one in (since, kind, looked)):
        return None
    return failures


def failed_again(host: BareMetalHost) -> Failures:
    """Return how often a host has failed, with its present error."""
    before = failures_of(host)
    looked = _stored_at(host) or ""
    since = looked if before is None else before.since
    count = 1 if before is None else before.count + 1
    return Failures(count, since, error_kind_of(host), _generation(host), looked)


def error_text(host: BareMetalHost) -> str:
    """Return which error a host has, since when and how often; empty: none, for people."""
    if not (kind := error_kind_of(host)):
        return ""
    before = failures_of(host)
    since = _stored_at(host) if before is None else before.since
    count = max(errors_of(host), 0 if before is None else before.count)
    often = f", {count} times" if count > 1 else ""
    return f"{kind} since {since}{often}" if since else f"{kind}{often}"


def cannot_start(host: BareMetalHost) -> bool:
    """Return whether BMO has found that an idle host cannot start, and only looks again later."""
    verb, status = start_of(host), status_of(host)
    if verb not in HELD or not status.get("errorCount"):
        return False
    if status.get("errorType") == PROVISIONING:
        return verb is Verb.PROVISION and _has_given_up(host)
    return bool(status.get("errorType") == REGISTRATION)


def again_at(host: BareMetalHost) -> datetime | None:
    """Return when an idle host may try again that could not start; None: at once.

    BMO's own back-off is between the half of this and this, up to eight hours, but for a
    registration, of which only our own pauses count. The time is that of BMO's clock.
    """
    return _after_back_off(host) if cannot_start(host) else None


def retry_at(host: BareMetalHost) -> datetime | None:
    """Return when a host may try again whose work has failed; None: at once. See `again_at`."""
    return _after_back_off(host) if retry_of(host) and error_kind_of(host) else None


def _after_back_off(host: BareMetalHost) -> datetime | None:
    looked, before = looked_at(host), failures_of(host)
    if looked is None:
        return None
    ours = 0 if before is None else before.count
    # BMO repeats some registrations, as with a secret that is missing, each 10 seconds, and counts.
    times = ours if error_kind_of(host) == REGISTRATION else max(errors_of(host), ours)
    minutes = timedelta(minutes=2.0 ** min(times, DOUBLINGS_MAX))
    try:
        return looked + min(minutes, WAIT_MAX)
    except OverflowError:  # people may write a status, too, and with it any time
        return None


def looked_at(host: BareMetalHost) -> datetime | None:
    """Return when BMO has stored the status of a host last; None: never."""
    try:
        found = datetime.fromisoformat(_stored_at(host) or "")
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def mark_of(host: BareMetalHost) -> dict[str, Any]:
    """Return what the record says before a host starts, to tell old errors from new ones."""
    return {LOOKED: _stored_at(host)}


def has_looked_since(host: BareMetalHost, record: Mapping[str, Any] | None) -> bool:
    """Return whether BMO has looked at a host since it was started; True if no record says it."""
    record = record or {}
    return LOOKED not in record or _stored_at(host) != record[LOOKED]


def result_of(host: BareMetalHost) -> Outcome | None:
    """Return what became of the work of a host that needs no units; None: it was not done."""
    if is_provisioned(host):
        return Outcome("ok")
    if error := error_of(host):
        return Outcome("failed", error)
    return Outcome("ok") if state_of(host) in AVAILABLE and start_of(host) is None else None


def _has_given_up(host: BareMetalHost) -> bool:
    """Return whether deployments of the image have failed that the host is to get."""
    status = status_of(host)
    spec = host.get("spec")
    wanted = spec.get("image") if isinstance(spec, Mapping) else None
    return bool(status.get("provisioningFailCount")) and _plain(wanted) == _plain(
        status.get("lastAttemptedImage")
    )


def _plain(image: Any) -> Mapping[str, Any]:
    """Return an image without what BMO omits when it stores one."""
    return {name: one for name, one in image.items() if one} if isinstance(image, Mapping) else {}


def _count(value: Any) -> int:
    return max(0, value) if isinstance(value, int) else 0


def _generation(host: BareMetalHost) -> int:
    return _count(host["metadata"].get("generation"))


def _stored_at(host: BareMetalHost) -> str | None:
    """Return what BMO says of when it has stored a status last; None: nothing."""
    found = status_of(host).get("lastUpdated")
    return found if isinstance(found, str) and TIME.fullmatch(found) else None
