"""Lists have the same titles on a terminal and in a pipe; only ages stand there as times."""

import re
from collections.abc import Iterator, Sequence

import pytest

from moorage.cli.main import cli
from tests.cli.command import moorage
from tests.cli.tables.double import answering, on_terminal
from tests.cli.tables.goldens import COMMANDS
from tests.cli.test_help import leaves

AGES = {"age": {"asked", "created", "at", "since"}, "silent": {"heard"}}
"""Titles of ages, and those of the times that stand in a pipe instead."""

UNTITLED = ("group list", "group ghosts", "pool report", "simulate", "top", "whoami")
"""Commands that print names or sentences first, or are no list."""

WIDE = 400
"""Columns of a terminal that is wide enough for all."""

LISTS = {
    name: words
    for name, words in COMMANDS.items()
    if words[-1] != "--wide" and " ".join(words[:2]) not in UNTITLED and words[0] not in UNTITLED
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Return the address of a server that always gives the same answers."""
    with answering() as address:
        yield address


@pytest.fixture(scope="module")
def shown(url: str) -> dict[str, str]:
    """Return the first line of each list on a terminal."""
    return titles_shown(url)


def titles_shown(url: str, *more: str) -> dict[str, str]:
    """Return the first line of each list on a terminal. `more`: see `driver`."""
    lines = on_terminal(url, [(WIDE, words) for words in LISTS.values()], *more, NO_COLOR="1")
    return {name: text.splitlines()[0] for name, text in zip(LISTS, lines, strict=True)}


def differing(titles: str, piped: Sequence[str]) -> set[str]:
    """Return titles of a terminal that a pipe does not have."""
    there = {*piped}
    return {
        title
        for title in re.split(" {2,}", titles.strip())
        if title not in there and not AGES.get(title, set()) & there
    }


@pytest.mark.parametrize("name", LISTS)
def test_a_list_has_the_same_titles_in_a_pipe(url: str, shown: dict[str, str], name: str) -> None:
    """What a person reads above a column is what a script finds there."""
    done = moorage(*LISTS[name], MOORAGE_URL=url, MOORAGE_TOKEN="night")
    assert done.returncode == 0, done.stderr
    assert differing(shown[name], done.stdout.splitlines()[0].split("\t")) == set()


def test_another_title_is_noticed() -> None:
    """The control: an age without its time, and a word that only one of the two has."""
    assert differing("id  age  holder", ["id", "asked", "holder"]) == set()
    assert differing("id  age  holder", ["id", "holder"]) == {"age"}
    assert differing("id  owner", ["id", "holder"]) == {"owner"}


def test_every_list_is_compared() -> None:
    """A command whose last word is `list` is among them, or prints no titles."""
    lists = {words for words in leaves(cli) if words[-1] == "list"}
    compared = {tuple(words) for words in LISTS.values()}
    assert {" ".join(words) for words in lists - compared} == {"context list", "group list"}
