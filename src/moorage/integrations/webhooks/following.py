"""Follows the feed for one hook, and posts what concerns it: each event at least once, in order.

The place in the feed is stored after a post was taken. So a crash, or a lost answer, repeats a post
with the same id, and nothing is kept in memory but the event that is being posted.
"""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

from moorage.client.admission import Admission
from moorage.client.run.api_types import StrangeAnswerError
from moorage.client.run.clock import elapsed, instant, instant_of
from moorage.client.run.lease.acquire import OVER
from moorage.client.run.lease.api import ANSWER_SECONDS, Leases
from moorage.client.run.lease.renewer import FAILURES
from moorage.client.transport import MoorageError, RefusedError, Transport
from moorage.client.watch import ChangesGoneError, Watch
from moorage.integrations.webhooks.cursor_files import CursorFile, Place
from moorage.integrations.webhooks.given_up import GivenUp
from moorage.integrations.webhooks.hooks import LABEL, Event, Hook, LeaseOf
from moorage.integrations.webhooks.posting import Answer, Verdict, send
from moorage.integrations.webhooks.secret_values import SecretError
from moorage.integrations.webhooks.templates import UnfilledError
from moorage.wire.changes import LeaseValue

PAUSE_SECONDS = 0.5
"""The first pause before a post is repeated; each further one is twice as long."""

PAUSE_SECONDS_MAX = 30.0
SHORT_SECONDS_MAX = 4.0
"""The same for a grant that nobody has confirmed: it is soon taken back."""

FAILING_SECONDS_MAX = 300.0
"""How long to repeat a post at which the receiver itself fails: others wait behind it."""

BUSY_SECONDS_MAX = 3600.0
"""How long to repeat a post to which a proxy or the receiver says that it is busy or away, or says
nothing although it is there."""

STORE_SECONDS = 1.0
"""How often the place is stored while only changes come that do not concern the hook."""

SEEN_MARGIN = timedelta(seconds=5)
"""Events this much older than the newest that was posted count as posted, after a gap."""

REMEMBERED_MAX = 10_000
"""Grants that are remembered; the oldest are forgotten, and may be posted again if they change."""

REST_SECONDS = 30.0
"""After a grant that could not be posted in time, nobody waits for tickets for this time."""

N = TypeVar("N")
K = TypeVar("K")


class Following:
    """One hook. `run` works in a thread until `stopped` is set; `trouble` is for other threads."""

    def __init__(
        self,
        transport: Transport,
        hook: Hook,
        file: CursorFile,
        stopped: threading.Event,
        say: Callable[[str], None],
    ) -> None:
        self._transport = transport
        self._admission = Admission(transport)
        self._leases = Leases(transport)
        self.hook = hook
        self._file = file
        self._stopped = stopped
        self._tell = say
        self._place = file.read()
        self._stored_at = 0.0
        self._granted: dict[str, datetime | None] = {}
        """The last grants that were posted: a lease changes several times while it is granted."""
        self._failing = False
        self._lost: dict[tuple[str, Verdict], float] = {}
        """Seconds for which the receiver has failed at a lease, in all its grants."""
        self._given_up = GivenUp(file.folder, hook.name)
        self._rests_until = 0.0
        self.refused: dict[str, None] = {}
        """The last leases whose grant the receiver has refused: it will not take the next one."""

    @property
    def is_failing(self) -> bool:
        """Whether posts do not get through now, so that a grant would be for nobody."""
        return self._failing or elapsed() < self._rests_until

    def run(self) -> None:
        """Follow until stopped; a server that does not answer, or refuses, is asked again."""
        pause = PAUSE_SECONDS
        while not self._stopped.is_set():
            try:
                self._follow()
                pause = PAUSE_SECONDS
            except ChangesGoneError:
                self._say("changes were missed: posting the present state of its leases")
                self._place = Place("", None if self._place is None else self._place.seen)
            # OSError: the place cannot be stored.
            except (MoorageError, StrangeAnswerError, OSError) as error:
                self._say(f"trying again: {error}")
                self._stopped.wait(pause)
                pause = min(2 * pause, PAUSE_SECONDS_MAX)

    def _say(self, text: str) -> None:
        self._tell(f"hook {self.hook.name}: {text}")

    def _follow(self) -> None:
        if self._place is None:  # the first start: only what happens from now on
            self._store(Place(self._admission.leases_page(limit=1).as_of))
        elif not self._place.cursor:
            self._post_present(self._place.seen)
        assert self._place is not None
        watch = Watch(
            self._transport, self._place.cursor, ["lease"], lambda: self._moved(watch.cursor)
        )
        for change in watch:
            value = change.value
            if isinstance(value, LeaseValue):
                self._handle(value)
            if self._stopped.is_set():
                return
            self._moved(watch.cursor)

    def _moved(self, cursor: str | None) -> None:
        """Note that all up to this place is done, and store it now and then."""
        assert self._place is not None
        self._place = self._place._replace(cursor=cursor or self._place.cursor)
        if elapsed() - self._stored_at >= STORE_SECONDS:
            self._store(self._place)

    def _store(self, place: Place) -> None:
        self._place = place
        self._file.write(place)
        self._stored_at = elapsed()

    def _post_present(self, seen: datetime | None) -> None:
        """Post the grants that are valid, and the ends since the newest event that was posted."""
        as_of, cursor = "", None
        labels = None if self.hook.pools else {LABEL: self.hook.name}
        while True:
            page = self._admission.leases_page(labels=labels, cursor=cursor)
            as_of = as_of or page.as_of
            for lease in page.leases:
                ended = lease.ended_at
                if ended is None or seen is None or ended >= seen - SEEN_MARGIN:
                    self._handle(lease)
                if self._stopped.is_set():
                    return
            cursor = page.next
            if cursor is None:
                assert self._place is not None
                self._store(self._place._replace(cursor=as_of))
                return

    def _handle(self, lease: LeaseOf) -> None:
        """Post what has happened to a lease, if it concerns the hook and is new."""
        if lease.state != "granted":
            self._granted.pop(lease.id, None)
        event = self.hook.event(lease)
        if event is None:
            return
        if event == "granted":
            if lease.id in self._granted and self._granted[lease.id] == lease.granted_at:
                return
            _keep(self._granted, lease.id, lease.granted_at)
        self._deliver(event, lease)
        at = lease.granted_at if event == "granted" else lease.ended_at
        assert self._place is not None
        if at is not None and (self._place.seen is None or at > self._place.seen):
            self._place = self._place._replace(seen=at)
        self._stored_at = 0.0  # the place after this event is stored at once

    def _deliver(self, event: Event, lease: LeaseOf) -> None:
        """Post until it is taken, refused for good, or not true any more."""
        pause, since = PAUSE_SECONDS, elapsed()
        instructs = event == "granted" and self.hook.attend
        while not self._stopped.is_set():
            if instructs and not self._is_granted(lease):
                self._say(f"lease {lease.id} is granted no longer: not posted")
                if self._failing:
                    self._rests_until = elapsed() + REST_SECONDS
                self._failing = False
                return
            answer = self._sent(event, lease)
            if answer.verdict is Verdict.TAKEN:
                if instructs:
                    self._confirm(lease)
                if self._failing:
                    self._say("posts get through again")
                self._failing = False
                for verdict in (Verdict.FAILED, Verdict.BUSY):
                    self._lost.pop((lease.id, verdict), None)
                return
            if answer.verdict is Verdict.REFUSED or self._is_enough(lease, answer, since):
                self._give_up(event, lease, answer.text)
                return
            since = elapsed()
            if not self._failing:
                self._say(f"trying again: {event} of lease {lease.id}: {answer.text}")
            self._failing = True
            self._stopped.wait(max(pause, answer.retry_after or 0.0))
            pause = min(2 * pause, SHORT_SECONDS_MAX if instructs else PAUSE_SECONDS_MAX)

    def _is_enough(self, lease: LeaseOf, answer: Answer, since: float) -> bool:
        """Return whether the receiver has failed at a lease for too long; `since`: the last try."""
        if answer.verdict is Verdict.LATER:
            return False
        key = (lease.id, answer.verdict)
        _keep(self._lost, key, self._lost.get(key, 0.0) + elapsed() - since)
        failed = answer.verdict is Verdict.FAILED
        return self._lost[key] > (FAILING_SECONDS_MAX if failed else BUSY_SECONDS_MAX)

    def _give_up(self, event: Event, lease: LeaseOf, why: str) -> None:
        """Leave an event out, and keep it for people."""
        self._say(f"gave up: {event} of lease {lease.id}: {why}")
        try:
            self._given_up.add(event, lease, why)
        except OSError as error:
            self._say(f"cannot keep it in {self._given_up.path}: {error.strerror}")
        _keep(self.refused, lease.id, None)
        self._failing = False

    def _sent(self, event: Event, lease: LeaseOf) -> Answer:
        try:
            post = self.hook.post(event, lease, round(instant_of(instant()).timestamp()))
        except UnfilledError as error:
            return Answer(Verdict.REFUSED, str(error))
        except (SecretError, ValueError) as error:
            return Answer(Verdict.LATER, str(error))
        return send(self.hook, post)

    def _is_granted(self, lease: LeaseOf) -> bool:
        """Return whether a lease is granted. This look does not confirm the grant."""
        try:
            return self._leases.look(lease.id).state == "granted"
        except RefusedError as refusal:
            return refusal.code not in OVER
        except FAILURES:
            return True  # what is not known may be true

    def _confirm(self, lease: LeaseOf) -> None:
        """Confirm a grant, whose receiver knows of it: now it lasts for its TTL."""
        try:
            self._leases.renew(lease.id, None, ANSWER_SECONDS)
        except FAILURES as failure:  # it waits again, or its job has it already
            self._say(f"cannot confirm lease {lease.id}: {failure}")


def _keep(memory: dict[N, K], name: N, value: K) -> None:
    """Remember a value; forget the oldest beyond the bound."""
    memory[name] = value
    while len(memory) > REMEMBERED_MAX:
        memory.pop(next(iter(memory)))
