"""The dataclasses of `wire` on Python 3.9, which knows neither slots nor keyword-only fields."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any, Callable

if sys.version_info >= (3, 10):
    from dataclasses import dataclass
else:

    def dataclass(*, frozen: bool, slots: bool, kw_only: bool) -> Callable[[type], type]:
        """Make a frozen dataclass whose fields are keyword-only; on Python 3.9 it has no slots."""

        def made(kind: type) -> type:
            # Fields without a default may follow others, which only the standard __init__ refuses.
            kind.__init__ = _init
            return dataclasses.dataclass(init=False, frozen=True)(kind)

        return made

    def _init(self: Any, **given: Any) -> None:
        """Set all fields. Raises TypeError: a field is missing or unknown."""
        for field in dataclasses.fields(self):
            if field.name in given:
                value = given.pop(field.name)
            elif field.default is not dataclasses.MISSING:
                value = field.default
            elif field.default_factory is not dataclasses.MISSING:
                value = field.default_factory()
            else:
                raise TypeError(f"{type(self).__name__} needs the argument {field.name}")
            object.__setattr__(self, field.name, value)
        if given:
            raise TypeError(f"{type(self).__name__} has no argument {min(given)}")


__all__ = ["dataclass"]
