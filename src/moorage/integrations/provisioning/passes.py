"""What happens if a pass of a governor fails; the commands decide when the next one begins."""

import logging
from collections.abc import Awaitable, Callable

from moorage.integrations.provisioning.line import Line
from moorage.integrations.provisioning.start import PASS_ERRORS


class Passes:
    """The passes of one governor.

    If its hosts' system or Moorage does not answer, no request waits for a unit until a pass has
    succeeded again.
    """

    def __init__(
        self,
        once: Callable[[], Awaitable[None]],
        line: Line,
        log: logging.Logger,
        failed: Callable[[str], None],
    ) -> None:
        """Prepare passes.

        Args:
            once: makes one pass.
            line: waits for units.
            log: says when passes begin and end to fail.
            failed: is called for each pass that has failed, with the reason.
        """
        self._once = once
        self._line = line
        self._log = log
        self._failed = failed
        self._fails = False

    async def tick(self) -> bool:
        """Make one pass; return whether it succeeded. It says when it begins and ends to fail."""
        try:
            await self._once()
        except PASS_ERRORS as error:
            self._line.pause()
            self._failed(str(error))
            if not self._fails:
                self._log.warning("nothing is started or released: %s", error)
            self._fails = True
            return False
        if self._fails:
            self._log.warning("works again")
        self._fails = False
        return True
