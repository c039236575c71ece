"""Sweeps of many leases and pools, of which a faulty one stops no other."""

import logging
from collections.abc import Awaitable, Callable, Sequence

from moorage.core.errors import Error
from moorage.service.admission.lease_cases import Sweep
from moorage.service.batch.transactor import Transactor

FAULTY_TOLD = 20
"""Leases and pools that one line of the log names."""

log = logging.getLogger("moorage.sweeping")


class FaultyError(Exception):
    """What cannot be swept: leases and pools."""

    def __init__(self, faulty: Sequence[str]) -> None:
        more = f" and {len(faulty) - FAULTY_TOLD} more" if len(faulty) > FAULTY_TOLD else ""
        super().__init__(
            f"{', '.join(faulty[:FAULTY_TOLD])}{more} cannot be swept; "
            "`moorage db check` may tell why"
        )


async def swept(
    transactor: Transactor,
    whole: Sweep,
    parts: Callable[[], Awaitable[Sequence[tuple[str, Sweep]]]],
) -> bool:
    """Sweep together; if that fails, part by part, so that only the faulty stays.

    Args:
        transactor: carries it out.
        whole: all of it.
        parts: returns the same by name, each by itself.

    Returns whether anything was due; it was, if it came to the parts.
    Raises `Error`: UNAVAILABLE, OVERLOADED, and nobody is at fault; FaultyError.
    """
    try:
        return await transactor.submit_case(whole)
    except Error:
        raise
    except Exception:
        log.exception("a sweep failed; it is done part by part")
    faulty = []
    for name, part in await parts():
        try:
            await transactor.submit_case(part)
        except Error:
            raise
        except Exception:  # the transactor has logged it
            faulty.append(name)
    if faulty:
        raise FaultyError(faulty)
    return True
