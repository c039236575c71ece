"""The reason why a BareMetalHost waits, in its annotation `moorage.dev/waiting`.

It is YAML with one field a line; long texts go on in lines that are indented. `kubectl describe`
shows it line by line, and cuts lines of more than 138 characters. Neither BMO nor its webhook reads
annotations that they do not know (baremetal-operator 02aa505, `validateAnnotations`): BMO looks
once, and finds the host paused.
"""

import asyncio
import json
import logging
from collections.abc import Mapping
from datetime import datetime
from textwrap import wrap

from moorage.client.run.printing import printable
from moorage.integrations.clock import monotonic
from moorage.integrations.kubernetes.api import KubernetesError
from moorage.integrations.metal3.hosts import OWN, WAITING, BareMetalHost, annotations_of, pause_of
from moorage.integrations.metal3.requests import HostRequests
from moorage.integrations.provisioning.notes import UNREADABLE, Note, NoteWriter

NOTED = "noted"
"""The field that says when a note was written: its `eta_seconds` count from then."""

TEXT_LENGTH_MAX = 500
"""Characters of one field."""

NOTE_LENGTH_MAX = 10_000
"""Characters of a note that are read: ours are shorter, whatever they say."""

WIDTH = 96
"""Characters of one line, if its words are not longer."""

PUT_SECONDS = 1.0
"""How long to wait until one note is written: a webhook may not answer for a host."""

REST_SECONDS = 60.0
"""How long a host gets no note after one could not be written, so that others get theirs."""

FOLD = "\n  "
"""The beginning of a line that goes on with the field before; YAML reads it as one space."""

log = logging.getLogger("moorage.metal3")


def plain(note: Note) -> Note:
    """Return a note whose texts are printable, on one line, and not too long."""
    return {
        name: _plain(value) if isinstance(value, str) else value for name, value in note.items()
    }


def text_of(note: Note, at: datetime) -> str:
    """Return the annotation of a host that says a plain note; `at` is when."""
    fields = {**note, NOTED: at.isoformat(timespec="seconds")}
    return "\n".join(
        _wrapped(f"{name}: {json.dumps(value, ensure_ascii=False)}")
        for name, value in fields.items()
    )


def _wrapped(line: str) -> str:
    lines = wrap(line, WIDTH, break_long_words=False, break_on_hyphens=False)
    return FOLD.join(lines)


def said_by(host: BareMetalHost) -> Note | None:
    """Return the note that a host says; None: none. All who may write the host may write it."""
    text: object = annotations_of(host).get(WAITING)
    if text is None:
        return None
    if not isinstance(text, str) or len(text) > NOTE_LENGTH_MAX:
        return UNREADABLE
    try:
        pairs = [line.partition(": ") for line in text.replace(FOLD, " ").split("\n")]
        return {name: json.loads(value) for name, _, value in pairs}
    except (ValueError, RecursionError):
        return UNREADABLE


class Notes:
    """Writes the notes of one cluster's hosts."""

    def __init__(self, requests: HostRequests) -> None:
        self._requests = requests
        self._writer = NoteWriter(self._put)
        self._hosts: Mapping[str, BareMetalHost] = {}
        self._at = datetime.min
        self._rests: dict[str, float] = {}
        """Until when hosts get no notes, by UID."""

    async def write(
        self, hosts: Mapping[str, BareMetalHost], wanted: Mapping[str, Note], at: datetime
    ) -> None:
        """Make hosts say what they should; those that have changed meanwhile follow later.

        A host with our pause keeps its note if there is no other one: another process may be about
        to start it, and removes both in one write.
        """
        self._hosts, self._at = hosts, at
        clock = monotonic()
        self._rests = {
            uid: until for uid, until in self._rests.items() if uid in hosts and clock < until
        }
        now = {uid: said_by(host) for uid, host in hosts.items() if uid not in self._rests}
        kept = {
            uid: note
            for uid, note in now.items()
            if note is not None and pause_of(hosts[uid]) == OWN
        }
        # Compare the text as it is written: otherwise a long text would never be equal.
        texts = {uid: plain(note) for uid, note in wanted.items()}
        await self._writer.write(now, {**kept, **texts})

    async def _put(self, uid: str, note: Note | None) -> bool:
        text = None if note is None else text_of(note, self._at)
        try:
            async with asyncio.timeout(PUT_SECONDS):
                # Not if the host was changed: it may have been granted meanwhile.
                return await self._requests.note(self._hosts[uid], text)
        except KubernetesError as error:
            log.debug("cannot write the note on host %s: %s", uid, error)
            if not error.is_of_server:
                self._rests[uid] = monotonic() + REST_SECONDS
        except TimeoutError:
            log.debug("the note on host %s is not written within %g s", uid, PUT_SECONDS)
            self._rests[uid] = monotonic() + REST_SECONDS
        return False


def _plain(text: str) -> str:
    return " ".join(printable(text).split())[:TEXT_LENGTH_MAX].rstrip()
