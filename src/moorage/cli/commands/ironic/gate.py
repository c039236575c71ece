"""`moorage gate`: a reverse proxy before Ironic that holds back what makes a node busy."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moorage.cli.support.ironic import fault_text, ironic_url, moorage_url
from moorage.cli.support.options import example, json_option
from moorage.cli.support.output import FAILED, USAGE, Failure, say, show_json
from moorage.client.run.parse import URL_VARIABLE, token_named
from moorage.client.transport import token_of

if TYPE_CHECKING:
    from moorage.integrations.ironic.gate.process import Settings

MISSING = "moorage gate needs aiohttp: pip install 'moorage[ironic]'"


@click.group(
    "gate",
    invoke_without_command=True,
    epilog=example(
        "moorage gate --ironic http://10.0.0.5:6385 --pool deploy --token-file token",
        "moorage gate check --gate http://ironic:6385 --ironic http://10.0.0.5:6385",
    ),
)
@click.option("--ironic", metavar="URL", help="Ironic's own address, without /v1.")
@click.option("--pool", metavar="NAME", help="Each busy node has one unit of this pool.")
@click.option("--rules", type=click.Path(), metavar="FILE", help="Rules instead of one pool.")
@click.option(
    "--listen",
    default="127.0.0.1:6385",
    show_default=True,
    metavar="HOST:PORT",
    help="Where clients connect; ignored if systemd passes a socket.",
)
@click.option("--url", metavar="URL", help="Moorage's address; by default MOORAGE_URL.")
@click.option("--token", metavar="TOKEN", help="Moorage's token; by default MOORAGE_TOKEN.")
@click.option("--token-file", type=click.Path(), metavar="FILE", help="File with Moorage's token.")
@click.option(
    "--watch/--no-watch", default=True, help="Look at all nodes all the time; the default."
)
@click.option("--count-holds", is_flag=True, help="Nodes in Ironic's hold states count as busy.")
@click.option("--metrics-listen", metavar="HOST:PORT", help="Serve /metrics for Prometheus here.")
@click.option("--tls-cert", type=click.Path(), metavar="FILE", help="Certificate; serves HTTPS.")
@click.option("--tls-key", type=click.Path(), metavar="FILE", help="Key of the certificate.")
@click.option(
    "--ca-file", type=click.Path(), metavar="FILE", help="Authorities to trust for Ironic."
)
@click.option(
    "--ironic-token-file",
    type=click.Path(),
    metavar="FILE",
    help="File with the X-Auth-Token of the gate's own requests to Ironic.",
)
@click.option(
    "--ironic-headers",
    type=click.Path(),
    metavar="FILE",
    help="Headers of the gate's own requests to Ironic, one NAME: VALUE per line.",
)
@click.pass_context
def group(context: click.Context, /, **words: Any) -> None:
    """Hold back requests to Ironic until the host may start.

    Clients use the gate as if it were Ironic. A request for a provision state is forwarded when its
    node has its units; everything else at once. Runs until Ctrl-C or
    SIGTERM.
    """
    if context.invoked_subcommand is not None:
        return
    try:
        from moorage.integrations.ironic.gate import process
    except ImportError:
        raise Failure(USAGE, MISSING) from None
    from moorage.serve import logs

    settings = _settings(words)
    logs.configure("line", "info")
    try:
        context.exit(process.run(settings, say))
    except process.GateError as error:
        raise Failure(USAGE, str(error)) from None


@group.command(epilog=example("moorage gate check --gate http://ironic --ironic http://10.0.0.5"))
@click.option("--gate", required=True, metavar="URL", help="Address that clients use.")
@click.option("--ironic", required=True, metavar="URL", help="Ironic's own address.")
@click.option("--ca-file", type=click.Path(), metavar="FILE", help="Authorities to trust.")
@json_option
def check(gate: str, ironic: str, ca_file: str | None, as_json: bool) -> None:
    """Try whether Ironic can be reached past the gate from this machine.

    Ends with 1 if it can, or if the gate does not answer as Ironic does. Run it where clients are.
    """
    try:
        from moorage.integrations.ironic.gate import probe
    except ImportError:
        raise Failure(USAGE, MISSING) from None
    addresses = ironic_url(gate, "--gate"), ironic_url(ironic, "--ironic")
    found = probe.check(*addresses, ca_file)
    if as_json:
        show_json([{"good": one.good, "text": one.text} for one in found])
    else:
        for one in found:
            say(f"{'good' if one.good else 'BAD'}: {one.text}")
    click.get_current_context().exit(0 if all(one.good for one in found) else FAILED)


def _settings(words: dict[str, Any]) -> "Settings":
    from moorage.integrations.ironic.gate.process import Settings
    from moorage.integrations.ironic.rules import Rules, RulesError, read

    if not words["ironic"]:
        raise Failure(USAGE, "--ironic is missing: Ironic's own address")
    if bool(words["pool"]) == bool(words["rules"]):
        raise Failure(USAGE, "give either --pool or --rules")
    if bool(words["tls_key"]) and not words["tls_cert"]:
        raise Failure(USAGE, "--tls-key needs --tls-cert")
    url = words["url"] or os.environ.get(URL_VARIABLE)
    if not url:
        raise Failure(USAGE, "no server is set: set MOORAGE_URL, or use --url")
    try:
        rules = read(Path(words["rules"])) if words["rules"] else Rules.of_pool(words["pool"])
        token = token_named(words)
        headers = _headers(words["ironic_headers"])
        if path := words["ironic_token_file"]:
            headers["X-Auth-Token"] = token_of(Path(path).read_text("utf-8"), path)
    except (RulesError, OSError, ValueError) as error:
        raise Failure(USAGE, fault_text(error)) from None
    given = ("listen", "metrics_listen", "tls_cert", "tls_key", "ca_file")
    return Settings(
        ironic=ironic_url(words["ironic"], "--ironic"),
        moorage=moorage_url(url),
        token=token,
        rules=rules,
        ironic_headers=headers,
        watch=words["watch"],
        hold_counts=words["count_holds"],
        **{name: words[name] for name in given},
    )


def _headers(path: str | None) -> dict[str, str]:
    """Read headers from a file. Raises OSError, ValueError without the values."""
    if path is None:
        return {}
    headers = {}
    lines = Path(path).read_text("utf-8").splitlines()
    for number, line in enumerate(filter(str.strip, lines), 1):
        name, colon, value = line.partition(":")
        if not (colon and value.strip().isprintable()):
            raise ValueError(f"{path}: line {number} is not NAME: VALUE")
        headers[token_of(name, f"{path}: line {number}")] = value.strip()
    return headers
