"""A token bucket in virtual time: the throttling of clients, and of retries in a queue."""

from tests.support.ironic_double.agenda import Agenda


class Bucket:
    """At most `burst` at once and `rate` a second afterwards."""

    def __init__(self, agenda: Agenda, rate: float, burst: int) -> None:
        self._agenda, self._rate, self._burst = agenda, rate, burst
        self._tokens, self._at = float(burst), agenda.now

    def reserve(self) -> float:
        """Take a token; return how many seconds the caller must wait for it."""
        self._agenda.catch_up()
        now = self._agenda.now
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate) - 1
        self._at = now
        return max(0.0, -self._tokens / self._rate)

    async def take(self) -> None:
        """Wait for a token."""
        if seconds := self.reserve():
            await self._agenda.wait(seconds, lambda: None)
