"""Who uses how much: sums of allocations by project, user, consumer type or resource class."""

from __future__ import annotations

from moorage.wire.dataclass import dataclass
from moorage.wire.enums import UsageBy
from moorage.wire.pages import PageAsked


@dataclass(frozen=True, slots=True, kw_only=True)
class UsagesAsked(PageAsked):
    """Which sums: one line per project, per user in a project, per consumer type, or per class.

    The rest selects consumers: all the given values must fit. `type` "unknown" means those without
    one. `resource_class`: only those that hold something of it, and only what they hold of it.
    """

    by: UsageBy = "project"
    project: str | None = None
    user: str | None = None
    type: str | None = None
    resource_class: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageLine:
    """The sum of what some consumers hold, by resource class, and how many consumers these are.

    What a line is about is set, the rest is null: `project`; or `project` and `user`; or `type`,
    which is "unknown" for those without one; or `resource_class`.
    """

    project: str | None = None
    user: str | None = None
    type: str | None = None
    resource_class: str | None = None
    consumers: int
    resources: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsagePage:
    """A page of sums in the order of their names; `next` null: the last page.

    A page may have fewer lines than asked for, or none, although others follow. `as_of` is the
    cursor of the revision at which they were read, for `/v1/watch`.
    """

    lines: list[UsageLine]
    next: str | None
    as_of: str
