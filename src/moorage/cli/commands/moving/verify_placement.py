"""`moorage verify placement`: compares the ledger with OpenStack Placement, side by side."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from moorage.cli.support.moving import (
    API_OPTIONS,
    DATABASE_OPTIONS,
    at_our_server,
    database_of,
    moving_errors,
    original_api,
    our_server,
    placement_there,
)
from moorage.cli.support.options import SecondsRange, WholeNumber, example, json_option
from moorage.cli.support.output import FAILED, USAGE, Failure, say, show_json
from moorage.cli.support.progress import progress
from moorage.cli.support.provisioning import with_options

if TYPE_CHECKING:
    from moorage.integrations.placement.verification import Kind, Verified

SAMPLE = 2_000
QUERIES = 200
VALUE_MAX = 200
"""Characters of a value in an example."""


def _of_original(command: Callable[..., None]) -> Callable[..., None]:
    return with_options((*DATABASE_OPTIONS, *API_OPTIONS), command)


@click.command(
    epilog=example(
        "moorage verify placement --url http://placement:8778 --source-token-file original.token",
        "moorage verify placement --url http://placement:8778 --os-cloud admin --seed 7",
        "moorage verify placement --database-file placement.url",
    )
)
@at_our_server
@_of_original
@click.option(
    "--os-cloud",
    metavar="NAME",
    help="Entry of clouds.yaml: take the original's token from its Keystone, and by default --url.",
)
@click.option(
    "--providers", type=WholeNumber(0), default=SAMPLE, help=f"Providers to ask about; {SAMPLE}."
)
@click.option(
    "--consumers", type=WholeNumber(0), default=SAMPLE, help=f"Consumers to ask about; {SAMPLE}."
)
@click.option(
    "--candidates", type=WholeNumber(0), default=QUERIES, help=f"Queries for candidates; {QUERIES}."
)
@click.option(
    "--leave-out", multiple=True, metavar="CODE", help="As in the import; for --database."
)
@click.option("--complete", multiple=True, metavar="CODE", help="As in the import; for --database.")
@click.option("--seed", type=int, default=1, help="Selects the sample; 1 by default.")
@click.option(
    "--seconds",
    type=SecondsRange(0, 3_600),
    default=2.0,
    help="Up to which times may differ; 2 by default.",
)
@json_option
def placement(
    os_cloud: str | None,
    providers: int,
    consumers: int,
    candidates: int,
    leave_out: tuple[str, ...],
    complete: tuple[str, ...],
    seed: int,
    seconds: float,
    as_json: bool,
    **words: Any,
) -> None:
    """Ask OpenStack Placement and Moorage the same questions, and print where the answers differ.

    With --url it compares answers about a sample, with --database every row; both may be given.
    Both servers may be in use: a difference counts only if it is still there when it is looked at
    again. Differences that are decided are named, but do not count.

    Exit codes: 0 no difference; 1 there are differences.
    """
    url = words["url"]
    if url is None and os_cloud is None and not (words["database"] or words["database_file"]):
        raise Failure(USAGE, "give --url, --os-cloud, --database or --database-file")
    ours = our_server()
    with placement_there():
        from moorage.integrations.placement.asking import PlacementApi
        from moorage.integrations.placement.sampling import Sizes
        from moorage.integrations.placement.verification import Verification, Verified
        from moorage.integrations.placement.whole_ledger import WholeLedger
    verified = Verified()
    ledger = WholeLedger(ours)
    with progress() as shown, moving_errors():
        if words["database"] or words["database_file"]:
            _rows(words, (leave_out, complete), ledger, seconds, shown, verified)
        if url is not None or os_cloud is not None:
            access = words["source_token"], words["source_token_file"], os_cloud
            original = original_api(url, *access)
            sizes = Sizes(providers, consumers, candidates, seed)
            Verification(original, PlacementApi(ours), ledger, shown).run(sizes, seconds, verified)
    _print(verified, as_json)
    if not verified.same:
        raise Failure(FAILED, f"{sum(one.count for one in verified.found.values())} differences")


def _rows(
    words: dict[str, Any],
    choices: tuple[tuple[str, ...], tuple[str, ...]],
    ledger: Any,
    seconds: float,
    shown: Any,
    verified: "Verified",
) -> None:
    """Compare every row of a database."""
    from moorage.integrations.placement.database import Database
    from moorage.integrations.placement.oddities import Oddities
    from moorage.integrations.placement.reading import DatabaseSource
    from moorage.integrations.placement.verification import verify_rows

    try:
        Oddities(*choices)
    except ValueError as error:
        raise Failure(USAGE, str(error)) from None
    source = DatabaseSource(Database(database_of(words["database"], words["database_file"])))
    try:
        verify_rows(source, ledger, lambda: Oddities(*choices), seconds, shown, verified)
    finally:
        source.close()


def _print(verified: "Verified", as_json: bool) -> None:
    if as_json:
        show_json(
            {
                "same": verified.same,
                "compared": verified.compared,
                "refused_by_both": verified.refused,
                "passing": verified.passing,
                "odd": verified.odd,
                "differences": _described(verified.found),
                "known": _described(verified.known),
            }
        )
        return
    say("compared: " + ", ".join(f"{count} {what}" for what, count in verified.compared.items()))
    if verified.refused:
        say(f"refused by both: {verified.refused}")
    if verified.passing:
        say(f"differed for a moment only: {verified.passing}")
    for code, count in sorted(verified.odd.items()):
        say(f"odd, compared without it: {code}: {count}")
    for kind, those in sorted(verified.known.items()):
        say(f"known: {kind}: {those.count} ({those.example.known})")
    for kind, those in sorted(verified.found.items()):
        one = those.example
        say(f"different: {kind}: {those.count}")
        say(f"  GET {one.path}" if one.path.startswith("/") else f"  {one.path}")
        say(f"  original: {_cut(one.original)}")
        say(f"  Moorage:  {_cut(one.moorage)}")
    if verified.same:
        say("no difference")


def _described(kinds: "dict[str, Kind]") -> list[dict[str, Any]]:
    return [
        {
            "kind": kind,
            "count": those.count,
            "known": those.example.known or None,
            "example": {
                "path": those.example.path,
                "at": those.example.at,
                "original": those.example.original,
                "moorage": those.example.moorage,
            },
        }
        for kind, those in sorted(kinds.items())
    ]


def _cut(value: Any) -> str:
    text = str(value)
    return text if len(text) <= VALUE_MAX else f"{text[: VALUE_MAX - 1]}…"
