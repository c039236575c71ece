"""Warnings at startup: settings by which strangers can do or read too much."""

from collections.abc import Iterator

from moorage.config import Settings
from moorage.config.addresses import Address


def warnings(settings: Settings, main: Address, boskos: Address | None = None) -> Iterator[str]:
    """Yield one line for each dangerous setting.

    Args:
        settings: of the process.
        main: the address on which it listens.
        boskos: the address for clients of Boskos; None: there is none.
    """
    if settings.insecure:
        yield "insecure is deprecated: set insecure_noauth2 or insecure_boskos, whichever you need"
    plain = settings.tls_cert is None and not settings.trusted_proxies
    if not main.loopback:
        if settings.auth == "noauth2":
            yield (
                f"auth is noauth2: anyone who can reach {main.text} is an administrator"
                " without any password"
            )
        elif plain:
            yield (
                f"tokens reach {main.text} unencrypted: set tls_cert and tls_key, or listen on"
                " 127.0.0.1 behind a proxy with TLS"
            )
    if boskos is not None and not boskos.loopback:
        if settings.boskos_password_file is None:
            yield (
                f"boskos_password_file is not set: anyone who can reach {boskos.text} can acquire"
                " and release all resources"
            )
        elif plain:
            yield f"the passwords of Boskos' clients reach {boskos.text} unencrypted"
