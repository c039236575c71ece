"""Sweeps of many leases and pools; a faulty one does not stop the others."""

import logging
from collections.abc import Awaitable, Callable, Sequence

from moorage.core.errors import Error
from moorage.service.admission.lease_cases import Sweep
from moorage.service.batch.transactor import Transactor

FAULTY_TOLD = 20
"""Leases and pools that one log line names."""

log = logging.getLogger("moorage.sweeping")


class FaultyError(Exception):
    """Leases and pools that cannot be swept."""

    def __init__(self, faulty: Sequence[str]) -> None:
        more = f" and {len(faulty) - FAULTY_TOLD} more" if len(faulty) > FAULTY_TOLD else ""
        super().__init__(
            f"{', '.join(faulty[:FAULTY_TOLD])}{more} cannot be swept; "
            "`moorage db check` may show why"
        )


async def swept(
    transactor: Transactor,
    whole: Sweep,
    parts: Callable[[], Awaitable[Sequence[tuple[str, Sweep]]]],
) -> bool:
    """Sweep all together; if that fails, part by part, so that only the faulty parts remain.

    Args:
        transactor: executes the sweeps.
        whole: the sweep of everything.
        parts: returns the same as separate sweeps, by name.

    Returns the answer of `whole`, or true if it was swept in parts.
    Raises `Error`: UNAVAILABLE, OVERLOADED, which mean no fault of a part; FaultyError.
    """
    try:
        return await transactor.submit(whole)
    except Error:
        raise
    except Exception:
        log.exception("a sweep failed; sweeping part by part")
    faulty = []
    for name, part in await parts():
        try:
            await transactor.submit(part)
        except Error:
            raise
        except Exception:  # the transactor has logged it
            faulty.append(name)
    if faulty:
        raise FaultyError(faulty)
    return True
