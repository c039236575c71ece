"""Every list at 60, 80, 120 and 200 columns, on a real terminal."""

from collections.abc import Iterator

import pytest

from moorage.cli.main import cli
from moorage.wire.pools.icalendar import calendar_of
from tests.cli.command import moorage
from tests.cli.tables.answers import BOOKINGS, LEASES
from tests.cli.tables.double import answering, on_terminal
from tests.cli.tables.driver import BROKEN
from tests.cli.tables.fleet_answers import AGENTS
from tests.cli.tables.goldens import COMMANDS, FOLDER, SCREENS, WIDTHS, drawn, printed
from tests.cli.test_help import leaves

ESCAPE = "\x1b"
SHOWING = (
    "list",
    "fleet",
    "show",
    "why",
    "report",
    "history",
    "top",
    "audit",
    "pins",
    "nodes",
    "ghosts",
    "status",
    "whoami",
    "slots",
    "tree",
    "usage",
)
"""Last words of commands that print lists, or all about one thing."""

ELSEWHERE = ("config show", "context list", "context show", "ironic report", "lease status")
"""Of these, the ones that ask no server for data: settings, a loop, files."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Return the address of a server that always gives the same answers."""
    with answering() as address:
        yield address


@pytest.fixture(scope="module")
def texts(url: str) -> dict[str, str]:
    """Return what all lists print."""
    return printed(url)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_list_prints_what_it_printed(texts: dict[str, str], name: str) -> None:
    """The text is the one that a person has read; `goldens` writes it again."""
    assert texts[name] == (FOLDER / f"{name}.txt").read_text()


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_shows_what_it_showed(url: str, name: str) -> None:
    """At every width the whole screen of `moorage top` is the one that a person has read."""
    assert drawn(url, SCREENS[name]) == (FOLDER / f"{name}.txt").read_text()


def test_a_broken_column_is_noticed(url: str) -> None:
    """The control: with two titles exchanged no width of that list is what it was; others are."""
    names = ("lease-list-ended", "pool-list")
    broken = printed(url, names, BROKEN)
    there, here = (
        (FOLDER / "lease-list-ended.txt").read_text().split("=== "),
        broken["lease-list-ended"].split("=== "),
    )
    assert len(there) == len(here) == len(WIDTHS) + 1
    assert all(one != other for one, other in zip(there[1:], here[1:], strict=True))
    assert broken["pool-list"] == (FOLDER / "pool-list.txt").read_text()


def test_every_list_has_a_golden_text() -> None:
    """So has every command that shows something; a new one is missing here until it has one."""
    lines = [*map(tuple, COMMANDS.values())]
    golden = {words for words in leaves(cli) if any(one[: len(words)] == words for one in lines)}
    shown = {words for words in leaves(cli) if words[-1] in SHOWING}
    assert {" ".join(words) for words in shown - golden} == {*ELSEWHERE}
    assert {file.stem for file in FOLDER.iterdir()} == {*COMMANDS, *SCREENS}


def test_bookings_are_printed_as_a_calendar_file(url: str) -> None:
    """It is the file of the API; the control is that no other form can be had at the same time."""
    where = {"MOORAGE_URL": url, "MOORAGE_TOKEN": "night"}
    done = moorage("booking", "list", "--ics", **where)
    assert (done.returncode, done.stderr) == (0, "")
    # A pipe that is read as text has other ends of lines.
    assert done.stdout.splitlines() == calendar_of(BOOKINGS).splitlines()
    assert done.stdout.count("BEGIN:VEVENT") == sum(len(one.windows) for one in BOOKINGS)
    assert moorage("booking", "list", "--ics", "--json", **where).returncode == 2


def test_titles_stand_again_below_a_long_list(url: str) -> None:
    """A person who sees the end of 500 leases on 24 lines sees what the columns mean."""
    long, short = on_terminal(url, [(80, COMMANDS["lease-list"]), (80, COMMANDS["token-list"])])
    title, *_, again, rest = long.splitlines()
    assert again == title
    assert plain(rest).startswith("not shown: ")
    assert short.count(short.splitlines()[0]) == 1


@pytest.mark.parametrize("columns", [30, 60, 80, 120, 200])
def test_a_row_is_one_line(url: str, columns: int) -> None:
    """500 leases are 500 lines, none wider than the terminal, in the order of the list."""
    (text,) = on_terminal(url, [(columns, ["lease", "list"])])
    lines = text.splitlines()
    assert max(len(plain(line)) for line in lines) <= columns
    ids = [plain(line).split()[0].rstrip("…") for line in lines[1 : len(LEASES) + 1]]
    for shown, lease in zip(ids, LEASES, strict=True):
        assert lease.id.startswith(shown)
    if columns >= 60:
        assert len({*ids}) == len(LEASES)


def plain(text: str) -> str:
    """Return a text without its colours."""
    parts = text.split(ESCAPE)
    return parts[0] + "".join(part.partition("m")[2] for part in parts[1:])


def test_colours_are_only_for_terminals_that_want_them(url: str) -> None:
    """With NO_COLOR, and on a dumb terminal, the text is the same without colours."""
    asked = [(80, ["lease", "list"]), (80, ["lease", "show", "none"])][:1]
    (coloured,) = on_terminal(url, asked)
    assert f"{ESCAPE}[32mgranted{ESCAPE}[0m" in coloured
    for quiet in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        (text,) = on_terminal(url, asked, **quiet)
        assert ESCAPE not in text
        assert text == plain(coloured)


def test_a_pipe_gets_every_column_and_complete_texts(url: str) -> None:
    """Elsewhere rows have all columns with complete ids and times, and no last line."""
    where = {"MOORAGE_URL": url, "MOORAGE_TOKEN": "night", "COLUMNS": "20"}
    done = moorage("lease", "list", **where)
    header, *rows = (line.split("\t") for line in done.stdout.splitlines())
    assert header[:8] == [
        "id", "holder", "state", "needs", "place", "asked", "ends", "reason"
    ]  # fmt: skip
    assert header[8:] == ["verb", "image"]
    assert [row[0] for row in rows] == [lease.id for lease in LEASES]
    assert rows[-1][5] == LEASES[-1].asked_at.isoformat(timespec="seconds")
    assert {len(row) for row in rows} == {10}
    assert ESCAPE not in done.stdout
    wide = moorage("agent", "list", "--wide", **where)
    assert wide.stdout == moorage("agent", "list", **where).stdout
    listed = {line.split("\t")[0] for line in wide.stdout.splitlines()[1:]}
    assert listed == {one.id for one in AGENTS}
