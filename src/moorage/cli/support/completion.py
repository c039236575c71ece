"""Shell completion: files, commands, pools, leases, agents, groups, tokens, resource classes.

The user waits meanwhile, so failures and slow answers silently offer no completions.
"""

import os
import signal
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class

from moorage.wire.labels import holder_of

if TYPE_CHECKING:
    from moorage.client.admission import Admission
    from moorage.client.fleet import Fleet
    from moorage.client.ledger import Ledger
    from moorage.client.reporting import Reporting
    from moorage.client.transport import Transport

T = TypeVar("T")

SECONDS_MAX = 2.0
"""The longest wait for a server."""

NAMES_MAX = 1_000
"""Pools, or leases of one state, that are fetched."""

_FILE = "file"
"""The type of an item that lets the shell itself complete a file name."""


def pools(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the pools of the command line's server."""
    names = _asked(
        ctx, lambda server: [pool.name for pool in islice(_admission(server).pools(), NAMES_MAX)]
    )
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def providers(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer that server's providers by name; only the first ones of many."""
    found = _asked(ctx, lambda server: _ledger(server).providers_page(None, NAMES_MAX).providers)
    return [CompletionItem(one.name) for one in found if one.name.startswith(incomplete)]


def consumers(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer that server's consumers; only the first ones of many."""
    found = _asked(ctx, lambda server: [*islice(_ledger(server).consumers(), NAMES_MAX)])
    return [
        CompletionItem(one.uuid, help=one.type or "-")
        for one in found
        if one.uuid.startswith(incomplete)
    ]


def leases(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer that server's leases and tickets that have not ended, each with its owner."""
    found = _asked(
        ctx,
        lambda server: [
            lease
            for state in ("granted", "waiting")
            for lease in islice(_admission(server).leases(state=state), NAMES_MAX)
        ],
    )
    return [
        CompletionItem(lease.id, help=holder_of(lease.owner, lease.labels))
        for lease in found
        if lease.id.startswith(incomplete)
    ]


def agents(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer that server's active agents, each with its host."""
    found = _asked(ctx, lambda server: [*islice(_fleet(server).agents(state="active"), NAMES_MAX)])
    return [
        CompletionItem(agent.id, help=None if agent.facts is None else agent.facts.hostname)
        for agent in found
        if agent.id.startswith(incomplete)
    ]


def agent_groups(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer that server's groups of agents."""
    names = _asked(
        ctx, lambda server: [group.name for group in islice(_fleet(server).groups(), NAMES_MAX)]
    )
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def reporter_groups(
    ctx: click.Context, _: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer that server's groups of reporters."""
    names = _asked(ctx, lambda server: [*islice(_reporting(server).groups(), NAMES_MAX)])
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _admission(transport: "Transport") -> "Admission":
    from moorage.client.admission import Admission

    return Admission(transport)


def _fleet(transport: "Transport") -> "Fleet":
    from moorage.client.fleet import Fleet

    return Fleet(transport)


def _reporting(transport: "Transport") -> "Reporting":
    from moorage.client.reporting import Reporting

    return Reporting(transport)


def command(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer commands of the PATH for the first word after the options, and files after that."""
    if ctx.params.get("command") or os.sep in incomplete:
        return [CompletionItem(incomplete, type=_FILE)]
    names = {name for name in _programs() if name.startswith(incomplete)}
    return [CompletionItem(name) for name in sorted(names)]


def tokens(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the ids of that server's valid tokens, each with its name."""
    found = _asked(ctx, lambda server: [*islice(_ledger(server).tokens(), NAMES_MAX)])
    return [
        CompletionItem(token.id, help=token.name)
        for token in found
        if token.revoked_at is None and token.id.startswith(incomplete)
    ]


def classes(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the resource classes of which that server's providers have inventories."""
    names = _asked(ctx, _classes)
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _classes(transport: "Transport") -> list[str]:
    from moorage.wire.capacity import CapacityAsked

    found = _ledger(transport).capacity(CapacityAsked(ends=0, limit=NAMES_MAX))
    return [line.resource_class for line in found.lines]


def _ledger(transport: "Transport") -> "Ledger":
    from moorage.client.ledger import Ledger

    return Ledger(transport)


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


def _asked(ctx: click.Context, ask: Callable[["Transport"], list[T]]) -> list[T]:
    """Return a server's answer; empty if it is unreachable, refuses or takes too long."""
    from moorage.cli.support.backend import ServerBackend, find, refusals_translated
    from moorage.cli.support.options import load

    previous = signal.signal(signal.SIGALRM, _too_late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS_MAX)
    try:
        url = _given(ctx, "url", "MOORAGE_URL")
        token = _given(ctx, "token", "MOORAGE_TOKEN")
        file = _given(ctx, "config_file", "MOORAGE_CONFIG")
        settings = load({"database": ctx.params.get("database")}, file).settings
        found = find(settings, url, token)
        if not isinstance(found, ServerBackend):
            return []
        with refusals_translated():
            return ask(found.transport)
    except (click.ClickException, OSError, ValueError):
        return []
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def _given(ctx: click.Context, name: str, variable: str) -> str | None:
    """Return the value of an option, or else of its variable."""
    return ctx.params.get(name) or os.environ.get(variable) or None


def _too_late(*_: Any) -> None:
    raise TimeoutError
