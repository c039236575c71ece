"""`moorage gate`: a reverse proxy before Ironic that holds back what makes a node busy."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from moorage.cli.support.ironic import ironic_url, target_of, target_options
from moorage.cli.support.options import example, json_option
from moorage.cli.support.output import FAILED, USAGE, Failure, say, show_json
from moorage.extras import needs

if TYPE_CHECKING:
    from moorage.integrations.ironic.gate.process import Settings


@click.group(
    "gate",
    invoke_without_command=True,
    epilog=example(
        "moorage gate --ironic http://10.0.0.5:6385 --pool deploy --token-file token",
        "moorage gate check --gate http://ironic:6385 --ironic http://10.0.0.5:6385",
    ),
)
@target_options
@click.option(
    "--listen",
    show_default="127.0.0.1:6385, or the socket that systemd passes",
    metavar="HOST:PORT",
    help="HOST:PORT to listen on.",
)
@click.option(
    "--watch/--no-watch", default=True, help="Read all nodes again and again; the default."
)
@click.option("--count-holds", is_flag=True, help="Nodes in Ironic's hold states count as busy.")
@click.option(
    "--expected",
    multiple=True,
    metavar="[VERB=]DURATION",
    help="Expected duration of work, such as 10m or clean=2h, until it is known from leases; may"
    " be repeated.",
)
@click.option("--metrics-listen", metavar="HOST:PORT", help="Serve /metrics for Prometheus here.")
@click.option(
    "--tls-cert", type=click.Path(), metavar="FILE", help="Certificate (PEM) to serve HTTPS with."
)
@click.option(
    "--tls-key", type=click.Path(), metavar="FILE", help="Private key (PEM) of the certificate."
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
    except ImportError as error:
        raise Failure(USAGE, f"this command {needs('ironic', error)}") from None
    from moorage.serve import logs

    settings = _settings(words)
    logs.configure("line", "info")
    try:
        context.exit(process.run(settings, say))
    except process.GateError as error:
        raise Failure(USAGE, str(error)) from None


@group.command(epilog=example("moorage gate check --gate http://ironic --ironic http://10.0.0.5"))
@click.option(
    "--gate", required=True, metavar="URL", help="Address of the gate, as clients use it."
)
@click.option("--ironic", required=True, metavar="URL", help="Ironic's own address.")
@click.option(
    "--ca-file",
    type=click.Path(),
    metavar="FILE",
    help="Certificates (PEM) of authorities to trust.",
)
@json_option
def check(gate: str, ironic: str, ca_file: str | None, as_json: bool) -> None:
    """Check that this machine cannot reach Ironic without the gate.

    Ends with 1 if it can, or if the gate does not answer as Ironic does. Run it where clients are.
    """
    try:
        from moorage.integrations.ironic.gate import probe
        from moorage.integrations.pem_files import PemError, trusting
    except ImportError as error:
        raise Failure(USAGE, f"this command {needs('ironic', error)}") from None
    addresses = ironic_url(gate, "--gate"), ironic_url(ironic, "--ironic")
    try:
        trusted = None if ca_file is None else trusting(ca_file)
    except PemError as error:
        raise Failure(USAGE, str(error)) from None
    found = probe.check(*addresses, trusted)
    if as_json:
        show_json([{"good": one.good, "text": one.text} for one in found])
    else:
        for one in found:
            say(f"{'good' if one.good else 'BAD'}: {one.text}")
    click.get_current_context().exit(0 if all(one.good for one in found) else FAILED)


def _settings(words: dict[str, Any]) -> "Settings":
    from moorage.integrations.ironic.gate.process import Settings

    target = target_of(words)
    if words["tls_key"] and not words["tls_cert"]:
        raise Failure(USAGE, "--tls-key needs --tls-cert")
    rules = target.rules
    rules = replace(rules, expected={**rules.expected, **_expected(words.pop("expected"))})
    return Settings(
        ironic=target.ironic,
        ironic_headers=target.ironic_headers,
        trusted=target.trusted,
        moorage=target.url,
        token=target.token,
        rules=rules,
        ironic_name=target.ironic_name,
        hold_counts=words.pop("count_holds"),
        **words,
    )


def _expected(given: tuple[str, ...]) -> dict[str, float]:
    """Return how long work lasts, by verb. Raises Failure."""
    from moorage.integrations.ironic.rules import EVERY_VERB, expected_seconds
    from moorage.integrations.provisioning.rules import RulesError

    found = {}
    for text in given:
        verb, equals, duration = text.partition("=")
        verb, duration = (verb, duration) if equals else (EVERY_VERB, text)
        try:
            found[verb] = expected_seconds(verb, duration)
        except RulesError as error:
            raise Failure(USAGE, f"--expected {text}: {error}") from None
    return found
