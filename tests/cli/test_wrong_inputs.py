"""Mistakes at the command line: one line says what to change, with the documented exit code.

With `--json` it is an object, with the same exit code.
"""

import json
import os
import re
import subprocess

import pytest
from click.testing import CliRunner

from moorage.cli.main import cli as command
from moorage.wire.admission import PoolWanted
from tests.cli.command import COMMAND, SECONDS
from tests.cli.pooled import Cli

NOBODY = "00000000-0000-4000-8000-000000000000"
DEAD = {"MOORAGE_URL": "http://127.0.0.1:1", "MOORAGE_TOKEN": "x"}

MISTAKES = [
    ("lease show ''", 2, "ID is empty: is a variable not set?"),
    ("pool show ''", 2, "NAME is empty: is a variable not set?"),
    ("db backup ''", 2, "FILE is empty: is a variable not set?"),
    ("lease show 0123", 2, "too short: write at least 8 characters"),
    ("lease show a/b", 7, "there is no lease with the owner or holder 'a/b'"),
    (f"lease revoke {NOBODY}", 7, "There is no lease"),
    ("lease why no/such", 7, "there is no lease and no ticket of 'no/such'"),
    ("agent show x/y", 7, "there is no agent with the host name 'x/y'"),
    ("agent drain 00000000", 7, "'00000000', and none whose id begins with it"),
    ("token revoke a/b", 7, "there is no token with the name 'a/b'"),
    ("pool show nope", 7, "There is no pool 'nope'."),
    ("pool show p:pause", 1, "a name or an id in the address is not valid"),
    ("pool create q", 2, "a pool needs a limit: set one, for example --limit 50"),
    ("pool create q --limit -1", 2, "'--limit': -1 is not at least 0; see 'moorage pool create"),
    ("pool create q --limit x", 2, "'x' is not a valid integer; see"),
    ("pool create q --limit 1 --hold 5parsecs", 2, "for example 90s, 20m or 1h30m"),
    ("pool create q --limit 1 --hold 0", 2, "hold must be above 0 and at most 31622400 s."),
    ("pool create q --limit 1 --ttl nan", 2, "'nan' is not a duration"),
    ("pool create q --limit 1 --pacing fast", 2, "'fast' is not a pacing (for example 24s, "),
    ("pool create wrong --limit 1", 4, "There is already a pool 'wrong'."),
    ("pool history wrong --since -1h", 2, "'-1h' is not a duration"),
    ("pool history wrong --points 5000", 2, "5000 is not 1 to 1000; see"),
    ("pool history nope", 7, "There is no pool 'nope'."),
    ("audit --since never", 2, "'never' is not a duration"),
    ("agent list --silent --liveness lost", 2, "use either --silent"),
    ("apply -f missing.toml", 2, "cannot read missing.toml: No such file or directory"),
    ("apply -f moorage.sqlite", 2, "cannot read moorage.sqlite: it is not UTF-8 text"),
    ("simulate --trace moorage.sqlite --limit 1", 2, "moorage.sqlite: it is not UTF-8 text"),
    ("pool lst", 2, "No such command 'lst'. Did you mean 'list'? See 'moorage pool --help'"),
    ("poool", 2, "Did you mean 'pool'? See 'moorage --help'"),
    ("lease list --stat granted", 2, "No such option '--stat'."),
    ("lease list --state grantd", 2, "not one of 'waiting', 'granted', 'ended'; see"),
]


def asked(*words: str, **environment: str) -> tuple[int, str, str]:
    """Run a command in this process; return its exit code, its output and its errors."""
    nothing = {name: None for name in os.environ if name.startswith("MOORAGE_")}
    done = CliRunner().invoke(command, words, prog_name="moorage", env={**nothing, **environment})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def check(words: list[str], code: int, message: str, **environment: str) -> None:
    """Check that a command fails with this code and message, as a line and as JSON."""
    found, output, errors = asked(*words, **environment)
    assert (found, output) == (code, ""), errors
    assert errors.startswith("moorage: ") and errors.count("\n") == 1
    assert message in errors
    found, output, errors = asked(*words, "--json", **environment)
    assert (found, output) == (code, "")
    error = json.loads(errors)["error"]
    assert error["exit_code"] == code
    # Only for people, it ends with where the help is.
    assert re.split("; see| See", message)[0] in error["message"]


@pytest.fixture(scope="module", autouse=True)
def pool(cli: Cli) -> None:
    """Create a pool."""
    cli.admission.pool_put("wrong", PoolWanted(limit=1))


@pytest.mark.parametrize(("line", "code", "message"), MISTAKES, ids=[one[0] for one in MISTAKES])
def test_a_mistake_is_named(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, line: str, code: int, message: str
) -> None:
    """One line, and as JSON an object, with the exit code that is documented."""
    monkeypatch.chdir(cli.folder)
    check(["" if word == "''" else word for word in line.split()], code, message)


def test_what_is_right_is_not_refused(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of `check`: it does not pass for a command that succeeds."""
    monkeypatch.chdir(cli.folder)
    with pytest.raises(AssertionError):
        check(["pool", "show", "wrong"], 2, "")


@pytest.mark.parametrize("line", ["pool list", "top --once", "fleet", "audit", "agent list"])
def test_a_dead_server(line: str) -> None:
    """Its address and the reason are named, without a number of the system."""
    check(line.split(), 5, "no answer from 127.0.0.1:1: Connection refused", **DEAD)


def test_wrong_tokens(cli: Cli) -> None:
    """A token that is not valid, and one whose role is too low."""
    where = {"MOORAGE_URL": cli.transport.url}
    hint = "does not accept this token; set one with --token-file or MOORAGE_TOKEN"
    check(["pool", "list"], 6, hint, **where, MOORAGE_TOKEN="wrong")
    made = cli.transport.request("POST", "/v1/tokens", {"name": "low", "role": "reader"})
    where["MOORAGE_TOKEN"] = made["token"]
    check(["pool", "pause", "wrong"], 6, "This needs the role 'operator'", **where)


def shell(cli: Cli, rest: str) -> subprocess.CompletedProcess[str]:
    """Run `pool list` with what a shell does to its output."""
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", f'"$@" pool list {rest}', "bash", *COMMAND],
        cwd=cli.folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        (">/dev/full", "cannot write the output: No space left on device"),
        (">&-", "standard output is closed"),
    ],
)
def test_output_that_cannot_be_written(cli: Cli, rest: str, why: str) -> None:
    """One line says why."""
    done = shell(cli, rest)
    assert (done.returncode, done.stderr) == (1, f"moorage: {why}\n")


def test_a_reader_that_has_had_enough(cli: Cli) -> None:
    """It is no error to speak of."""
    assert shell(cli, "| true").stderr == ""
