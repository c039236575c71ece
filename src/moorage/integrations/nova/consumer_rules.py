"""The rules about consumers: what the ledger says of one, against what Nova says. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from moorage.integrations.nova.facts import EVACUATION, Migration, Server
from moorage.integrations.nova.findings import Code, Finding, Unclear
from moorage.integrations.nova.ledger_view import Held, Providers
from moorage.integrations.nova.shapes import differences

OURS: Final = ("INSTANCE", "MIGRATION")
"""The types of Nova's consumers. Nova itself writes at a microversion without types."""

Verdict = Finding | Unclear | None
"""None: nothing is wrong, or something is being done that Nova will finish."""


@dataclass(frozen=True, slots=True)
class Look:
    """What Nova said of a consumer, in requests that began after the ledger had shown it.

    `server` None: 404. `migration`: the one whose UUID this is. `moves`: the migrations of the
    server. `remembered`: Nova's history has the server, although it is deleted. `unclear`: why the
    answers prove nothing; empty: they do.
    """

    server: Server | None = None
    migration: Migration | None = None
    moves: tuple[Migration, ...] = ()
    remembered: bool = False
    unclear: str = ""


def judge(
    uuid: str, held: Held | None, look: Look, providers: Providers, *, all_ours: bool
) -> Verdict:
    """Return what is wrong with a consumer.

    Args:
        uuid: of the consumer, or of a server that is none.
        held: what the ledger showed before and after `look`, unchanged; None: no such consumer.
        look: Nova's answers in between.
        providers: of the ledger, with Nova's hypervisors.
        all_ours: a consumer without a type is Nova's, even if Nova does not remember it.
    """
    if held is not None:
        if not (roots := providers.compute_roots(held)):
            return None
        if held.type is not None and held.type not in OURS:
            return _foreign(held, roots, providers, f"its type is {held.type}")
    if look.unclear:
        return Unclear(uuid, look.unclear)
    if look.migration is not None:
        return None if held is None else _of_migration(held, look.migration, look.server, providers)
    if look.server is None:
        return None if held is None else _without_server(held, look, providers, all_ours=all_ours)
    if look.server.is_unknown:
        return Unclear(uuid, "the cell of its server does not answer")
    return _of_server(held, look.server, look.moves, providers)


def _of_migration(
    held: Held, migration: Migration, server: Server | None, providers: Providers
) -> Verdict:
    """doubled_resized: a migration that is over, or of a server that is gone, still holds units.

    They are the server's own if it runs there: nova only logs that it could not give them back
    when it reverted or cancelled a move. Source: nova, `revert_allocation_for_migration`.
    """
    if server is not None and not migration.is_over:
        return _under_way(migration, server)
    what = f"migration of server {migration.server} from {migration.source}: {migration.status}"
    if server is None:
        message = f"{what}; its server is deleted"
        return _found("doubled_resized", held, providers, message, held.holdings)
    roots = providers.compute_roots(held)
    elsewhere = _is_elsewhere(server, roots, providers)
    release = held.holdings if elsewhere and not migration.has_failed else {}
    advice = "" if release else "; look where the server runs before you release it"
    return _found("doubled_resized", held, providers, f"{what}{advice}", release)


def _under_way(migration: Migration, server: Server) -> Unclear | None:
    """A move whose server rests ends in a moment, or never: nova-compute died, or it failed."""
    if not server.is_settled:
        return None
    reason = f"it is {migration.status}, but nothing is being done to its server {server.uuid}"
    return Unclear(migration.uuid, f"a migration that may be stuck: {reason}")


def _is_elsewhere(server: Server, roots: set[str], providers: Providers) -> bool:
    """Return whether a server surely is on none of these compute nodes."""
    if server.is_offloaded:
        return True
    home = providers.home_of(server.host, server.node)
    return server.is_settled and home is not None and home not in roots


def _without_server(held: Held, look: Look, providers: Providers, *, all_ours: bool) -> Finding:
    """orphan: neither a server nor a migration has this UUID; foreign_consumer: none ever had."""
    if held.type in OURS or look.remembered or all_ours:
        message = "Nova answers 404, and no migration has this UUID"
        return _found("orphan", held, providers, message, held.holdings)
    roots = providers.compute_roots(held)
    return _foreign(held, roots, providers, "it has no type, and Nova does not remember it")


def _foreign(held: Held, roots: set[str], providers: Providers, why: str) -> Finding:
    """foreign_consumer: it uses a compute node, and is not Nova's."""
    hosts = ", ".join(sorted(map(providers.name_of, roots)))
    return Finding(
        code="foreign_consumer",
        message=why,
        consumer=held.uuid,
        generation=held.generation,
        host=hosts,
    )


def _of_server(
    held: Held | None, server: Server, moves: tuple[Migration, ...], providers: Providers
) -> Verdict:
    """Judge what a server holds, if nothing is being done to it."""
    if not all(move.is_over for move in moves):
        return None
    if server.is_offloaded:
        return None if held is None else _offloaded(held, providers)
    if server.is_unbuilt:
        return None if held is None else _failed_build(held, providers)
    if not server.is_settled:
        return None
    home = providers.home_of(server.host, server.node)
    if home is None or home not in providers.by_uuid:
        return Unclear(server.uuid, f"the provider of its node {server.node} is not known")
    if held is None or not providers.on_root(held, home):
        return _missing(held, server, home, providers)
    return _elsewhere(held, server, moves, home, providers) or _wrong_shape(held, server, providers)


def _offloaded(held: Held, providers: Providers) -> Finding:
    """offloaded: the server is on no host."""
    message = "its server is shelved and on no host"
    return _found("offloaded", held, providers, message, held.holdings)


def _failed_build(held: Held, providers: Providers) -> Finding:
    """failed_build: nova gave a server up, and forgot what it had claimed for it.

    Source: nova 34, `_cleanup_build_artifacts`: it does so if a quota is exceeded at last.
    """
    message = "its server could not be built, and is on no host"
    return _found("failed_build", held, providers, message, held.holdings)


def _missing(held: Held | None, server: Server, home: str, providers: Providers) -> Finding:
    """missing: the server is on a host of which it holds nothing."""
    roots = set() if held is None else providers.compute_roots(held)
    where = ", ".join(sorted(map(providers.name_of, roots)))
    return Finding(
        code="missing",
        message=f"its server is there, and holds nothing of it{where and f', but of {where}'}",
        consumer=server.uuid,
        provider=home,
        generation=0 if held is None else held.generation,
        host=providers.name_of(home),
    )


def _elsewhere(
    held: Held, server: Server, moves: tuple[Migration, ...], home: str, providers: Providers
) -> Finding | None:
    """doubled, doubled_evacuated, doubled_resized: the server holds units of other hosts, too."""
    others = sorted(providers.compute_roots(held) - {home})
    if not others:
        return None
    code: Code = "doubled"
    release: dict[str, Mapping[str, int]] = {}
    for root in others:
        names = providers.names_of(root)
        reasons = [move for move in moves if move.touches(names) and not move.has_failed]
        if reasons:  # without a record of a move, people must look where the server runs
            evacuated = any(move.kind == EVACUATION for move in reasons)
            code = "doubled_evacuated" if evacuated else "doubled_resized"
            release |= providers.on_root(held, root)
    message = f"its server is on {server.host}"
    return _found(code, held, providers, message, release, others[0])


def _wrong_shape(held: Held, server: Server, providers: Providers) -> Finding | None:
    """wrong_shape: the amounts are not those of the flavor."""
    if server.flavor is None:
        return None
    found = differences(server.flavor, held.amounts(), volume_backed=server.volume_backed)
    if not found:
        return None
    said = ", ".join(f"{name} {has} instead of {asks}" for name, (asks, has) in found.items())
    return _found("wrong_shape", held, providers, f"it holds {said}", {})


def _found(
    code: Code,
    held: Held,
    providers: Providers,
    message: str,
    release: Mapping[str, Mapping[str, int]],
    root: str = "",
) -> Finding:
    roots = [root] if root else sorted(providers.compute_roots(held))
    return Finding(
        code=code,
        message=message,
        consumer=held.uuid,
        provider=roots[0] if roots else "",
        generation=held.generation,
        host=", ".join(map(providers.name_of, roots)),
        release=release,
    )
