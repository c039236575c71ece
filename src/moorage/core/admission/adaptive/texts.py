"""What an adaptive limit has decided and what it knows, for people."""

from moorage.core.admission.adaptive.rule import USE_PERCENT
from moorage.core.admission.adaptive.sequential_test import expected
from moorage.core.counting import counted
from moorage.core.pool_values import Adaptation, Adaptive, Counts, Step


def step_text(step: Step) -> str:
    """Return what was decided, on which evidence."""
    return f"{_what(step)}: {_why(step)}"


def test_text(settings: Adaptive, state: Adaptation) -> str:
    """Return what the present test has seen, and how many outcomes it usually needs."""
    good, bad = expected(settings.good, settings.bad)
    text = (
        f"{_counts(state.counts)} while at least {USE_PERCENT} % of the limit was in use;"
        f" usually {good} outcomes show that {100 * settings.good:.4g} % of the starts fail,"
        f" {bad} that {100 * settings.bad:.4g} % do"
    )
    return text + (
        f"; {counted(state.aside, 'other outcome')} did not count" if state.aside else ""
    )


def _what(step: Step) -> str:
    if step.after == step.before:
        end = "ceiling" if step.verdict == "good" else "floor"
        return f"the limit stays at its {end}, {step.after}"
    verb = ("raised", "raise") if step.after > step.before else ("cut", "cut")
    said = verb[0] if step.acted else f"would {verb[1]}"
    return f"{said} the limit from {step.before} to {step.after}"


def _why(step: Step) -> str:
    reasons = {
        "good": "few starts fail",
        "bad": "too many starts fail",
        "throttled": "starts are throttled",
    }
    return f"{reasons[step.verdict]}: {_counts(step.counts)}"


def _counts(counts: Counts) -> str:
    text = f"{counts.ok} ok, {counts.failed} failed, {counts.throttled} throttled"
    more = counts.correlated
    return f"{text} ({more} of the same cause within a minute)" if more else text
