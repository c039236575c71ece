"""What failed on a BareMetalHost, and when it may try again.

After a failed deployment the operator (BMO) tries again by itself, five times by default; then it
gives up, until the image is changed or the count of failures is reset. The same holds of a host
that cannot be registered: it is idle, and BMO looks at it again after 1 to 2 minutes, then 2 to 4,
and so on (`calculateBackoff`), for hours. Meanwhile it needs no units, so it waits as we make it
wait: paused, for as long as BMO would at most, but no longer than an hour.

Source: baremetal-operator 02aa505, `host_state_machine.go`, `baremetalhost_controller.go`,
`action_result.go`. BMO sets `errorCount` to 0 when a host changes its state, so an error with a
count was found in the state that the host has. One without is what a failed deployment has left.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from moorage.integrations.metal3.hosts import (
    AVAILABLE,
    HELD,
    BareMetalHost,
    Verb,
    is_provisioned,
    start_of,
    state_of,
)
from moorage.integrations.provisioning.reconcile import Outcome

REGISTRATION, PROVISIONING = "registration error", "provisioning error"
"""Errors that keep an idle host from its start; others, such as of its power, do not."""

WAIT_MAX = timedelta(hours=1)
"""The longest time that a host waits after it could not start."""

TIME = re.compile(r"[0-9T:.Z+-]{1,40}")
"""A time as Kubernetes writes it."""

LOOKED = "looked"
"""The member of a record that says when BMO had stored a status last, before the host started."""


def error_of(host: BareMetalHost) -> str:
    """Return what BMO says has failed; empty: nothing."""
    status = _status(host)
    kind = str(status.get("errorType") or "")
    return str(status.get("errorMessage") or kind) if kind else ""


def cannot_start(host: BareMetalHost) -> bool:
    """Return whether BMO has found that an idle host cannot start, and only looks again later."""
    verb, status = start_of(host), _status(host)
    if verb not in HELD or not status.get("errorCount"):
        return False
    if status.get("errorType") == PROVISIONING:
        return verb is Verb.PROVISION and _has_given_up(host)
    return bool(status.get("errorType") == REGISTRATION)


def again_at(host: BareMetalHost) -> datetime | None:
    """Return when a host may try again that could not start; None: at once.

    BMO's own back-off is between the half of this and this, up to eight hours. The time is that
    of BMO's clock.
    """
    looked = looked_at(host)
    if looked is None or not cannot_start(host):
        return None
    minutes = timedelta(minutes=2.0 ** min(_count(_status(host)["errorCount"]), 10))
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
    status = _status(host)
    spec = host.get("spec")
    wanted = spec.get("image") if isinstance(spec, Mapping) else None
    return bool(status.get("provisioningFailCount")) and _plain(wanted) == _plain(
        status.get("lastAttemptedImage")
    )


def _plain(image: Any) -> Mapping[str, Any]:
    """Return an image without what BMO omits when it stores one."""
    return {name: one for name, one in image.items() if one} if isinstance(image, Mapping) else {}


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _stored_at(host: BareMetalHost) -> str | None:
    """Return what BMO says of when it has stored a status last; None: nothing."""
    found = _status(host).get("lastUpdated")
    return found if isinstance(found, str) and TIME.fullmatch(found) else None


def _status(host: BareMetalHost) -> Mapping[str, Any]:
    found = host.get("status")
    return found if isinstance(found, Mapping) else {}
