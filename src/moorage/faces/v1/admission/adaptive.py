"""Adaptive limits of pools: their settings, and the state of their tests."""

from datetime import datetime

from msgspec import structs

from moorage.core.admission.adaptive import rule
from moorage.core.admission.adaptive.sequential_test import leaning
from moorage.core.admission.adaptive.texts import step_text, test_text
from moorage.core.admission.model import (
    Pool,
)
from moorage.core.clock import SECOND, Instant
from moorage.core.pool_values import Adaptive, Step
from moorage.service.values import time_of
from moorage.wire import admission as wire


def settings_shown(settings: Adaptive | None) -> wire.Adaptive | None:
    """Convert settings to their wire form; None stays None."""
    return None if settings is None else wire.Adaptive(**structs.asdict(settings))


def test_shown(pool: Pool, at: Instant, back: int) -> wire.AdaptiveTest | None:
    """Return the state of a pool's test; None: it has none.

    Args:
        pool: any.
        at: now, in service time.
        back: microseconds from service time to the wall clock.
    """
    settings, state = pool.spec.adaptive, pool.adaptation
    if settings is None or state is None:
        return None
    return wire.AdaptiveTest(
        limit=rule.advised(pool) or 0,
        configured=state.configured,
        leaning=leaning(settings.good, settings.bad, *rule.totals(state)),
        **structs.asdict(state.counts),
        aside=state.aside,
        frozen_until=None if state.frozen_until <= at else _time(state.frozen_until, back),
        hold=rule.span_of(pool.spec, state) / SECOND,
        text=test_text(settings, state),
        last=None if state.last is None else _step_shown(state.last, back),
    )


def _time(at: Instant, back: int) -> datetime:
    return time_of(Instant(at + back))


def _step_shown(step: Step, back: int) -> wire.AdaptiveStep:
    return wire.AdaptiveStep(
        at=_time(step.at, back),
        verdict=step.verdict,
        before=step.before,
        after=step.after,
        acted=step.acted,
        **structs.asdict(step.counts),
        text=step_text(step),
    )
