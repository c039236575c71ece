"""Every list at 60, 80, 120 and 200 columns, on a real terminal."""

from collections.abc import Iterator

import pytest

from tests.cli.command import moorage
from tests.cli.tables.answers import AGENTS, LEASES
from tests.cli.tables.double import answering, on_terminal
from tests.cli.tables.goldens import COMMANDS, FOLDER, printed

ESCAPE = "\x1b"


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
        "id", "owner", "state", "needs", "position", "asked", "until", "remark"
    ]  # fmt: skip
    assert header[8:] == ["verb", "image"]
    assert [row[0] for row in rows] == [lease.id for lease in LEASES]
    assert rows[-1][5] == LEASES[-1].asked_at.isoformat(timespec="seconds")
    assert {len(row) for row in rows} == {10}
    assert ESCAPE not in done.stdout
    wide = moorage("agent", "list", "--wide", **where)
    assert wide.stdout == moorage("agent", "list", **where).stdout
    assert [line.split("\t")[0] for line in wide.stdout.splitlines()[1:]] == [
        one.id for one in AGENTS
    ]
