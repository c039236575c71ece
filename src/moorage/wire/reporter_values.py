"""The values of changes of reporters, see `changes.py`."""

from __future__ import annotations

from datetime import datetime

from moorage.wire.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReporterGroupValue:
    """A group of reporters, by its name.

    `pins_generation` rises with every change of its pins. `observed` are members that somebody else
    reports; `observer_error` is what the observer said was wrong.
    """

    name: str
    pins_generation: int
    observed: list[str]
    observer_error: str
    generation: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReporterValue:
    """A member of a group of reporters, by GROUP/MEMBER, without its token.

    To stay, or to fall silent, is not a change. `instance` is one start of the reporter,
    `joined_at` its time; `ttl` is in seconds.
    """

    group: str
    name: str
    instance: str
    ttl: float
    joined_at: datetime
    updated_at: datetime
