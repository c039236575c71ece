"""Resource classes and traits of the original: by id, and whether they are known here."""

from collections.abc import Iterable
from typing import Any

import os_resource_classes
import os_traits

from moorage.integrations.placement.oddities import Fate, Oddities
from moorage.integrations.placement.rows import encoded
from moorage.integrations.placement.values import is_custom, text_of, times_of
from moorage.wire.imports import NameRow

CLASSES = frozenset(os_resource_classes.STANDARDS)
TRAITS = frozenset(os_traits.get_traits())


class Names:
    """The names of one table. Those that are unknown here are odd only where they are used."""

    def __init__(
        self,
        rows: Iterable[tuple[Any, ...]],
        standard: frozenset[str],
        oddities: Oddities,
        unknown: str,
    ) -> None:
        """Read the rows; `unknown` is the code of an unknown name that is used."""
        self._oddities = oddities
        self._unknown = unknown
        self._named: dict[Any, str] = {}
        self._strange: dict[Any, str] = {}
        self.rows: dict[str, bytes] = {}
        """The custom names."""
        for key, value, created, updated in rows:
            name = text_of(value)
            if name is None or not (name in standard or is_custom(name)):
                self._strange[key] = repr(value)
                continue
            self._named[key] = name
            if name not in standard and name not in self.rows:
                at, changed = times_of(created, updated, key, oddities, f"name {name}")
                self.rows[name] = encoded(NameRow(name=name, created_at=at, updated_at=changed))
        self._used: set[Any] = set()

    def of(self, key: Any, what: str) -> str | None:
        """Return the name that a row uses; None: it is unknown, so the row is odd."""
        found = self._named.get(key)
        if found is None:
            self._used.add(key)
            self.note_unknown(f"{what}: {self._strange.get(key, f'id {key!r} without a record')}")
        return found

    def note_unknown(self, what: str) -> Fate:
        """Add that an unknown name is used."""
        return self._oddities.note(self._unknown, what)

    def end(self) -> None:
        """Add the unknown names that nothing has used."""
        for key in self._strange.keys() - self._used:
            self._oddities.note("name_unused", self._strange[key])
