"""What a text finds: things of all kinds, by name, by the beginning of an id, by label or owner."""

from __future__ import annotations

from moorage.wire.dataclass import dataclass
from moorage.wire.enums import FoundKind


@dataclass(frozen=True, slots=True, kw_only=True)
class FindAsked:
    """What to look for, and how many of each kind to return, at most 100.

    `text` has 2 to 255 characters; upper and lower case are the same. An id is found by its first 8
    characters or more.
    """

    text: str = ""
    limit: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A thing that was found: its kind, its id or unique name, its name for people.

    `detail` says more about it in a few words.
    """

    kind: FoundKind
    id: str
    name: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Everything that was found, by kind, the best matches first.

    `more` are the kinds of which there may be more than `limit`.
    """

    found: list[Found]
    more: list[FoundKind]
