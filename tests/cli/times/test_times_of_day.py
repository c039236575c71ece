"""Times of day: the last one for `--since 23:00`, the next one for `--until 4:30`."""

from datetime import UTC, datetime

import pytest
from click import BadParameter

from moorage.cli.support.durations import SinceType, UntilType
from moorage.wire.durations import time_or_seconds

NIGHT = datetime(2026, 3, 1, 3, 0, 7, tzinfo=UTC)
DAY_SECONDS = 86_400


@pytest.mark.parametrize(
    ("text", "last", "following"),
    [
        ("23:00", datetime(2026, 2, 28, 23, tzinfo=UTC), datetime(2026, 3, 1, 23, tzinfo=UTC)),
        ("2:59", datetime(2026, 3, 1, 2, 59, tzinfo=UTC), datetime(2026, 3, 2, 2, 59, tzinfo=UTC)),
        ("03:00", datetime(2026, 3, 1, 3, tzinfo=UTC), datetime(2026, 3, 2, 3, tzinfo=UTC)),
        ("03:01", datetime(2026, 2, 28, 3, 1, tzinfo=UTC), datetime(2026, 3, 1, 3, 1, tzinfo=UTC)),
    ],
)
def test_a_time_of_day_is_within_a_day(text: str, last: datetime, following: datetime) -> None:
    """Also across midnight and the end of a month."""
    assert time_or_seconds(text, NIGHT, ahead=False) == last
    assert time_or_seconds(text, NIGHT, ahead=True) == following


@pytest.mark.parametrize("ahead", [False, True])
def test_this_moment_is_the_last_one(ahead: bool) -> None:
    """The next one is a day away."""
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert time_or_seconds("12:00", noon, ahead=ahead) == noon.replace(day=2 if ahead else 1)


@pytest.mark.parametrize("text", ["", "24:00", "23:60", "23:0", "-1:00", " 23:00", "23:00Z"])
def test_other_texts_are_no_times_of_day(text: str) -> None:
    """They are refused; a number is a duration."""
    with pytest.raises(ValueError, match="nor a date or time such as 23:00"):
        time_or_seconds(text, NIGHT, ahead=True)
    assert time_or_seconds("23", NIGHT, ahead=True) == 23


def test_options_take_times_of_day() -> None:
    """Both options count from now, and together they are a day."""
    ago = SinceType().convert("23:00", None, None)
    left = UntilType().convert("23:00", None, None)
    assert 0 <= ago < DAY_SECONDS
    assert 0 < left <= DAY_SECONDS
    assert ago + left == pytest.approx(DAY_SECONDS, abs=60)


@pytest.mark.parametrize("kind", [SinceType, UntilType])
def test_options_refuse_what_is_no_time(kind: type[SinceType] | type[UntilType]) -> None:
    """The message names a time of day as one of the forms."""
    with pytest.raises(BadParameter, match="such as 23:00 or"):
        kind().convert("25:00", None, None)
