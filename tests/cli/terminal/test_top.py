"""`moorage top` on the whole screen of a real terminal: keys, resizing, failures, signals."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.client.admission import Admission
from moorage.client.transport import Transport
from moorage.wire.admission import PoolWanted
from tests.cli.command import COMMAND, SECONDS
from tests.cli.pooled import Cli
from tests.cli.tables.answers import POOLS_SHOWN
from tests.cli.tables.double import answering
from tests.cli.terminal.screens import Watched, watched
from tests.e2e.support.server import serve

UP, DOWN, PAGE_UP, PAGE_DOWN, HOME, END = (
    "\x1b[A", "\x1b[B", "\x1b[5~", "\x1b[6~", "\x1b[H", "\x1b[F"
)  # fmt: skip
DRAWING, RESTORED = (True, False, False), (False, True, True)
"""Whether a command has the whole screen, a cursor is shown, and the terminal echoes lines."""

COUNT = len(POOLS_SHOWN)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Return the address of a server with 40 pools that always gives the same answers."""
    with answering() as address:
        yield address


@pytest.fixture
def top(url: str) -> Iterator[Watched]:
    """Return `moorage top` on 80x24."""
    with watched("top", "--every", "1", MOORAGE_URL=url, MOORAGE_TOKEN="night") as screen:
        screen.shows("1-19 of 40, busy")
        yield screen


def put(url: str, pool: str) -> None:
    """Create a pool on a server without authentication."""
    Admission(Transport(url, "admin")).pool_put(pool, PoolWanted(limit=1))


def names(screen: Watched) -> list[str]:
    """Return the pools that are shown."""
    known = {pool.name for pool in POOLS_SHOWN}
    return [words[0] for line in screen.lines if (words := line.split()) and words[0] in known]


def test_forty_pools_can_be_read_on_a_small_screen(top: Watched) -> None:
    """On 80x24 each pool has a line of its own with its complete name, and all can be reached."""
    busiest = max(POOLS_SHOWN, key=lambda pool: pool.waiting)
    assert names(top)[0] == busiest.name
    seen = set(names(top))
    assert len(seen) == 19
    top.type(PAGE_DOWN)
    top.shows("20-38 of 40")
    assert not seen & set(names(top))
    seen |= set(names(top))
    top.type(PAGE_DOWN)
    top.shows("22-40 of 40")
    assert seen | set(names(top)) == {pool.name for pool in POOLS_SHOWN}
    assert top.lines[2].split()[:3] == ["pool", "in", "use"]


def test_keys_scroll(top: Watched) -> None:
    """Arrows move by a line, others by a screen or to an end, and never beyond it."""
    for key, place in (
        (DOWN, "2-20"), (DOWN, "3-21"), (UP, "2-20"), (END, "22-40"), (UP, "21-39"),
        (PAGE_UP, "2-20"), (HOME, "1-19"), ("G", "22-40"), ("k", "21-39"), ("j", "22-40"),
        ("\x1bOA", "21-39"), ("\x1bOB", "22-40"), ("\x1b[1~", "1-19"), (" ", "20-38"),
        ("b", "1-19"),
    ):  # fmt: skip
        top.type(key)
        top.shows(f"{place} of 40")
    top.type(UP + PAGE_UP + END + DOWN + PAGE_DOWN)
    top.shows("22-40 of 40")


def test_orders(top: Watched) -> None:
    """The key goes through the orders: busy first, by name, full first."""
    top.type("s")
    top.shows("of 40, name")
    assert names(top) == sorted(names(top))
    top.type("s")
    top.shows("of 40, full")
    full = {pool.name for pool in POOLS_SHOWN if pool.occupied == pool.units}
    assert set(names(top)[: len(full)]) == full
    top.type("s")
    top.shows("of 40, busy")


def test_both_rooms_and_the_help(top: Watched) -> None:
    """Tab and digits change the room, each keeps its place; help is shown and hidden."""
    top.type(DOWN)
    top.shows("2-20 of 40")
    top.type("\t")
    top.shows("CUSTOM_HUGEPAGES_2MB")
    assert top.lines[0].startswith("moorage top: fleet ")
    assert "rack-2" in top.text and "conductor-3" in top.text
    top.type("1")
    top.shows("2-20 of 40")
    top.type("2")
    top.shows("CUSTOM_HUGEPAGES_2MB")
    top.type("?")
    top.shows("PgUp PgDn")
    top.type("?\t")
    top.shows("2-20 of 40")


def test_unknown_keys_do_nothing(top: Watched) -> None:
    """Neither sequences of unknown keys nor parts of them move or end anything."""
    top.type("xyz\x1b[15~\x1b[1;5C\x1bO")
    top.type("P\x1b")
    top.type("[B")
    top.shows("2-20 of 40")


def test_a_resize_is_followed(top: Watched) -> None:
    """A larger screen shows more, a smaller one less; no line is wider than the terminal."""
    top.size(50, 120)
    top.shows("all 40, busy")
    assert len(names(top)) == COUNT and "30s to 1m30s" in top.text
    top.size(10, 60)
    top.shows("1-4 of 40")
    top.size(3, 20)
    top.until(lambda: top.lines[0].startswith("moorage top: admiss"))
    top.size(24, 80)
    top.shows("1-19 of 40")


@pytest.mark.parametrize(
    ("end", "code"), [("q", 0), ("Q", 0), ("", 0), ("INT", 0), ("TERM", -signal.SIGTERM)]
)
def test_the_terminal_is_restored(top: Watched, end: str, code: int) -> None:
    """After a key, Ctrl-C and SIGTERM the shell has its screen, its cursor and its echo again."""
    assert (top.whole, top.cursor, top.is_cooked) == DRAWING
    if end in ("INT", "TERM"):
        top.process.send_signal(signal.Signals[f"SIG{end}"])
    else:
        top.type(end or "q")
    assert top.ends() == code
    assert (top.whole, top.cursor, top.is_cooked) == RESTORED
    assert top.before.strip() == b""


def test_the_terminal_is_restored_after_a_fault() -> None:
    """A fault of the program is shown on the shell's screen."""
    code = (
        "from moorage.cli.commands.top.screen import Screen\n"
        "with Screen() as screen:\n"
        "    screen.draw(['here', 'q quit'])\n"
        "    screen.keys(30)\n"
        "    raise LookupError('a fault')\n"
    )
    with watched(command=(sys.executable, "-c", code), lines=2) as screen:
        screen.shows("here")
        screen.type("x")
        assert screen.ends() == 1
        assert (screen.whole, screen.cursor, screen.is_cooked) == RESTORED
        assert b"LookupError: a fault" in screen.before


def test_it_ends_with_its_terminal(top: Watched) -> None:
    """Without a terminal to draw on it exits: it neither waits nor spins."""
    assert top.hangs_up() == 0


def test_it_can_be_stopped_and_continued(top: Watched) -> None:
    """Ctrl-Z gives the terminal back; after `fg` everything is drawn again, more than once."""
    top.type(DOWN)
    for _ in range(2):
        top.shows("2-20 of 40")
        top.process.send_signal(signal.SIGTSTP)
        top.stops()
        assert (top.whole, top.cursor, top.is_cooked) == RESTORED
        top.process.send_signal(signal.SIGCONT)
        top.until(lambda: top.whole and not top.is_cooked)
    top.shows("2-20 of 40")
    top.type(DOWN)
    top.shows("3-21 of 40")
    top.process.send_signal(signal.SIGTERM)
    assert top.ends() == -signal.SIGTERM


def test_a_lost_connection_is_shown_and_it_goes_on_trying(tmp_path: Path) -> None:
    """Without a server it says so and how old the last state is; when one is back, it shows it."""
    database = tmp_path / "moorage.sqlite"
    with serve(database, "--auth", "noauth2", "--no-access-log") as server:
        url = server.url
        where = {"MOORAGE_URL": url, "MOORAGE_TOKEN": "admin"}
        put(url, "outlived")
        with watched("top", "--every", "0.2", **where) as screen:
            screen.shows("outlived")
            server.stop()
            screen.shows("no answer from 127.0.0.1")
            screen.shows("trying again")
            screen.shows("4s old")
            assert "outlived" in screen.text
            screen.type("?")
            screen.shows("PgUp PgDn")
            again = ("--listen", url.removeprefix("http://"), "--auth", "noauth2")
            with serve(database, *again, "--no-access-log"):
                put(url, "later")
                screen.type("?")
                screen.shows("later")
                screen.until(lambda: "no answer" not in screen.text)
                screen.type("q")
                assert screen.ends() == 0


def test_keys_work_while_the_server_is_silent(tmp_path: Path) -> None:
    """A server that accepts and does not answer is remarked on; the last state can be scrolled."""
    with serve(tmp_path / "other.sqlite", "--auth", "noauth2", "--no-access-log") as server:
        for number in range(30):
            put(server.url, f"silent/{number:02}")
        where = {"MOORAGE_URL": server.url, "MOORAGE_TOKEN": "admin"}
        with watched("top", "--every", "0.1", **where) as screen:
            screen.shows("of 30, busy")
            server.process.send_signal(signal.SIGSTOP)
            try:
                screen.shows("still waiting")
                screen.type(END)
                screen.shows("-30 of 30")
                screen.type("q")
                assert screen.ends() == 0
            finally:
                server.process.send_signal(signal.SIGCONT)


def test_a_governor_sees_the_pools_but_not_the_fleet(tmp_path: Path) -> None:
    """A room that the token may not see says why; the other one is shown, without a revision."""
    with serve(tmp_path / "moorage.sqlite", "--no-access-log") as server:
        cli = Cli(tmp_path, server.url)
        cli.admission.pool_put("hosts/governed", PoolWanted(limit=1))
        wanted = {"name": "g", "role": "governor", "scope": {"pool": ["hosts/*"]}}
        made = cli.transport.request("POST", "/v1/tokens", wanted)
        where = {"MOORAGE_URL": server.url, "MOORAGE_TOKEN": made["token"]}
        with watched("top", "--every", "0.2", **where) as screen:
            screen.shows("governed")
            assert "revision" not in screen.text
            screen.type("\t")
            screen.shows("trying again")
            screen.type("1")
            screen.shows("governed")


@pytest.mark.parametrize("term", ["dumb", "xterm"])
def test_without_a_screen_it_prints_once(url: str, term: str) -> None:
    """To a pipe, and on a terminal that cannot be drawn on, it prints a plain table and exits."""
    where = {"MOORAGE_URL": url, "MOORAGE_TOKEN": "night", "TERM": term}
    if term == "dumb":
        with watched("top", **where) as screen:
            assert screen.ends() == 0
            assert not screen.whole
            assert len(screen.before.splitlines()) >= COUNT
        return
    done = subprocess.run(
        [*COMMAND, "top"],
        env={**os.environ, **where},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    title, *rows = done.stdout.splitlines()
    assert title.split("\t")[0] == "pool" and "\x1b" not in done.stdout
    assert [row.split("\t")[0] for row in rows] == [pool.name for pool in POOLS_SHOWN]
