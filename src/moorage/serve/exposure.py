"""What the log should warn of at the start: settings by which strangers may do or read too much."""

from collections.abc import Iterator

from moorage.config import Settings
from moorage.config.addresses import Address


def warnings(settings: Settings, main: Address, boskos: Address | None = None) -> Iterator[str]:
    """Yield one line for each danger.

    Args:
        settings: of the process.
        main: where it listens.
        boskos: where it listens for clients of Boskos.
    """
    if settings.insecure:
        yield "insecure is deprecated: set insecure_noauth2 or insecure_boskos, whichever you need"
    plain = settings.tls_cert is None and not settings.trusted_proxies
    if not main.loopback:
        if settings.auth == "noauth2":
            yield (
                f"auth is noauth2: whoever can reach {main.text} is an administrator"
                " without any password"
            )
        elif plain:
            yield (
                f"tokens reach {main.text} unencrypted: set tls_cert and tls_key, or listen on"
                " 127.0.0.1 behind a proxy that does TLS"
            )
    if boskos is not None and not boskos.loopback:
        if settings.boskos_password_file is None:
            yield (
                f"boskos_password_file is not set: whoever can reach {boskos.text} can take and"
                " release everybody's resources"
            )
        elif plain:
            yield f"the passwords of Boskos' clients reach {boskos.text} unencrypted"
