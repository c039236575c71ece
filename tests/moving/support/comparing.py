"""Asks an original and Moorage the same, and compares what they answer."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from tests.moving.support.original import Asking

TIMED = "last-modified"


class Sides:
    """Both sides, with every difference until now."""

    def __init__(self, original: str, ours: str) -> None:
        self._original = Asking(original)
        self._ours = Asking(ours)
        self.asked = 0
        self.differences: list[str] = []
        self.failed: list[str] = []
        """What the original answers with 500 at the newest microversion."""

    def same(self, path: str, *, timed: bool = True, otherwise: str | None = None) -> None:
        """Ask both for a path; `timed`: their answers must also be of the same time.

        `otherwise` is an older microversion, for what the original fails to answer at the newest.
        """
        self.asked += 1
        theirs, ours = self._original("GET", path), self._ours("GET", path)
        if theirs[0] == 500 and otherwise is not None:
            self.failed.append(path)
            theirs = self._original("GET", path, version=otherwise)
            ours = self._ours("GET", path, version=otherwise)
        if (theirs[0], normal(theirs[1])) != (ours[0], normal(ours[1])):
            self.differences.append(f"GET {path}: {theirs}, not {ours}")
        elif timed and self._original.headers.get(TIMED) != self._ours.headers.get(TIMED):
            times = self._original.headers.get(TIMED), self._ours.headers.get(TIMED)
            self.differences.append(f"GET {path}: {TIMED} {times}")

    def all(
        self, providers: Iterable[str], consumers: Iterable[str], projects: Sequence[str]
    ) -> None:
        """Ask about everything that the API shows of these."""
        self.same("/resource_providers", timed=False)
        self.same("/resource_classes", timed=False)
        self.same("/traits", timed=False)
        self.same("/traits?name=startswith:CUSTOM_")
        for uuid in providers:
            at = f"/resource_providers/{uuid}"
            self.same(at)
            for part in ("inventories", "traits"):
                self.same(f"{at}/{part}", timed=part == "inventories")
            for part in ("aggregates", "usages", "allocations"):
                self.same(f"{at}/{part}", timed=False)
        for uuid in consumers:
            self.same(f"/allocations/{uuid}")
        for project in projects:
            self.same(f"/usages?project_id={project}", timed=False, otherwise="1.37")


def normal(answer: Any) -> Any:
    """Return an answer with all lists in one order: Placement promises none."""
    if isinstance(answer, dict):
        return {key: normal(value) for key, value in answer.items()}
    if isinstance(answer, list):
        return sorted(map(normal, answer), key=lambda one: json.dumps(one, sort_keys=True))
    return answer
