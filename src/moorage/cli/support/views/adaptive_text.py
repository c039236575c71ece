"""Adaptive limits as readable text: `20-100`, `act:20-100:bad=10%:throttled=5`."""

import re
from typing import Any

import click

from moorage.cli.support.durations import NONE
from moorage.wire.admission import Adaptive
from moorage.wire.enums import AdaptiveMode

_ADAPTIVE = re.compile(
    r"((?P<mode>advise|act):)?(?P<floor>\d{1,9})-(?P<ceiling>\d{1,9})"
    r"(:good=(?P<good>\d{1,2}(\.\d{1,9})?)%?)?(:bad=(?P<bad>\d{1,2}(\.\d{1,9})?)%?)?"
    r"(:throttled=(?P<throttled>\d{1,9}))?",
    re.ASCII,
)


def adaptive_parse(text: str) -> Adaptive | None:
    """Parse [MODE:]FLOOR-CEILING[:good=P%][:bad=P%][:throttled=N], or `none`. Raises ValueError."""
    if text == NONE:
        return None
    found = _ADAPTIVE.fullmatch(text)
    if found is None:
        raise ValueError(
            f"{text!r} is not an adaptive limit (for example 20-100, act:20-100:bad=10%, or none)"
        )
    given: dict[str, Any] = {
        name: float(found[name]) / 100 for name in ("good", "bad") if found[name]
    }
    if found["throttled"]:
        given["throttled"] = int(found["throttled"])
    mode: AdaptiveMode = "act" if found["mode"] == "act" else "advise"
    return Adaptive(floor=int(found["floor"]), ceiling=int(found["ceiling"]), mode=mode, **given)


def adaptive_text(adaptive: Adaptive | None) -> str:
    """Format an adaptive limit so that `adaptive_parse` can parse it."""
    if adaptive is None:
        return NONE
    usual = Adaptive(floor=adaptive.floor, ceiling=adaptive.ceiling)
    text = f"{adaptive.mode}:{adaptive.floor}-{adaptive.ceiling}"
    for name in ("good", "bad"):
        rate = getattr(adaptive, name)
        text += f":{name}={100 * rate:.12g}%" if rate != getattr(usual, name) else ""
    return text + (
        f":throttled={adaptive.throttled}" if adaptive.throttled != usual.throttled else ""
    )


class AdaptiveType(click.ParamType[Any]):
    """An option that is an adaptive limit."""

    name = "adaptive"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return an `Adaptive`, or `NONE`."""
        if not isinstance(value, str):
            return value
        try:
            return NONE if value == NONE else adaptive_parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
