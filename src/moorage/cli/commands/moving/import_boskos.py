"""`moorage import boskos`: takes over Boskos' resources with their states and owners."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moorage.cli.support.command import administering, at_server
from moorage.cli.support.kubernetes import cluster_options, connection_of
from moorage.cli.support.options import example, json_option
from moorage.cli.support.output import FAILED, UNREACHABLE, USAGE, Failure, say, show_json
from moorage.cli.support.provisioning import FILE, carried_out
from moorage.client.admission import Admission
from moorage.client.boskos import Boskos
from moorage.client.transport import RefusedError
from moorage.wire.pools.boskos import BoskosOutcome

if TYPE_CHECKING:
    from moorage.integrations.boskos.cluster import Objects
    from moorage.integrations.boskos.objects import Found

NAMED = ("refused", "kept", "removed")
"""Outcomes of which each is printed, not only their number."""


@click.command(
    epilog=example(
        "moorage import boskos --kubeconfig ~/.kube/config --namespace test-pods",
        "moorage import boskos --file resources.yaml",
    )
)
@administering
@click.option("--file", **FILE, help="Instead of a cluster: objects as kubectl prints them.")
@cluster_options
@click.option("--namespace", metavar="NAME", help="Of Boskos; by default the only one that has it.")
@json_option
def boskos(
    file: str | None,
    kubeconfig: str | None,
    context: str | None,
    namespace: str | None,
    as_json: bool,
) -> None:
    """Give the slots of pools the states, owners and user data of Boskos' resources.

    Stop Boskos first. The server must have been started with Boskos' configuration. The same
    command again changes nothing. Exit code 1 if something cannot be taken over.
    """
    from moorage.integrations.boskos.objects import resources_in

    if file is not None and (kubeconfig or context or namespace):
        raise Failure(USAGE, "give either --file, or --kubeconfig, --context and --namespace")
    if file is not None:
        found = resources_in(_in_file(file))
        outcomes = _imported(found)
    else:
        seen = _in_cluster(kubeconfig, context, namespace)
        found = resources_in(seen.objects)
        outcomes = _imported(found)
        if _in_cluster(kubeconfig, context, namespace).versions != seen.versions:
            found.problems.append("resources changed meanwhile: stop Boskos, and import them again")
    _show(outcomes, found.problems, as_json)
    refused = any(one.outcome == "refused" for those in outcomes.values() for one in those)
    if found.problems or refused:
        click.get_current_context().exit(FAILED)


def _in_file(path: str) -> list[object]:
    from moorage.integrations.boskos.files import BYTES_MAX, FileError, objects_in

    try:
        with Path(path).open("rb") as opened:
            return objects_in(opened.read(BYTES_MAX + 1))
    except OSError as error:
        raise Failure(USAGE, f"--file: {path} cannot be read: {error.strerror}") from None
    except FileError as error:
        raise Failure(USAGE, f"--file: {path}: {error}") from None


def _in_cluster(kubeconfig: str | None, context: str | None, namespace: str | None) -> "Objects":
    connection = connection_of(kubeconfig, context)

    async def work() -> "Objects":
        from moorage.integrations.boskos.cluster import objects_of
        from moorage.integrations.kubernetes.api import KubernetesApi, KubernetesError

        try:
            async with KubernetesApi(connection) as api:
                return await objects_of(api, namespace)
        except KubernetesError as error:
            raise Failure(UNREACHABLE if error.status is None else FAILED, str(error)) from None

    found: Objects = carried_out(work, "kubernetes")
    if len(found.namespaces) > 1:
        raise Failure(USAGE, f"use --namespace: Boskos is in {', '.join(found.namespaces)}")
    if not found.objects:
        place = "there" if namespace is None else f"in the namespace {namespace}"
        raise Failure(FAILED, f"Boskos has no resources {place}")
    return found


def _imported(found: "Found") -> dict[str, list[BoskosOutcome]]:
    """Import the resources of each type; return the outcomes by type."""
    from moorage.integrations.boskos.objects import types_of

    outcomes = {}
    with at_server(Admission) as admission, at_server(Boskos) as server:
        for kind in sorted(found.dynamic - found.resources.keys() - {*types_of(admission.pools())}):
            found.problems.append(
                f"{kind}: a dynamic type in Boskos, but not in the server's configuration of Boskos"
            )
        for kind, resources in sorted(found.resources.items()):
            try:
                outcomes[kind] = server.take_over(kind, resources)
            except RefusedError as error:
                if error.code not in ("pool_not_found", "invalid"):
                    raise
                found.problems.append(f"{kind}: {error}")
    return outcomes


def _show(outcomes: dict[str, list[BoskosOutcome]], problems: list[str], as_json: bool) -> None:
    if as_json:
        show_json({"types": outcomes, "problems": problems})
        return
    for kind, those in outcomes.items():
        numbers = Counter(one.outcome for one in those)
        counts = ", ".join(f"{number} {outcome}" for outcome, number in sorted(numbers.items()))
        say(f"{kind}: {counts}")
        for one in those:
            if one.outcome in NAMED:
                say(f"  {one.outcome}: {one.name}" + (f": {one.reason}" if one.reason else ""))
    for problem in problems:
        say(problem, err=True)
