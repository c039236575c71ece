"""The beginning of an id is enough on the command line, if only one id begins so."""

from uuid import uuid4

import pytest

from moorage.core.ids import PREFIX_LENGTH_MIN
from moorage.wire.pages import PageAsked
from tests.cli.command import moorage
from tests.cli.pooled import Cli

CUT = 23
"""Characters of a lease's id that no other lease of these tests has."""


@pytest.fixture
def leases(cli: Cli) -> tuple[str, str]:
    """Return the ids of a lease and of the ticket behind it."""
    pool = f"ids-{uuid4()}"
    cli.answer("pool", "create", pool, "--limit", "1")
    return cli.ask(pool), cli.ask(pool, labels={"job": "17"}, patience=600.0)


def test_a_lease_is_found_by_the_beginning_of_its_id(cli: Cli, leases: tuple[str, str]) -> None:
    """In every command that takes an id, live ones first; the whole id works as before."""
    held, ticket = leases
    for text in (held[:CUT], held[:CUT].upper(), held):
        assert cli.answer("lease", "show", text)["id"] == held
        assert cli.answer("lease", "why", text)[0]["id"] == held
    assert cli.lines("lease", "move", ticket[:CUT], "--first")[0].startswith(f"moved {ticket}: ")
    assert held in cli.refusal(2, "lease", "revoke", held[:CUT])
    assert cli.answer("lease", "show", held)["state"] == "granted"
    assert cli.lines("lease", "revoke", held) == [f"{held} has ended: revoked"]
    assert cli.answer("lease", "show", held[:CUT])["cause"] == "revoked"
    # Nobody has asked for the ticket for a while, so it may be passed over.
    assert cli.answer("lease", "show", ticket[:CUT])["state"] in ("granted", "waiting")
    assert cli.lines("lease", "release", ticket[:CUT]) == [f"{ticket} has ended: released"]


def test_several_that_begin_so_are_named(cli: Cli, leases: tuple[str, str]) -> None:
    """The command ends with 2 and changes nothing; more characters help."""
    held, ticket = leases
    common = next(held[:size] for size in range(35, 7, -1) if held[:size] == ticket[:size])
    for words in (("show",), ("revoke",), ("why",), ("release",), ("force",)):
        said = cli.refusal(2, "lease", *words, common)
        assert said.startswith(f"several ids begin with '{common}': ")
        assert said.endswith("; write more characters")
    assert cli.answer("lease", "show", held)["state"] == "granted"


def test_an_ended_lease_does_not_hide_a_live_one(cli: Cli) -> None:
    """Of ids that begin so only live ones count, as long as there is one; then ended ones do.

    A command that changes a lease counts both: the one that is meant may just have ended.
    """
    cli.answer("pool", "create", "one-live", "--limit", "99")
    for _ in range(20):  # on a busy machine, leases of other tests may begin so as well
        ids = [cli.ask("one-live") for _ in range(2)]
        size = next(n for n in range(36) if ids[0][: n + 1] != ids[1][: n + 1])
        cli.lines("lease", "revoke", ids[1])
        live = {
            one["id"] for one in cli.answer("lease", "list") if one["id"][:size] == ids[0][:size]
        }
        if live == {ids[0]}:
            break
    assert live == {ids[0]}
    assert cli.answer("lease", "show", ids[0][:size])["id"] == ids[0]
    for words in (("revoke",), ("release",), ("force",), ("move", "--first")):
        said = cli.refusal(2, "lease", *words, ids[0][:size])
        assert f"{ids[0]} (" in said or f"{ids[0]}, " in said
        assert f"{ids[1]} (" in said
        assert "ended)" in said
    assert cli.lines("lease", "release", ids[0]) == [f"{ids[0]} has ended: released"]


def test_many_ended_leases_do_not_hide_a_live_one(cli: Cli) -> None:
    """Two live leases begin alike, with more ended ones in between than a page has: none of the two
    is released.
    """
    cli.answer("pool", "create", "many-ended", "--limit", "9")
    first = last = ""
    while not first or first[:PREFIX_LENGTH_MIN] != last[:PREFIX_LENGTH_MIN]:
        first = cli.ask("many-ended")
        for _ in range(PageAsked().limit):
            cli.transport.request("DELETE", f"/v1/leases/{cli.ask('many-ended')}")
        last = cli.ask("many-ended")
    for words in (("release",), ("revoke",)):
        said = cli.refusal(2, "lease", *words, first[:PREFIX_LENGTH_MIN])
        assert said.startswith("several ids begin with ")
    assert {cli.answer("lease", "show", one)["state"] for one in (first, last)} == {"granted"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("00000000", "there is no lease with the owner or holder '00000000', and none whose id"),
        ("00000000-0000-0000-0000-000000000000", "There is no lease '00000000-0000-0000-"),
        ("0123456", "'0123456' is too short: write at least 8 characters of the id\n"),
        ("node-7", "there is no lease with the owner or holder 'node-7'\n"),
    ],
)
def test_what_no_lease_begins_with(cli: Cli, text: str, said: str) -> None:
    """Too few characters are no beginning: the server says what an id is."""
    shown = moorage("lease", "show", text, directory=cli.folder)
    assert shown.returncode in (2, 7)
    assert shown.stderr.startswith(f"moorage: {said}")


def test_an_agent_and_a_token(cli: Cli) -> None:
    """Their ids can be cut in the same way."""
    agent = str(uuid4())
    cli.lines("agent", "create", agent)
    assert cli.answer("agent", "show", agent[:8])["id"] == agent
    assert cli.answer("agent", "show", agent.upper())["id"] == agent
    assert cli.lines("agent", "drain", agent[:18]) == [f"agent {agent} is drained"]
    assert "no agent" in cli.refusal(7, "agent", "show", "00000000")
    made = cli.answer("token", "create", "--name", "cut", "--role", "reader")
    assert made["id"] in cli.refusal(2, "token", "revoke", made["id"][:8])
    cli.lines("token", "revoke", made["id"])
    (shown,) = (one for one in cli.answer("token", "list") if one["id"] == made["id"])
    assert shown["revoked_at"] is not None


@pytest.mark.parametrize(
    "words",
    [
        *[("lease", word) for word in ("show", "why", "revoke", "force")],
        ("agent", "show"),
        ("token", "revoke"),
    ],
)
def test_an_empty_id_is_named(cli: Cli, words: tuple[str, ...]) -> None:
    """A variable that is not set is not taken for a wrong server."""
    assert cli.refusal(2, *words, "").endswith(" is empty: is a variable not set?")
