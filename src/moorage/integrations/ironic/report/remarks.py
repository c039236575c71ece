"""Remarks about nodes, for people: each is logged once, and only some at a time."""

import logging

from moorage.client.run.printing import printable

NAMED_MAX = 10
"""Nodes that the log names at once."""

KEPT_MAX = 100_000
"""Remarks in memory: beyond, they are forgotten, and logged again."""

NAME_LENGTH_MAX = 64
"""Characters of the name of a node in the log."""

log = logging.getLogger("moorage.ironic")


class Remarks:
    """The present remarks on nodes."""

    def __init__(self) -> None:
        self._all: dict[str, str] = {}
        self._new: dict[str, str] = {}

    def note(self, node: str, remark: str | None) -> None:
        """Replace the remark on a node; None: there is none any more."""
        node = printable(node[:NAME_LENGTH_MAX])
        if remark is None:
            self._all.pop(node, None)
            self._new.pop(node, None)
        elif self._all.get(node) != remark:
            if len(self._all) >= KEPT_MAX:
                self._all.clear()
            self._all[node] = self._new[node] = remark

    def say(self) -> None:
        """Log those that are new since the last call."""
        new, self._new = self._new, {}
        for node, remark in [*new.items()][:NAMED_MAX]:
            log.warning("node %s: %s", node, remark)
        if len(new) > NAMED_MAX:
            log.warning("there are remarks on %d more nodes", len(new) - NAMED_MAX)
