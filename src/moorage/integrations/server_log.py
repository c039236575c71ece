"""The log of servers made with aiohttp."""

import logging

from aiohttp.http import HttpProcessingError


class _WithoutRefused(logging.Filter):
    """Drops what aiohttp says of requests that are not HTTP.

    It would be a traceback for each, with the line that is not valid: perhaps a token.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is of anything else."""
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, HttpProcessingError)


server_log = logging.getLogger("moorage.integrations.server")
server_log.addFilter(_WithoutRefused())
