"""Shell completion: files, commands, pools, leases, agents, groups, tokens, resource classes.

The user waits meanwhile, so failures and slow answers silently offer no completions.
"""

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class

from moorage.wire.labels import holder_of

if TYPE_CHECKING:
    from moorage.client.transport import Transport

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
Offers = Iterable[tuple[str, str | None]]
"""Texts, each with what it stands for; None: it says that itself."""

SECONDS_MAX = 2.0
"""The longest wait for a server."""

NAMES_MAX = 1_000
"""Pools, or leases of one state, that are fetched."""

_FILE = "file"
"""The type of an item that lets the shell itself complete a file name."""


def _offering(read: Callable[["Transport"], Offers]) -> Complete:
    """Return what offers those texts of the command line's server that begin as the word does."""

    def offer(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [
            CompletionItem(text, help=meaning)
            for text, meaning in _asked(ctx, read)
            if text.startswith(incomplete)
        ]

    return offer


@_offering
def pools(server: "Transport") -> Offers:
    """Offer pools."""
    from moorage.client.admission import Admission

    return ((pool.name, None) for pool in islice(Admission(server).pools(), NAMES_MAX))


@_offering
def providers(server: "Transport") -> Offers:
    """Offer providers by name; only the first ones of many."""
    from moorage.client.ledger import Ledger

    found = Ledger(server).providers_page(None, NAMES_MAX).providers
    return ((one.name, None) for one in found)


@_offering
def consumers(server: "Transport") -> Offers:
    """Offer consumers, each with its type; only the first ones of many."""
    from moorage.client.ledger import Ledger

    return ((one.uuid, one.type or "-") for one in islice(Ledger(server).consumers(), NAMES_MAX))


@_offering
def reshapes(server: "Transport") -> Offers:
    """Offer reshapes, each with its author; only the newest ones of many."""
    from moorage.client.reshapes import Reshapes

    return ((one.id, one.who) for one in Reshapes(server).page(None, NAMES_MAX).reshapes)


@_offering
def leases(server: "Transport") -> Offers:
    """Offer leases and tickets that have not ended, each with its owner."""
    from moorage.client.admission import Admission

    for state in ("granted", "waiting"):
        for lease in islice(Admission(server).leases(state=state), NAMES_MAX):
            yield lease.id, holder_of(lease.owner, lease.labels)


@_offering
def agents(server: "Transport") -> Offers:
    """Offer active agents, each with its host."""
    from moorage.client.fleet import Fleet

    for agent in islice(Fleet(server).agents(state="active"), NAMES_MAX):
        yield agent.id, None if agent.facts is None else agent.facts.hostname


@_offering
def agent_groups(server: "Transport") -> Offers:
    """Offer groups of agents."""
    from moorage.client.fleet import Fleet

    return ((group.name, None) for group in islice(Fleet(server).groups(), NAMES_MAX))


@_offering
def reporter_groups(server: "Transport") -> Offers:
    """Offer groups of reporters."""
    from moorage.client.reporting import Reporting

    return ((name, None) for name in islice(Reporting(server).groups(), NAMES_MAX))


@_offering
def tokens(server: "Transport") -> Offers:
    """Offer the ids of valid tokens, each with its name."""
    from moorage.client.ledger import Ledger

    found = islice(Ledger(server).tokens(), NAMES_MAX)
    return ((token.id, token.name) for token in found if token.revoked_at is None)


@_offering
def classes(server: "Transport") -> Offers:
    """Offer the resource classes of which providers have inventories."""
    from moorage.client.ledger import Ledger
    from moorage.wire.capacity import CapacityAsked

    found = Ledger(server).capacity(CapacityAsked(ends=0, limit=NAMES_MAX))
    return ((line.resource_class, None) for line in found.lines)


def command(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer commands of the PATH for the first word after the options, and files after that."""
    if ctx.params.get("command") or os.sep in incomplete:
        return [CompletionItem(incomplete, type=_FILE)]
    names = {name for name in _programs() if name.startswith(incomplete)}
    return [CompletionItem(name) for name in sorted(names)]


class _Bash(BashComplete):
    """Completes `--pool=si` as well: bash makes three words of that, `--pool`, `=` and `si`."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """See click."""
        args, incomplete = super().get_completion_args()
        before = ["", *args]
        return [
            word
            for former, word in zip(before, args, strict=False)
            if word != "=" or not former.startswith("--")
        ], incomplete


def register() -> None:
    """Let click complete in this way; called before a completion."""
    add_completion_class(_Bash)


def _programs() -> Iterator[str]:
    for folder in os.get_exec_path():
        try:
            with os.scandir(folder) as entries:
                yield from (one.name for one in entries if os.access(one.path, os.X_OK))
        except OSError:
            continue


def _asked(ctx: click.Context, read: Callable[["Transport"], Offers]) -> Offers:
    """Return a server's answer; empty if it is unreachable, refuses or takes too long."""
    from moorage.cli.support.backend import ServerBackend, find, refusals_translated
    from moorage.cli.support.settings import load
    from moorage.client.targets import target_of

    previous = signal.signal(signal.SIGALRM, _too_late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS_MAX)
    try:
        database, file = ctx.params.get("database"), ctx.params.get("config_file")
        target = target_of(ctx.params, os.environ, local=bool(database or file))
        file = file or os.environ.get("MOORAGE_CONFIG")
        found = find(load({"database": database}, file).settings, target)
        if not isinstance(found, ServerBackend):
            return []
        with refusals_translated():
            return [*read(found.transport)]
    except (click.ClickException, OSError, ValueError):
        return []
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def _too_late(*_: Any) -> None:
    raise TimeoutError
