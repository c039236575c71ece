"""Renders templates: escapes everything, and shows figures, times and ages alike on all pages.

Some names come from Placement, which allows any character: those that would act on a page, such as
marks that change the direction of text, are shown as U+FFFD.
"""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from moorage.core.ages import age_text
from moorage.core.counting import counted
from moorage.core.ledger.search.steps import Steps
from moorage.core.texts import plain
from moorage.faces.dashboard.static_files import address_of as asset_address
from moorage.wire.admission import DURATIONS, Lease, NeedWanted
from moorage.wire.labels import HOLDER, HOST, JOB, USER, name_of, naming_of
from moorage.wire.operations import operations_by_id

TEMPLATES = Path(__file__).parent / "templates"

FORM_TOKEN_PLACE = f"form-token-{token_hex(16)}"
"""Stands in rendered pages where the form token belongs, so that sessions can share them.

It is random, so that no text of a user can contain it.
"""

WHOLE = "layout.html"
FRAGMENT = "fragment.html"
ALONE = "alone.html"
"""The base of a page's template: a whole document, only the part for its stream, or a document
without navigation, for those who are not signed in.
"""

NOTHING = "-"
"""Stands for a value that is missing."""

PERCENT_MAX = 100.0

A_STEP = 32
"""Pieces of a template that are rendered at a time: together some tenths of a millisecond."""


class Templates:
    """All templates, compiled when the first page is asked for."""

    def __init__(self) -> None:
        self._environment = environment()
        self._compiled: asyncio.Future[None] | None = None

    async def compiled(self) -> None:
        """Return when all are compiled: in a thread, because it takes a quarter second."""
        if self._compiled is None:
            self._compiled = asyncio.ensure_future(asyncio.to_thread(self._compile))
        await asyncio.shield(self._compiled)

    def _compile(self) -> None:
        for name in self._environment.list_templates():
            self._environment.get_template(name)

    def get(self, name: str) -> Template:
        """Return a template."""
        return self._environment.get_template(name)


def environment() -> Environment:
    """Return the templates with the filters they use."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=_harmless,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "age": _age,
        "until": _until,
        "at": _at,
        "duration": lambda seconds: "-" if seconds is None else age_text(seconds),
        "precise": precise,
        "count": lambda number: f"{number:,}",
        "percent": percent,
        "holder": holder,
        "named": named,
        "clock": lambda at: at.astimezone(UTC).strftime("%H:%M"),
        "units": units,
        "plural": plural,
        "json": json_text,
        "difference": difference,
    }
    made.globals |= {
        "asset": asset_address,
        "form_token": FORM_TOKEN_PLACE,
        "operations": operations_by_id(),
    }
    return made


def rendered(template: Template, variables: Mapping[str, Any]) -> Steps[str]:
    """Render a template in steps, so that a long table does not delay other requests."""
    pieces: list[str] = []
    for piece in template.generate(variables):
        pieces.append(piece)
        if len(pieces) % A_STEP == 0:
            yield
    return "".join(pieces)


def _harmless(value: Any) -> Any:
    """Return what a page shows instead of a value; markup was made from such values."""
    return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def holder(lease: Lease) -> str:
    """Return who holds a lease or waits with a ticket, as reasons name them."""
    return named((lease.owner, lease.labels))


def named(holding: tuple[str, Mapping[str, str]]) -> str:
    """Return who holds something, of an owner and the labels of a lease."""
    owner, labels = holding
    return name_of(naming_of(owner, *(labels.get(name) for name in (HOLDER, JOB, USER, HOST))))


def units(lease: Lease, pool: str) -> int:
    """Return how many units of a pool a lease has, or a ticket wants at least."""
    if lease.any_of and lease.granted_at is None:
        return min(filter(None, (_units(needs, pool) for needs in lease.any_of)), default=0)
    return _units(lease.needs, pool)


def _units(needs: Iterable[NeedWanted], pool: str) -> int:
    return sum(need.units for need in needs if need.pool == pool)


def plural(count: int, noun: str) -> str:
    """Return a noun as it follows a count that the template shows by itself."""
    return counted(count, noun).partition(" ")[2]


def json_text(value: Any) -> str:
    """Return a value as JSON in one line."""
    return msgspec.json.encode(value).decode()


def difference(states: tuple[Any, Any]) -> str:
    """Return what an action has changed, in a few words: `limit: 40 → 2`, or the reason for it."""
    before, after = states
    if not isinstance(after, dict):
        return "details"
    if not isinstance(before, dict):
        reason = after.get("reason")
        return f"reason: {reason}" if reason else "details"
    changed = (_change(name, before.get(name), after[name]) for name in after)
    return "; ".join(filter(None, changed)) or "unchanged"


def _change(name: str, old: object, new: object) -> str:
    """Return how a member has changed; empty: not at all. Of lists and objects only that it has."""
    if any(isinstance(one, (list, dict)) for one in (old, new)):
        return name if old != new else ""
    was, now = _value(name, old), _value(name, new)
    if was == now:
        return ""
    return f"{name}: {now}" if was == NOTHING else f"{name}: {was} → {now}"


def _value(name: str, value: object) -> str:
    if name in DURATIONS and isinstance(value, (int, float)):
        return precise(value)
    return NOTHING if value in (None, "") else str(value)


def precise(seconds: float | None) -> str:
    """Return a duration as it was set, with fractions of a second."""
    if seconds is None:
        return "-"
    return age_text(seconds) if seconds == int(seconds) else f"{seconds:g}s"


def percent(part: float, whole: float) -> float:
    """Return a share for a bar: from 0 to 100, also if there is more than the whole, or no whole.

    A pool with a limit of 0 that still has leases is full.
    """
    if part <= 0:
        return 0.0
    return PERCENT_MAX if part >= whole else round(part * PERCENT_MAX / whole, 3)


@pass_context
def _age(context: Context, at: datetime | None) -> Markup:
    """Show how long ago a time was; the browser keeps it current and adds the local time."""
    return _time(at, context["now"], 1, "age")


@pass_context
def _until(context: Context, at: datetime | None) -> Markup:
    """Show how long it is until a time."""
    return _time(at, context["now"], -1, "until")


def _at(at: datetime | None) -> Markup:
    """Show a time as it is, in UTC; the browser shows the reader's own."""
    if at is None:
        return Markup("-")
    utc = at.astimezone(UTC).isoformat(timespec="seconds")
    return Markup(f'<time class="at" datetime="{utc}">{_utc_text(utc)}</time>')


def _utc_text(utc: str) -> str:
    return f"{utc[:10]} {utc[11:19]} UTC"


def _time(at: datetime | None, now: datetime, sign: int, kind: str) -> Markup:
    if at is None:
        return Markup("-")
    text = age_text(sign * (now - at).total_seconds())
    utc = at.astimezone(UTC).isoformat(timespec="seconds")
    # Large tables have hundreds of times: nothing in them needs to be escaped.
    return Markup(f'<time class="{kind}" datetime="{utc}" title="{_utc_text(utc)}">{text}</time>')
