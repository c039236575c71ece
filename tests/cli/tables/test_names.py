"""Names for ids, in every command that takes an id: a new command needs a row here."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import uuid4

import click
import pytest
from click.testing import CliRunner

from moorage.cli.main import cli as program
from moorage.cli.support.irreversible import IRREVERSIBLE
from tests.cli.operators.test_ledger import host, use
from tests.cli.pooled import Cli
from tests.cli.tables.test_json import found
from tests.cli.test_help import leaves

METAVARS = {"ID", "[ID]", "PROVIDER", "[PROVIDER]", "OLD", "POOL", "NAME", "[NAME]..."}
"""What an argument that is an id, or the name of a thing, is called in the help."""

AGENT, PROVIDER, CONSUMER, LEASE, BOOKING, TOKEN, RESHAPE, POOL, AGENTS, REPORTERS = (
    *("agent", "provider", "consumer", "lease", "booking", "token", "reshape", "pool"),
    *("group of agents", "group of reporters"),
)

KINDS = {
    "agent create": "new",
    "agent decommission": AGENT,
    "agent drain": AGENT,
    "agent enroll": "new",
    "agent expunge": AGENT,
    "agent group confirm": AGENTS,
    "agent group delete": AGENTS,
    "agent group set": "new",
    "agent group show": AGENTS,
    "agent group wait": AGENTS,
    "agent resume": AGENT,
    "agent root": AGENT,
    "agent set-desired": AGENT,
    "agent show": AGENT,
    "booking change": BOOKING,
    "booking delete": BOOKING,
    "booking show": BOOKING,
    "consumer release": CONSUMER,
    "consumer show": CONSUMER,
    "group delete": REPORTERS,
    "group ghosts": REPORTERS,
    "group nodes": REPORTERS,
    "group pin": REPORTERS,
    "group pins": REPORTERS,
    "group show": REPORTERS,
    "lease accept": LEASE,
    "lease decline": LEASE,
    "lease extend": LEASE,
    "lease force": LEASE,
    "lease hold": LEASE,
    "lease move": LEASE,
    "lease offer": LEASE,
    "lease outcome": "client",
    "lease release": "client",
    "lease revoke": LEASE,
    "lease show": LEASE,
    "lease why": LEASE,
    "pool change": POOL,
    "pool create": "new",
    "pool delete": POOL,
    "pool export": POOL,
    "pool history": POOL,
    "pool pause": POOL,
    "pool report": POOL,
    "pool resume": POOL,
    "pool show": POOL,
    "pool slot add": POOL,
    "pool slot drain": POOL,
    "pool slot label": POOL,
    "pool slot remove": POOL,
    "pool slot resume": POOL,
    "pool slots": POOL,
    "pool template create": "new",
    "pool template delete": "template",
    "pool template show": "template",
    "provider delete": PROVIDER,
    "provider drain": PROVIDER,
    "provider set": PROVIDER,
    "provider show": PROVIDER,
    "provider tree": PROVIDER,
    "report status": REPORTERS,
    "reshape move-host": PROVIDER,
    "reshape show": RESHAPE,
    "reshape undo": RESHAPE,
    "reshape rename-class": "class",
    "token revoke": TOKEN,
    "token rotate": TOKEN,
}
"""What each command takes first; "new": what it makes, "client": a command of the single file,
"template": the whole name of a template."""

MORE = {
    "agent group wait": ["--for", "1h"],
    "agent root": ["33333333-0000-4000-8000-000000000003"],
    "agent set-desired": ["CUSTOM_A", "1"],
    "booking change": ["--note", "why"],
    "group pin": ["33333333-0000-4000-8000-000000000003", "--remove"],
    "lease extend": ["--to", "1h"],
    "lease hold": ["--keep-until", "1h"],
    "lease move": ["--first"],
    "lease offer": ["--to", "bank/bob"],
    "pool change": ["--limit", "7"],
    "pool slot add": ["one"],
    "pool slot drain": ["one"],
    "pool slot label": ["one"],
    "pool slot remove": ["one"],
    "pool slot resume": ["one"],
    "provider set": ["--ratio", "VCPU=1"],
    "reshape move-host": ["renamed"],
}
"""Arguments after the first one."""

TAKING = {name: kind for name, kind in KINDS.items() if kind in (
    *(AGENT, PROVIDER, CONSUMER, LEASE, BOOKING, TOKEN, RESHAPE, POOL, AGENTS, REPORTERS),
)}  # fmt: skip

READING = {
    "show",
    "why",
    "pins",
    "nodes",
    "ghosts",
    "status",
    "history",
    "report",
    "slots",
    "export",
}
"""Last words of commands that only print, so that the beginning of a name is enough for them."""


def argument(words: tuple[str, ...]) -> str | None:
    """Return what the first argument of a command is called; None: it takes no id."""
    command = found(words)
    for one in command.params:
        if isinstance(one, click.Argument):
            name = one.metavar or (one.name or "").upper()
            return name if name in METAVARS else None
    return None


def test_every_command_that_takes_an_id_has_a_row() -> None:
    """Otherwise nobody has decided whether it takes a name."""
    taking = {" ".join(words) for words in leaves(program) if argument(words) is not None}
    # Contexts are in a file of the caller.
    assert taking - {"context delete", "context use"} == {*KINDS}


@dataclass
class Things:
    """Two things of each kind: their ids begin alike, and so do the names of pools and groups."""

    ids: dict[str, list[str]] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)


@pytest.fixture(scope="module")
def things(cli: Cli) -> Iterator[Things]:
    """Make two of each kind."""
    made = Things()
    number = uuid4().hex[:8]
    providers = [f"{number}-0000-4000-8000-00000000000{n}" for n in (1, 2)]
    made.ids[PROVIDER], made.names[PROVIDER] = providers, [f"host-{one}" for one in providers]
    for one in providers:
        host(cli, one, f"host-{one}")
    made.ids[CONSUMER] = [f"{number}-0000-4000-8000-00000000001{n}" for n in (1, 2)]
    for one in made.ids[CONSUMER]:
        use(cli, providers[0], one)
    made.ids[AGENT] = [f"{number}-0000-4000-8000-00000000002{n}" for n in (1, 2)]
    made.names[AGENT] = [f"machine-{one}" for one in made.ids[AGENT]]
    for one in made.ids[AGENT]:
        cli.lines("agent", "create", one)
        body = {"boot_id": "b", "facts": {"hostname": f"machine-{one}"}, "parts": []}
        cli.transport.request("POST", f"/v1/agents/{one}/register", body)
    made.names[POOL] = [f"pool-{number}/{n}" for n in (1, 2)]
    for one in made.names[POOL]:
        cli.answer("pool", "create", one, "--native-slots")
    cli.lines("pool", "slot", "add", made.names[POOL][0], "one")
    made.names[AGENTS] = [f"agents-{number}/{n}" for n in (1, 2)]
    for one in made.names[AGENTS]:
        cli.lines("agent", "group", "set", one)
    made.names[REPORTERS] = [f"reporters-{number}-{n}" for n in (1, 2)]
    for one in made.names[REPORTERS]:
        seen = {"members": ["a"], "seen_at": "2026-01-01T00:00:00Z"}
        cli.transport.request("PUT", f"/v1/reporter-groups/{one}/observed", seen)
    made.names[LEASE] = [f"holder-{number}-{n} (admin)" for n in (1, 2)]
    made.ids[LEASE] = [
        cli.ask(made.names[POOL][0], labels={"holder": f"holder-{number}-{n}"}, patience=600.0)
        for n in (1, 2)
    ]
    made.ids[BOOKING] = [
        cli.answer(
            "booking", "create", made.names[POOL][0], "--start", one, "--for", "1h", "--force"
        )["id"]
        for one in ("2h", "4h")
    ]
    made.names[TOKEN] = [f"token-{number}-{n}" for n in (1, 2)]
    made.ids[TOKEN] = [
        cli.answer("token", "create", "--name", one, "--role", "reader")["id"]
        for one in made.names[TOKEN]
    ]
    made.ids[RESHAPE] = [
        cli.answer("provider", "set", one, "--ratio", "VCPU=2")["reshape"] for one in providers
    ]
    yield made


def common(ids: list[str]) -> str | None:
    """Return a beginning of at least 8 characters that ids share; None: there is none."""
    one, other = ids
    size = next((n for n in range(len(one)) if one[n] != other[n]), len(one))
    return one[:size].rstrip("-") if size >= 8 else None


def run(cli: Cli, name: str, text: str) -> tuple[int, str]:
    """Run a command for a thing; return its exit code, and what it says on standard error."""
    sure = ["--yes"] if name in IRREVERSIBLE or name in ("consumer release", "reshape undo") else []
    token = (cli.folder / "moorage.sqlite.token").read_text().strip()
    where = {"MOORAGE_URL": cli.transport.url, "MOORAGE_TOKEN": token}
    words = [*name.split(), text, *MORE.get(name, []), *sure]
    done = CliRunner().invoke(program, words, prog_name="moorage", env=where)
    return done.exit_code, done.stderr


@pytest.mark.parametrize("name", TAKING)
def test_nothing_that_is_not_there_is_found(cli: Cli, things: Things, name: str) -> None:
    """Neither by a name nor by an id, and the refusal says what there is none of."""
    missing = "ffffffff-0000-4000-8000-000000000000"
    kind = TAKING[name]
    words = ("nosuch",) if kind in (POOL, AGENTS, REPORTERS) else ("nosuch-thing", missing[:13])
    for text in words:
        code, said = run(cli, name, text)
        assert code == 7, said
        assert text in said


@pytest.mark.parametrize(
    "name", [one for one in TAKING if TAKING[one] not in (POOL, AGENTS, REPORTERS)]
)
def test_several_that_begin_so_are_named(cli: Cli, things: Things, name: str) -> None:
    """With 2; the same for all kinds."""
    ids = things.ids[TAKING[name]]
    text = common(ids)
    if text is None:
        pytest.skip("these two ids do not begin alike")
    code, said = run(cli, name, text)
    assert code == 2, said
    assert all(one in said for one in ids), said


@pytest.mark.parametrize(
    "name", [one for one in TAKING if TAKING[one] in (POOL, AGENTS, REPORTERS)]
)
def test_a_name_is_completed_only_to_print(cli: Cli, things: Things, name: str) -> None:
    """Where something is changed, the names that begin so are only listed."""
    one, other = things.names[TAKING[name]]
    code, said = run(cli, name, one[:-1])
    assert code == (2 if name.split()[-1] in READING else 7), said
    assert one in said and other in said


@pytest.mark.parametrize("name", sorted(TAKING, key=lambda one: (one in IRREVERSIBLE, one)))
def test_an_exact_name_is_found(cli: Cli, things: Things, name: str) -> None:
    """What happens then is another matter: it is not that there is none, or that several are."""
    kind = TAKING[name]
    if kind not in things.names:
        pytest.skip("these have no names")
    # Another command has rotated the first token: two have its name now.
    _, said = run(cli, name, things.names[kind][name == "token revoke"])
    assert not said.startswith((f"moorage: there is no {kind}", "moorage: several ")), said
