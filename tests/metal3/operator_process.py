"""An operator, run by the framework's own command in another environment.

It prints a line for each event that it sees of a host, annotates each host with its specification's
`description`, and posts an event then. Standard library and the framework only.
"""

import sys
from typing import Any

import kopf

SEEN = "test.moorage.dev/seen"


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    """Reconnect soon, and leave no marks in hosts."""
    settings.watching.server_timeout = 5
    settings.watching.reconnect_backoff = 0.1
    settings.networking.error_backoffs = [0.1] * 100
    settings.posting.level = 20
    settings.persistence.finalizer = "test.moorage.dev/never"


@kopf.on.event("metal3.io", "v1alpha1", "baremetalhosts")
def on_event(
    body: kopf.Body, patch: kopf.Patch, spec: kopf.Spec, name: str, event: Any, **_: Any
) -> None:
    """Print what is seen; annotate and post what is new."""
    described = str(spec.get("description", ""))
    sys.stdout.write(f"{event['type'] or 'LISTED'} {name} {described}\n")
    sys.stdout.flush()
    if event["type"] != "DELETED" and body.metadata.annotations.get(SEEN) != described:
        patch.metadata.annotations[SEEN] = described
        kopf.info(body, reason="Seen", message=f"seen {described}")
