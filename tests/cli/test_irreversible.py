"""What cannot be undone asks on a terminal, and takes no beginning of an id."""

import os
from collections.abc import Callable
from functools import reduce
from uuid import uuid4

import click
import pytest

from moorage.cli.main import cli as program
from moorage.cli.support.irreversible import FINAL, IRREVERSIBLE
from tests.cli.command import moorage
from tests.cli.operators.test_ledger import host
from tests.cli.pooled import Cli, at_terminal, exit_code_of, read_until
from tests.cli.test_help import leaves

ENDS_SOMETHING = {"decommission", "delete", "expunge", "revoke", "remove"}
"""Words of commands that end something for good."""


def command(name: str) -> click.Command:
    """Return the command with this name."""

    def below(group: click.Command, word: str) -> click.Command:
        assert isinstance(group, click.Group)
        found = group.get_command(click.Context(group), word)
        assert found is not None, name
        return found

    return reduce(below, name.split(), program)


def test_every_such_command_is_in_the_table() -> None:
    """A new command with such a name must ask, too, and each of the table has the option."""
    named = {" ".join(words) for words in leaves(program) if words[-1] in ENDS_SOMETHING}
    # A context is in a file of the caller, who can sign in again.
    assert named - {"context delete"} == {*IRREVERSIBLE}
    assert {*IRREVERSIBLE} > FINAL
    for name in IRREVERSIBLE:
        assert "--yes" in {opt for one in command(name).params for opt in one.opts}, name


def booked(cli: Cli, pool: str) -> str:
    """Book a unit of a pool; return the id."""
    found = cli.answer("booking", "create", pool, "--start", "24h", "--end", "25h")
    return str(found["id"])


def made(cli: Cli) -> dict[str, Callable[[], list[str]]]:
    """Return what makes something for each command to end, and its arguments."""
    number = str(uuid4())

    def agent() -> list[str]:
        new = str(uuid4())
        cli.lines("agent", "create", new)
        return [new]

    def expunged() -> list[str]:
        (new,) = agent()
        cli.lines("agent", "expunge", new, "--yes")
        return [new]

    def pool() -> list[str]:
        cli.answer("pool", "create", f"pool-{number}", "--limit", "1")
        return [f"pool-{number}"]

    def group() -> list[str]:
        cli.lines("agent", "group", "set", f"group-{number}")
        return [f"group-{number}"]

    def reporters() -> list[str]:
        seen = {"members": ["a"], "seen_at": "2026-01-01T00:00:00Z"}
        path = f"/v1/reporter-groups/group-{number}/observed"
        cli.transport.request("PUT", path, seen)
        return [f"group-{number}"]

    def token() -> list[str]:
        return [cli.answer("token", "create", "--name", number, "--role", "reader")["id"]]

    def provider() -> list[str]:
        host(cli, number, f"host-{number}")
        return [number]

    def slot() -> list[str]:
        name = f"slots-{number}"
        cli.answer("pool", "create", name, "--native-slots")
        cli.lines("pool", "slot", "add", name, "one")
        return [name, "one"]

    def template() -> list[str]:
        name = f"template-{number}/*"
        cli.answer("pool", "template", "create", name, "--limit", "1")
        return [name]

    return {
        "agent decommission": expunged,
        "agent expunge": agent,
        "agent group delete": group,
        "booking delete": lambda: [booked(cli, *pool())],
        "group delete": reporters,
        "lease revoke": lambda: [cli.ask(*pool())],
        "pool delete": pool,
        "pool slot remove": slot,
        "pool template delete": template,
        "provider delete": provider,
        "token revoke": token,
    }


@pytest.mark.parametrize("name", IRREVERSIBLE)
def test_on_a_terminal(cli: Cli, name: str) -> None:
    """A no changes nothing, a yes does it."""
    words = [*name.split(), *made(cli)[name]()]
    for answer, code in ((b"n\n", 1), (b"y\n", 0)):
        with at_terminal(cli.folder, *words) as (process, terminal):
            read_until(terminal, b"[y/N]")
            os.write(terminal, answer)
            assert exit_code_of(process, terminal) == code, (name, answer)


@pytest.mark.parametrize(
    ("only", "asks"),
    [
        ((), b"End all tickets and leases of ci, whatever their holders do? [y/N]"),
        (("--state", "waiting"), b"End all tickets of ci? [y/N]"),
        (
            ("--state", "granted", "--pool", "p"),
            b"End all leases of ci that need units of p, whatever their holders do? [y/N]",
        ),
    ],
)
def test_the_question_is_about_what_ends(cli: Cli, only: tuple[str, ...], asks: bytes) -> None:
    """Who ends only tickets is not asked about leases, whose jobs run."""
    with at_terminal(cli.folder, "lease", "revoke", "--owner", "ci", *only) as (process, terminal):
        assert asks in read_until(terminal, b"[y/N]")
        os.write(terminal, b"n\n")
        assert exit_code_of(process, terminal) == 1


def test_the_question_names_the_holder(cli: Cli) -> None:
    """An id says nothing to people; who ends a ticket ends no job."""
    pool = f"pool-{uuid4()}"
    cli.answer("pool", "create", pool, "--limit", "1")
    lease, ticket = (cli.ask(pool, labels={"host": name}) for name in ("ci-7", "ci-8"))
    for one, name, rest in (
        (lease, b"ci-7", b", whatever its holder does"),
        (ticket, b"ci-8", b""),
    ):
        with at_terminal(cli.folder, "lease", "revoke", one) as (process, terminal):
            asked = b" ".join(read_until(terminal, b"[y/N]").split())
            assert f"End {one} of ".encode() + name in asked
            assert f"{pool}=1".encode() + rest + b"? [y/N]" in asked
            os.write(terminal, b"n\n")
            assert exit_code_of(process, terminal) == 1


@pytest.mark.parametrize("name", sorted(FINAL))
def test_elsewhere_what_is_final_wants_yes(cli: Cli, name: str) -> None:
    """A script cannot be asked: without the option nothing happens."""
    words = [*name.split(), *made(cli)[name]()]
    assert cli.refusal(2, *words).endswith("add --yes")
    done = moorage(*words, "--json", directory=cli.folder)
    assert (done.returncode, "add --yes" in done.stdout + done.stderr) == (2, True)
    assert words[-1] in " ".join(cli.lines(*words, "--yes", "--json"))


def named(cli: Cli, host: str) -> str:
    """Return the id of an agent that has registered with a host name."""
    agent = str(uuid4())
    cli.lines("agent", "create", agent)
    facts = {"hostname": host, "kernel": "6.1", "version": "1"}
    body = {"boot_id": str(uuid4()), "facts": facts, "parts": []}
    cli.transport.request("POST", f"/v1/agents/{agent}/register", body)
    return agent


def test_agents_by_name(cli: Cli) -> None:
    """The name of its host is enough in each command, and goes before the beginning of an id."""
    host = f"r05-{uuid4()}"
    agent = named(cli, host)
    assert cli.answer("agent", "show", host)["id"] == agent
    assert cli.lines("agent", "drain", host) == [f"agent {agent} is drained"]
    assert cli.lines("agent", "resume", host) == [f"agent {agent} is in service"]
    other = named(cli, agent[:8])
    assert cli.answer("agent", "show", agent[:8])["id"] == other
    said = cli.refusal(2, "agent", "expunge", agent[:13], "--yes")
    assert agent in said and host in said
    assert cli.lines("agent", "expunge", host, "--yes") == [
        f"agent {agent} is expunged permanently"
    ]
    missing = cli.refusal(7, "agent", "drain", "r05-none")
    assert missing == "there is no agent with the host name 'r05-none'"
