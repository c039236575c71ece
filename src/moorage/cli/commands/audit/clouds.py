"""`moorage audit nova` and `moorage audit ironic`: what of the ledger is not so there."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moorage.cli.support.documents import write
from moorage.cli.support.options import SecondsRange, WholeNumber, example, json_option, wide_option
from moorage.cli.support.output import FAILED, UNREACHABLE, USAGE, Failure
from moorage.cli.support.progress import progress
from moorage.cli.support.provisioning import (
    FILE,
    SERVER_OPTIONS,
    fault_text,
    moorage_url,
    server_of,
    token_to_use,
    with_options,
)
from moorage.client.transport import RefusedError, UnreachableError, shown_url
from moorage.extras import needs

if TYPE_CHECKING:
    from moorage.integrations.nova.audit import Report
    from moorage.integrations.nova.state_file import StateFile
    from moorage.integrations.openstack.cloud import Cloud

AT_ONCE = 8
INTERRUPTED = 128 + signal.SIGINT
"""As shells have it. SIGTERM and a terminal that hangs up end the process as they end any other."""

SETTLE = 30.0

_CLOUD = click.option(
    "--os-cloud", metavar="NAME", required=True, help="Entry of clouds.yaml, of an administrator."
)
_SETTLE = click.option(
    "--settle",
    type=SecondsRange(0, 3600),
    default=SETTLE,
    metavar="SECONDS",
    help="Seconds between two looks at a suspect; 30 by default.",
)


def _auditing(command: Callable[..., None]) -> Callable[..., None]:
    return with_options((*SERVER_OPTIONS, _CLOUD, _SETTLE, wide_option, json_option), command)


@click.command(
    epilog=example(
        "moorage audit nova --os-cloud admin",
        "moorage audit nova --os-cloud admin --ironic --state audit.state -o plan.json",
    )
)
@_auditing
@click.option("--ironic", is_flag=True, help="Compare with Ironic's nodes as well.")
@click.option(
    "-o", "--output", **FILE, help="Write what can be healed to FILE, to be read by people first."
)
@click.option(
    "--state",
    **FILE,
    help="Keep in FILE which hosts are compared, and go on from there after an interruption.",
)
@click.option(
    "--requests", type=WholeNumber(1, 64), default=AT_ONCE, help=f"Requests at once; {AT_ONCE}."
)
@click.option(
    "--archived",
    is_flag=True,
    help="Take consumers without a type, which Nova does not remember, for deleted servers.",
)
def nova(
    *,
    os_cloud: str,
    settle: float,
    ironic: bool,
    output: str | None,
    state: str | None,
    requests: int,
    archived: bool,
    wide: bool,
    as_json: bool,
    **words: Any,
) -> None:
    """Compare the ledger with Nova, and print what is wrong.

    Allocations that nobody uses, or that are there twice, and providers of hosts that are gone.

    It only reads, and nothing need stand still: whatever is suspect is looked at again, until two
    looks in a row agree. Nova's answer counts only if the ledger shows the same before and after.
    What cannot be known, because a cell does not answer, is unclear.

    Exit codes: 0 no finding; 1 there are findings; 130 Ctrl-C.
    """
    again = "" if state is None else ": the same command goes on from here"
    with _faults(f"interrupted{again}"):
        from moorage.integrations.nova.audit import Wishes
        from moorage.integrations.nova.plan_file import document_of
        from moorage.integrations.nova.state_file import StateFile

        url = moorage_url(server_of(words))
        of = f"{os_cloud} and {shown_url(url)}"
        kept = StateFile(None if state is None else Path(state), of)
        cloud = _cloud(os_cloud)
        work = _run((url, words), cloud, Wishes(settle, archived), kept, (requests, ironic, True))
        report = asyncio.run(work)
        if output is not None:
            write(output, document_of(report.findings, of))
        _show(report, as_json=as_json, wide=wide)
        kept.remove()  # last: until then, nothing is lost
    _end(report)


@click.command(epilog=example("moorage audit ironic --os-cloud admin"))
@_auditing
def ironic(*, os_cloud: str, settle: float, wide: bool, as_json: bool, **words: Any) -> None:
    """Compare the ledger with Ironic's nodes, where no Nova uses them.

    Exit codes: 0 no finding; 1 there are findings.
    """
    with _faults():
        from moorage.integrations.nova.audit import Wishes
        from moorage.integrations.nova.state_file import StateFile

        url = moorage_url(server_of(words))
        kept = StateFile(None, "")
        work = _run((url, words), _cloud(os_cloud), Wishes(settle), kept, (AT_ONCE, True, False))
        report = asyncio.run(work)
    _show(report, as_json=as_json, wide=wide)
    _end(report)


def _show(report: "Report", *, as_json: bool, wide: bool) -> None:
    from moorage.cli.commands.audit.report import show

    show(report, as_json=as_json, wide=wide)


def _end(report: "Report") -> None:
    """Raise Failure: 1, if there are findings."""
    if report.findings:
        raise Failure(FAILED, f"{len(report.findings)} findings")


def _cloud(name: str) -> "Cloud":
    from moorage.integrations.openstack.cloud import Cloud

    return Cloud(name)


async def _run(
    target: tuple[str, dict[str, Any]],
    cloud: "Cloud",
    wishes: Any,
    state: "StateFile",
    parts: tuple[int, bool, bool],
) -> "Report":
    """Audit; `parts`: requests at once, and whether Ironic and Nova are asked."""
    from moorage.integrations.ironic.nodes import NodeReader
    from moorage.integrations.nova.asking import Nova
    from moorage.integrations.nova.audit import Audit
    from moorage.integrations.nova.connection import NovaConnection
    from moorage.integrations.nova.ledger_api import LedgerApi

    url, words = target
    at_once, of_ironic, of_nova = parts
    async with AsyncExitStack() as stack:
        ledger = await stack.enter_async_context(LedgerApi(url, token_to_use(words)))
        asked = nodes = None
        if of_nova:
            there = NovaConnection(cloud.endpoint("compute"), cloud.token, cloud.trusted)
            connection = await stack.enter_async_context(there)
            asked = Nova(connection.send, at_once)
        if of_ironic:
            address = cloud.endpoint("baremetal").rstrip("/").removesuffix("/v1")
            reader = NodeReader(
                address, lambda: {"X-Auth-Token": cloud.token(False)}, cloud.trusted
            )
            nodes = await stack.enter_async_context(reader)
        shown = stack.enter_context(progress())
        try:
            return await Audit(ledger, asked, nodes, wishes, shown).run(state)
        finally:
            state.close()


@contextmanager
def _faults(interrupted: str = "interrupted") -> Iterator[None]:
    """Turn what the systems refuse, a missing extra, and Ctrl-C into Failures."""
    try:
        from moorage.integrations.nova.asking import UnfitError
        from moorage.integrations.nova.pacing import NoAnswerError
        from moorage.integrations.nova.state_file import StateError
        from moorage.integrations.openstack.cloud_error import CloudAwayError, CloudError
        from moorage.integrations.provisioning.start import HostSystemError
    except ImportError as error:
        raise Failure(USAGE, f"this command {needs('nova', error)}") from None
    try:
        yield
    except KeyboardInterrupt:  # click's exit code, 1, means that there are findings
        raise Failure(INTERRUPTED, interrupted) from None
    except UnfitError as error:
        raise Failure(FAILED, str(error)) from None
    except (CloudAwayError, NoAnswerError, HostSystemError, UnreachableError) as error:
        raise Failure(UNREACHABLE, str(error)) from None
    except RefusedError as error:
        raise Failure(FAILED, str(error), error.code) from None
    except (StateError, CloudError, ValueError) as error:
        raise Failure(USAGE, fault_text(error)) from None
