"""Options that say since when take durations, dates and times, all in the same way."""

from datetime import UTC, datetime, timedelta

import click
import pytest

from moorage.cli.main import cli
from tests.cli.test_help import leaves
from tests.cli.test_running import command_named

NAMES = {"since", "older"}
"""Names of options that say so."""

FOUND = [
    pytest.param(parameter, id=f"{' '.join(words)} --{parameter.name}")
    for words in (*leaves(cli), ("audit",))
    for parameter in command_named(" ".join(words)).params
    if isinstance(parameter, click.Option) and parameter.name in NAMES
]
NEAR = 120
"""Seconds that the test may take."""

HOURS = 3_600.0


def texts() -> dict[str, float | None]:
    """Return texts with the seconds that they mean now; None: since midnight."""
    now = datetime.now(UTC).replace(microsecond=0)  # noqa: TID251 - as the commands do
    then = now - timedelta(hours=3)
    abroad = (then + timedelta(hours=5, minutes=30)).replace(tzinfo=None)
    return {
        "3h": 3 * HOURS,
        "90": 90.0,
        "1h30m": 1.5 * HOURS,
        then.isoformat(): 3 * HOURS,
        then.strftime("%Y-%m-%dT%H:%M:%SZ"): 3 * HOURS,
        then.strftime("%Y-%m-%d %H:%M:%S"): 3 * HOURS,
        f"{abroad.isoformat()}+05:30": 3 * HOURS,
        then.strftime("%H:%M"): 3 * HOURS,
        (now - timedelta(days=2)).strftime("%Y-%m-%d"): None,
    }


def converted(option: click.Option, text: str) -> float:
    """Return what an option makes of a text, in seconds."""
    found = option.type.convert(text, option, click.Context(click.Command("x")))
    return float(found)


@pytest.mark.parametrize("option", FOUND)
def test_what_they_take(option: click.Option) -> None:
    """Without a zone, times are in UTC; a date is its midnight."""
    for text, seconds in texts().items():
        found, expected = converted(option, text), seconds
        if expected is None:
            midnight = datetime.fromisoformat(text).replace(tzinfo=UTC)
            now = datetime.now(UTC)  # noqa: TID251 - as the commands do
            expected = (now - midnight).total_seconds()
        assert -1 < found - expected < NEAR, (text, found)


@pytest.mark.parametrize("option", FOUND)
@pytest.mark.parametrize("text", ["soon", "2999-01-01", "2026-13-01", "", "-5m", "24:30", "12:60"])
def test_what_they_refuse(option: click.Option, text: str) -> None:
    """The message names a valid form."""
    with pytest.raises(click.BadParameter) as refused:
        converted(option, text)
    assert "such as" in refused.value.message or "in the past" in refused.value.message


def test_there_are_such_options() -> None:
    """Otherwise the tests above would prove nothing."""
    assert len(FOUND) == 5
