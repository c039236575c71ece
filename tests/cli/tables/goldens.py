"""What lists print and `moorage top` shows at 60, 80, 120 and 200 columns, in `golden/`.

`python -m tests.cli.tables.goldens` writes them again: read what has changed before you commit it.
"""

from collections.abc import Collection, Sequence
from pathlib import Path

from tests.cli.tables.answers import (
    BOOKINGS,
    ENDED,
    GRANTED,
    LEASES,
    PAUSED,
    POOLS,
    POOLS_SHOWN,
    TEMPLATES,
    WITH_ALTERNATIVES,
)
from tests.cli.tables.double import answering, on_terminal
from tests.cli.tables.fleet_answers import AGENTS
from tests.cli.tables.ledger_answers import CONSUMERS, PROVIDERS
from tests.cli.tables.reshape_answers import SHOWN as RESHAPE
from tests.cli.terminal.screens import watched

FOLDER = Path(__file__).parent / "golden"
WIDTHS = (60, 80, 120, 200)
SHOWN_MAX = 60
"""Lines of a list that are compared; of a longer one the first and the last ones."""

ADDRESS = "http://moorage.example:8778"
"""The address of the server in the texts."""

COMMANDS = {
    "lease-list": ["lease", "list"],
    "lease-list-waiting": ["lease", "list", "--state", "waiting"],
    "lease-list-ended": ["lease", "list", "--state", "ended"],
    "lease-list-wide": ["lease", "list", "--state", "ended", "--wide"],
    "lease-show": ["lease", "show", LEASES[GRANTED + 1].id],
    "lease-show-any-of": ["lease", "show", LEASES[WITH_ALTERNATIVES].id],
    "lease-why": ["lease", "why", LEASES[GRANTED + 1].id],
    "lease-why-any-of": ["lease", "why", LEASES[WITH_ALTERNATIVES].id],
    "lease-why-granted": ["lease", "why", LEASES[3].id],
    "lease-why-ended": ["lease", "why", ENDED[0].id],
    "pool-list": ["pool", "list"],
    "pool-show": ["pool", "show", POOLS_SHOWN[0].name],
    "pool-show-paused": ["pool", "show", PAUSED],
    "pool-list-paused": ["pool", "list", "--paused"],
    "pool-history": ["pool", "history", POOLS[0]],
    "pool-slots": ["pool", "slots", POOLS[0]],
    "pool-template-list": ["pool", "template", "list"],
    "pool-template-show": ["pool", "template", "show", TEMPLATES[1].name],
    "pool-report": ["pool", "report", POOLS[0]],
    "booking-list": ["booking", "list"],
    "booking-show": ["booking", "show", BOOKINGS[0].id],
    "top": ["top", "--once"],
    "fleet": ["fleet"],
    "fleet-by-aggregate": ["fleet", "--by", "aggregate"],
    "fleet-by-trait": ["fleet", "--by", "trait"],
    "fleet-providers": ["fleet", "--providers", "3"],
    "provider-list": ["provider", "list"],
    "provider-show": ["provider", "show", PROVIDERS[0].name],
    "provider-tree": ["provider", "tree"],
    "usage": ["usage"],
    "usage-by-user": ["usage", "--by", "user", "--class", "VCPU"],
    "consumer-list": ["consumer", "list"],
    "consumer-show": ["consumer", "show", CONSUMERS[1].uuid],
    "agent-list": ["agent", "list"],
    "agent-group-list": ["agent", "group", "list"],
    "agent-group-show": ["agent", "group", "show", "rack-2"],
    "agent-show": ["agent", "show", AGENTS[2].id],
    "whoami": ["whoami"],
    "token-list": ["token", "list"],
    "audit": ["audit"],
    "group-list": ["group", "list"],
    "group-nodes": ["group", "nodes", "ironic"],
    "group-ghosts": ["group", "ghosts", "ironic"],
    "report-status": ["report", "status", "ironic"],
    "group-show": ["group", "show", "ironic"],
    "group-pins": ["group", "pins", "ironic"],
    "reshape-list": ["reshape", "list"],
    "reshape-show": ["reshape", "show", RESHAPE.id],
    "simulate": ["simulate", "--jobs", "100", "--limit", "5,none", "--hold", "20m"],
}

SCREENS: dict[str, list[tuple[str, str]]] = {
    "top-admission": [],
    "top-end": [("\x1b[F", "-40 of 40, busy")],
    "top-by-name": [("s", "of 40, name")],
    "top-fleet": [("\t", "VCPU")],
    "top-help": [("?", "Ctrl-C")],
}
"""Screens of `moorage top`: the keys that lead there, and what is shown after each."""


def drawn(url: str, keys: Sequence[tuple[str, str]]) -> str:
    """Return what `moorage top` shows after these keys, on screens with each width."""
    where = {"MOORAGE_URL": url, "MOORAGE_TOKEN": "night", "NO_COLOR": "1"}
    texts = []
    for width in WIDTHS:
        with watched("top", "--every", "1", columns=width, **where) as screen:
            screen.shows("q quit")
            for key, words in keys:
                screen.type(key)
                screen.shows(words)
            texts.append(f"=== {width} columns\n{screen.text}")
    return "".join(texts)


def printed(url: str, names: Collection[str] = COMMANDS, *more: str) -> dict[str, str]:
    """Return what each command prints at each width. `more`: see `driver`."""
    asked = [(width, COMMANDS[name]) for name in names for width in WIDTHS]
    texts = iter(on_terminal(url, asked, *more, NO_COLOR="1"))
    return {
        name: "".join(
            f"=== {width} columns\n{_shortened(next(texts).replace(url, ADDRESS))}"
            for width in WIDTHS
        )
        for name in names
    }


def _shortened(text: str) -> str:
    lines = text.splitlines(keepends=True)
    left = len(lines) - SHOWN_MAX
    if left <= 0:
        return text
    return "".join([*lines[: SHOWN_MAX // 2], f"[{left} lines]\n", *lines[-SHOWN_MAX // 2 :]])


if __name__ == "__main__":
    with answering() as address:
        for name, text in printed(address).items():
            (FOLDER / f"{name}.txt").write_text(text)
        for name, keys in SCREENS.items():
            (FOLDER / f"{name}.txt").write_text(drawn(address, keys))
