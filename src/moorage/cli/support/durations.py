"""Durations, pacings and fair shares as readable text.

Durations: `90s`, `20m`. Pacings: `24s`, `24sx5`, `24sx5+3s`. Fair shares: `project`, `owner@6h`,
`label:team@6h,red=3,default=2`.
"""

import re
from datetime import UTC, datetime
from typing import Any

import click

from moorage.core.clock import SECOND
from moorage.wire.admission import FairShare, Pacing
from moorage.wire.durations import seconds_of, time_or_seconds

NONE = "none"
AUTO = "auto"
DEFAULT = "default"
"""The name of the weight of all others."""

UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))

_PACING = re.compile(r"(?P<interval>[^x+ ]+)( ?x(?P<burst>\d{1,9}))?( ?\+(?P<jitter>[^x+ ]+))?")


def duration_text(seconds: float | None) -> str:
    """Format a duration exactly, so that `seconds_of` can parse it: 0.4 is `0.4s`, 400 is `6m40s`.

    It is rounded to microseconds. None is `-`.
    """
    if seconds is None:
        return "-"
    rest, text = round(seconds * SECOND), ""
    for size, unit in UNITS:
        whole, rest = divmod(rest, size * SECOND)
        if whole:
            text += f"{whole:02d}{unit}" if text else f"{whole}{unit}"
    if text and not rest:
        return text
    whole, parts = divmod(rest, SECOND)
    part = f".{parts:06d}".rstrip("0") if parts else ""
    return f"{text}{whole:02d}{part}s" if text else f"{whole}{part}s"


def pacing_parse(text: str) -> Pacing | str | None:
    """Parse INTERVAL[xBURST][+JITTER], `auto` or `none`. Raises ValueError."""
    if text in (NONE, AUTO):
        return None if text == NONE else text
    try:
        found = _PACING.fullmatch(text)
        if found is None:
            raise ValueError
        return Pacing(
            interval=seconds_of(found["interval"]),
            burst=int(found["burst"] or 1),
            jitter=seconds_of(found["jitter"]) if found["jitter"] else 0.0,
        )
    except ValueError:
        message = f"{text!r} is not a pacing (for example 24s, 24sx5, 24sx5+3s, auto or none)"
        raise ValueError(message) from None


def pacing_text(pacing: Pacing | None) -> str:
    """Format a pacing so that `pacing_parse` can parse it."""
    if pacing is None:
        return NONE
    burst = f"x{pacing.burst}" if pacing.burst != 1 else ""
    jitter = f"+{duration_text(pacing.jitter)}" if pacing.jitter else ""
    return f"{duration_text(pacing.interval)}{burst}{jitter}"


def fair_share_parse(text: str) -> FairShare | None:
    """Parse BY[@HALF_LIFE][,NAME=WEIGHT]..., or `none`. Raises ValueError."""
    if text == NONE:
        return None
    first, *rest = text.split(",")
    by, at, half_life = first.partition("@")
    weights = dict(_weight(one) for one in rest)
    usual = FairShare(by=by)
    return FairShare(
        by=by,
        half_life=seconds_of(half_life) if at else usual.half_life,
        default=weights.pop(DEFAULT, usual.default),
        weights=weights,
    )


def _weight(text: str) -> tuple[str, int]:
    name, equals, weight = text.rpartition("=")
    if not equals or not weight.isdecimal():
        raise ValueError(f"{text!r} is not NAME=WEIGHT (for example project@6h,infra/*=3)")
    return name, int(weight)


def fair_share_text(share: FairShare | None) -> str:
    """Format a fair share so that `fair_share_parse` can parse it."""
    if share is None:
        return NONE
    weights = {**share.weights}
    if share.default != 1:
        weights[DEFAULT] = share.default
    named = "".join(f",{name}={weight}" for name, weight in weights.items())
    return f"{share.by}@{duration_text(share.half_life)}{named}"


class DurationType(click.ParamType[float]):
    """An option that is a duration; a bare number is seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the duration in seconds."""
        if isinstance(value, float):
            return value
        try:
            return seconds_of(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class UntilType(click.ParamType[float]):
    """An option that is a duration, or a date or time in the future; of no zone: in UTC.

    It becomes the seconds until then; `4:30` is the next 4:30.
    """

    name = "duration or time"
    _side, _ahead = "future", True

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return how many seconds it is away."""
        if isinstance(value, float):
            return value
        now = datetime.now(UTC)  # noqa: TID251 - the user's own clock is meant
        try:
            found = time_or_seconds(value, now, ahead=self._ahead)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if isinstance(found, float):
            return found
        away = (found - now if self._ahead else now - found).total_seconds()
        if away <= 0:
            self.fail(
                f"{value} is not in the {self._side} (without a zone it is in UTC)", param, ctx
            )
        return away


class SinceType(UntilType):
    """The same of the past: it becomes the seconds since then; `4:30` is the last 4:30."""

    _side, _ahead = "past", False


class NoneOr(click.ParamType[Any]):
    """An option of another type, or the word `none`, which becomes `NONE`."""

    def __init__(self, inner: click.ParamType[Any]) -> None:
        self._inner = inner
        self.name = inner.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return `NONE` or the value of the other type."""
        return value if value == NONE else self._inner.convert(value, param, ctx)


class PacingType(click.ParamType[Any]):
    """An option that is a pacing."""

    name = "pacing"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a `Pacing`, `AUTO` or `NONE`."""
        if not isinstance(value, str):
            return value
        try:
            return NONE if value == NONE else pacing_parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class FairShareType(click.ParamType[Any]):
    """An option that is a fair share."""

    name = "fair share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a `FairShare` or `NONE`."""
        if not isinstance(value, str):
            return value
        try:
            return fair_share_parse(value) or NONE
        except ValueError as error:
            self.fail(str(error), param, ctx)
