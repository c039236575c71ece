"""The events that a hook has given up, in a file beside its place, for people."""

import json
from pathlib import Path

from moorage.client.run.clock import instant
from moorage.client.run.private_file import write_private
from moorage.integrations.webhooks.hooks import Event, LeaseOf

KEPT_MAX = 1_000
"""Events in the file; the oldest are removed."""


class GivenUp:
    """The file of one hook: a JSON object a line, the newest last."""

    def __init__(self, folder: str, hook: str) -> None:
        self.path = str(Path(folder) / f"{hook}.given-up")

    def add(self, event: Event, lease: LeaseOf, why: str) -> None:
        """Add an event. Raises OSError.

        The file has nothing of the hook, which may have secrets, and no labels but those of the
        lease, which everybody sees who may read leases.
        """
        at = lease.granted_at if event == "granted" else lease.ended_at
        line = {
            "given_up_at": instant(),
            "event": event,
            "at": None if at is None else at.isoformat(),
            "lease": lease.id,
            "key": lease.key,
            "owner": lease.owner,
            "labels": lease.labels,
            "why": why,
        }
        kept = self._lines()[1 - KEPT_MAX :]
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
        write_private(self.path, "".join(f"{one}\n" for one in [*kept, text]))

    def _lines(self) -> list[str]:
        try:
            lines = Path(self.path).read_text("utf-8", "replace").split("\n")
        except FileNotFoundError:
            return []
        return [line for line in lines if line]
