"""Renders templates: escapes everything, and shows figures, times and ages alike on all pages."""

from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from moorage.core.counting import counted
from moorage.faces.dashboard.ages import age_text
from moorage.faces.dashboard.assets import address_of as asset_address
from moorage.wire.admission import Lease
from moorage.wire.labels import HOLDER, HOST, JOB, USER, name_of, naming_of

TEMPLATES = Path(__file__).parent / "templates"

FORM_TOKEN_PLACE = f"form-token-{token_hex(16)}"
"""Stands in rendered pages where the form token belongs, so that sessions can share them.

It is random, so that no text of a user can contain it.
"""

WHOLE = "layout.html"
FRAGMENT = "fragment.html"
"""What a page's template extends: a whole document, or only what its stream sends."""

PERCENT_MAX = 100.0


def environment() -> Environment:
    """Return the templates with the filters they use."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "age": _age,
        "until": _until,
        "duration": lambda seconds: "-" if seconds is None else age_text(seconds),
        "count": lambda number: f"{number:,}",
        "percent": percent,
        "holder": holder,
        "clock": lambda at: at.astimezone(UTC).strftime("%H:%M"),
        "units": units,
        "plural": plural,
        "json": json_text,
        "difference": difference,
    }
    made.globals |= {"asset": asset_address, "form_token": FORM_TOKEN_PLACE}
    return made


def holder(lease: Lease) -> str:
    """Return who holds a lease or waits with a ticket, as reasons name them."""
    labels = (lease.labels.get(name) for name in (HOLDER, JOB, USER, HOST))
    return name_of(naming_of(lease.owner, *labels))


def units(lease: Lease, pool: str) -> int:
    """Return how many units of a pool a lease has, or a ticket wants."""
    return sum(need.units for need in lease.needs if need.pool == pool)


def plural(count: int, noun: str) -> str:
    """Return a noun as it follows a count that the template shows by itself."""
    return counted(count, noun).partition(" ")[2]


def json_text(value: Any) -> str:
    """Return a value as JSON in one line."""
    return msgspec.json.encode(value).decode()


def difference(states: tuple[Any, Any]) -> str:
    """Return what an action has changed, in a few words."""
    before, after = states
    if isinstance(before, dict) and isinstance(after, dict):
        changed = [name for name in after if after[name] != before.get(name)]
        return f"changed: {', '.join(changed)}" if changed else "unchanged"
    return "details"


def percent(part: float, whole: float) -> float:
    """Return a share for a bar: from 0 to 100, also if there is more than the whole."""
    return 0.0 if whole <= 0 else round(min(PERCENT_MAX, max(0.0, part * PERCENT_MAX / whole)), 3)


@pass_context
def _age(context: Context, at: datetime | None) -> Markup:
    """Show how long ago a time was; the browser keeps it current and adds the local time."""
    return _time(at, context["now"], 1, "age")


@pass_context
def _until(context: Context, at: datetime | None) -> Markup:
    """Show how long it is until a time."""
    return _time(at, context["now"], -1, "until")


def _time(at: datetime | None, now: datetime, sign: int, kind: str) -> Markup:
    if at is None:
        return Markup("-")
    text = age_text(sign * (now - at).total_seconds())
    utc = at.astimezone(UTC)
    return Markup('<time class="{}" datetime="{}" title="{}">{}</time>').format(
        kind, utc.isoformat(timespec="seconds"), utc.strftime("%Y-%m-%d %H:%M:%S UTC"), escape(text)
    )
