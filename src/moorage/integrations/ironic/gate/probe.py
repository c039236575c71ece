"""`moorage gate check`: whether clients are led through the gate, and cannot go past it."""

import asyncio
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import aiohttp

from moorage.integrations.connection_errors import reason_of
from moorage.integrations.ironic.gate.answers import VERSIONS

SECONDS_MAX = 5.0


@dataclass(frozen=True)
class Finding:
    """One thing that was tried, and whether it is as it should be."""

    good: bool
    text: str


def check(gate: str, ironic: str, trusted: ssl.SSLContext | None = None) -> list[Finding]:
    """Try the gate and Ironic from this machine.

    Args:
        gate: address of the gate.
        ironic: address of Ironic itself.
        trusted: authorities to trust; None: those of the system.
    """
    return asyncio.run(_check(gate, ironic, trusted))


async def _check(gate: str, ironic: str, trusted: ssl.SSLContext | None) -> list[Finding]:
    tls = True if trusted is None else trusted
    timeout = aiohttp.ClientTimeout(total=SECONDS_MAX)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        try:
            async with session.get(f"{gate.rstrip('/')}/v1", ssl=tls) as answer:
                text = await answer.text(errors="replace")
                known = all(name in answer.headers for name in VERSIONS)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return [Finding(False, f"the gate {gate} does not answer: {reason_of(error)}")]
    found = [Finding(known, f"{gate} {'answers' if known else 'does not answer'} as Ironic")]
    found += _links(gate, ironic, text)
    return [*found, await _direct(ironic)]


def _links(gate: str, ironic: str, text: str) -> Iterator[Finding]:
    """Yield whether the links in an answer lead to the gate."""
    past = ironic.rstrip("/") in text and ironic.rstrip("/") != gate.rstrip("/")
    where = f"to {ironic}, past the gate" if past else "not past the gate"
    yield Finding(not past, f"links in answers lead {where}")


async def _direct(ironic: str) -> Finding:
    """Return whether somebody on this machine can connect to Ironic itself."""
    parts = urlsplit(ironic)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        async with asyncio.timeout(SECONDS_MAX):
            _, writer = await asyncio.open_connection(parts.hostname, port)
    except (TimeoutError, OSError) as error:
        return Finding(
            True, f"{ironic} cannot be reached past the gate from here ({reason_of(error)})"
        )
    writer.close()
    return Finding(
        False, f"{ironic} can be reached past the gate from here: allow only the gate to connect"
    )
