"""Who asks in a time zone is answered in it, also across a change to summer time."""

import re
from datetime import UTC, date, datetime, timedelta
from uuid import uuid4

from tests.cli.pooled import Cli

BERLIN = ("--zone", "Europe/Berlin")

YEAR = datetime.now(UTC).year + 1  # noqa: TID251 - real servers refuse the past
WINTER = f"{YEAR}-12-01"
APRIL = date(YEAR, 4, 1)
CHANGE = APRIL - timedelta(days=APRIL.isoweekday())
"""The last Sunday in March: at 02:00 summer time begins."""


def pool(cli: Cli) -> str:
    """Create a pool of two units."""
    name = f"zoned-{uuid4().hex[:8]}"
    cli.lines("pool", "create", name, "--limit", "2")
    return name


def booked(cli: Cli, *words: str) -> tuple[str, str]:
    """Book; return the id, and the start that is printed."""
    (line,) = cli.lines("booking", "create", *words)
    found = re.fullmatch(r"booked (\S+): .* from (\S+)", line)
    assert found is not None, line
    return found[1], found[2]


def windows(cli: Cli, booking: str) -> list[str]:
    """Return the starts of its windows as `booking show` prints them."""
    rows = [line.split("\t") for line in cli.lines("booking", "show", booking)]
    return [value.split()[0] for name, value in rows if name.startswith("window ")]


def test_a_booking_is_printed_in_the_zone_that_was_asked_for(cli: Cli) -> None:
    """In UTC without a zone; what both mean is the same moment."""
    name = pool(cli)
    words = (name, "--for", "1h", "--start")
    _, start = booked(cli, *words, f"{WINTER}T09:00", *BERLIN)
    assert start == f"{WINTER}T09:00:00+01:00"
    _, start = booked(cli, *words, f"{WINTER}T08:00")
    assert start == f"{WINTER}T08:00:00+00:00"


def test_a_series_is_shown_by_the_clock_of_its_zone(cli: Cli) -> None:
    """It has the same hour each day, and the skipped hour is the one after it."""
    name = pool(cli)
    before, after = CHANGE - timedelta(days=1), CHANGE + timedelta(days=1)
    series = ("--every", "day", "--count", "3", "--start", f"{before}T02:30", *BERLIN)
    booking, _ = booked(cli, name, "--for", "1h", *series)
    assert windows(cli, booking) == [
        f"{before}T02:30:00+01:00",
        f"{CHANGE}T03:30:00+02:00",
        f"{after}T02:30:00+02:00",
    ]


def test_offers_are_printed_in_the_zone_that_was_asked_for(cli: Cli) -> None:
    """As the times that bound them were."""
    name = pool(cli)
    words = (name, "--for", "1h", "--after", f"{WINTER}T09:00", "--before", f"{WINTER}T12:00")
    assert cli.lines("offers", *words, *BERLIN)[1].split("\t")[:2] == [
        f"{WINTER}T09:00:00+01:00",
        f"{WINTER}T12:00:00+01:00",
    ]
    assert cli.lines("offers", *words)[1].startswith(f"{WINTER}T09:00:00+00:00")
