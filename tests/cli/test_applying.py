"""`moorage apply` shows the changes of a file, checks all of them, then applies them."""

import os

import pytest

from moorage.wire.admission import PoolWanted
from tests.cli.command import moorage
from tests.cli.pooled import Cli, at_terminal, exit_code_of, read_until

FILE = """
[pools."applied/one"]
limit = 10
hold = "60s"

[pools."applied/two"]
limit = 2
"""


def test_apply(cli: Cli) -> None:
    """The changes are shown before they are applied, and applying a file twice changes nothing."""
    file = cli.folder / "pools.toml"
    file.write_text(FILE)
    apply = ["apply", "-f", str(file)]
    first = ["+ applied/one", "    limit: 10", "    hold: 1m", "    pacing: 6s"]
    second = ["+ applied/two", "    limit: 2"]
    output = [*first, *second, "2 to create, 0 to change, 0 unchanged"]
    unasked = moorage(*apply, directory=cli.folder)
    assert (unasked.returncode, unasked.stdout.splitlines()) == (2, output)
    assert "--yes" in unasked.stderr
    assert cli.lines(*apply, "--dry-run") == output
    assert "applied/one" in cli.refusal(7, "pool", "show", "applied/one")
    assert cli.lines(*apply, "--yes") == [*output, "created applied/one", "created applied/two"]
    kept = ["= applied/one", "= applied/two", "0 to create, 0 to change, 2 unchanged"]
    assert cli.lines(*apply, "--yes") == kept
    assert cli.lines(*apply) == kept, "no confirmation is needed if nothing changes"
    file.write_text(FILE.replace("limit = 10", "limit = 20"))
    change = cli.answer(*apply, "--dry-run")
    assert change["applied"] is False
    assert change["pools"][0]["changes"]["limit"] == {"before": 10, "after": 20}
    assert cli.answer(*apply, "--yes")["applied"] is True
    assert cli.answer("pool", "show", "applied/one")["pacing"]["interval"] == 3
    file.write_text("pools = 1")
    assert "pools.toml" in cli.refusal(2, *apply, "--yes")
    assert "none.toml" in cli.refusal(2, "apply", "-f", "none.toml", "--yes")


ADAPTIVE = """
[pools."adaptive/one"]
limit = 10
adaptive = "act:5-20:bad=10%"

[templates."adaptive/any-*"]
limit = 3
adaptive = {floor = 1, ceiling = 9}
"""


def test_adaptive_limits_in_a_file(cli: Cli) -> None:
    """Those of pools and of templates are applied once; a changed one is shown as options are."""
    file = cli.folder / "adaptive.toml"
    file.write_text(ADAPTIVE)
    apply = ["apply", "-f", str(file)]
    output = cli.lines(*apply, "--yes")
    assert "    adaptive: act:5-20:bad=10%" in output
    assert "    adaptive: advise:1-9" in output
    kept = ["= adaptive/one", "= adaptive/any-*", "0 to create, 0 to change, 2 unchanged"]
    assert cli.lines(*apply, "--yes") == kept
    shown = dict(
        line.split(maxsplit=1) for line in cli.lines("pool", "template", "show", "adaptive/any-*")
    )
    assert shown["adaptive"] == "advise:1-9"
    file.write_text(ADAPTIVE.replace("ceiling = 9", "ceiling = 6").replace("5-20", "5-30"))
    changed = cli.lines(*apply, "--dry-run")
    assert "    adaptive: advise:1-9 -> advise:1-6" in changed
    assert "    adaptive: act:5-20:bad=10% -> act:5-30:bad=10%" in changed


WRONG = {
    "[pools.a]\nlimit = 1\n[pools.b]\nlimit = -5": "pool b: limit must be from 0 to",
    "[pools.a]\nlimit = 1\n[pools.b]": "Pool 'b' has no slots, so it needs a limit",
    "[pools.a]\nlimit = 1\nqueue_max = 0": "pool a: queue_max must be from 1 to",
    "[pools.a]\nlimit = 1\n[pools.A]\nlimit = 1": "pool A: A pool's name must",
    "[pools.a]\nlimit = 1\nttl = '2h'\nttl_max = '1h'": "pool a: ttl must not be above ttl_max",
    "[pools.a]\nlimit = 1\nttl = 1e9": "pool a: ttl must be",
    "[pools.a]\nlimit = 1\nadaptive = '2-9'": "pool a: The limit 1 is not from adaptive.floor",
    "[pools.a]\nlimit = 1\nadaptive = '9'": "pool a: '9' is not an adaptive limit",
    "[pools.a]\nlimit = 3\nadaptive = {floor = 1, ceiling = 9, moed = 'act'}": "mean 'mode'?",
    "[templates.'a-*']\nlimit = 1\nadaptive = '2-9'": "template a-*: The limit 1 is not from",
    "[pools.there]\nlimit = 'none'": "Pool 'there' has no slots, so it needs a limit",
}


@pytest.mark.parametrize("mode", ["--dry-run", "--yes"])
def test_a_file_is_checked_before_anything_is_applied(cli: Cli, mode: str) -> None:
    """If one pool of a file is invalid, the error names it, and nothing is printed or changed."""
    cli.admission.pool_put("there", PoolWanted(limit=1))
    before = cli.answer("pool", "list")
    file = cli.folder / "wrong.toml"
    for text, message in WRONG.items():
        file.write_text(text)
        output = cli.refusal(2, "apply", "-f", str(file), mode)
        assert output.startswith(f"{file}: ")
        assert message in output
    assert cli.answer("pool", "list") == before


def test_apply_asks_on_a_terminal(cli: Cli) -> None:
    """At a terminal, `apply` without `--yes` changes nothing unless the user confirms."""
    file = cli.folder / "asked.toml"
    file.write_text("[pools.asked]\nlimit = 1\n")
    for word, code in ((b"n\n", 1), (b"y\n", 0)):
        with at_terminal(cli.folder, "apply", "-f", str(file)) as (process, terminal):
            read_until(terminal, b"[y/N]")
            os.write(terminal, word)
            assert exit_code_of(process, terminal) == code
        there = [pool.name for pool in cli.admission.pools() if pool.name == "asked"]
        assert there == ([] if code else ["asked"])
