"""The phases of the example: the past, the server, the fleet, then life until a signal."""

import argparse
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import chain, islice

from demo.asking import HttpAsker, RefusalError
from demo.fleet import Fleet
from demo.jobs import Jobs
from demo.past import PlayedTime, past_make
from demo.serving import check_free, own_folder, served
from demo.stopping import Stop
from moorage.client.transport import Transport
from moorage.service.access.roles import Role

TICK_SECONDS = 0.5

PATIENCE_SECONDS = 60.0
"""For how long it asks a busy server again while it builds."""

FILLED_FIRST = 1
"""Parts of the fleet that are in use when it is ready; the others follow, some at a time."""

SAID_MAX = 20
"""Refusals that are said: after them it is known that the machine has too much to do."""

ADMIN, READER = "admin", "reader"
TOKENS = (
    (ADMIN, Role.ADMIN),
    (Jobs.owner, Role.SERVICE),
    (READER, Role.READER),
)


def run(words: argparse.Namespace, stop: Stop) -> None:
    """Run it. Raises StoppedError when a signal arrives, NotServedError."""
    began = time.monotonic()
    check_free(words.listen)
    with ExitStack() as stack:
        folder = stack.enter_context(own_folder())
        database = f"sqlite:///{folder / 'demo.sqlite'}"
        past = 60 * words.past
        played = PlayedTime(past)
        jobs = Jobs(words.seed, words.hosts, words.jobs, past)
        say(f"demo: playing {words.past} minutes of jobs, so that pages have a past")
        secrets = past_make(database, played, jobs, TOKENS, stop)
        server = stack.enter_context(served(folder, database, words.listen, stop))
        url = server.url
        admin = HttpAsker(Transport(url, secrets[ADMIN]), stop, PATIENCE_SECONDS)
        owner = HttpAsker(Transport(url, secrets[Jobs.owner]), stop, PATIENCE_SECONDS)
        say(f"demo: building {words.hosts} machines")
        fleet = Fleet(admin, words.hosts, words.seed)
        filling = fleet.filling()
        for _ in chain(fleet.building(), islice(filling, FILLED_FIRST)):
            server.check()
            jobs.tick(played.passed(), owner, admin, connected=True)
        say(f"demo: ready after {time.monotonic() - began:.0f} s")
        say(f"  address   {url}/ui")
        say(f"  sign in   {secrets[READER]}  (reader: looks at everything)")
        say(f"  or with   {secrets[ADMIN]}  (admin: may also change it, and see who did what)")
        say("  end       Ctrl-C; nothing is kept")
        for asker in (admin, owner):
            asker.hurry()
        said: set[str] = set()
        while True:
            server.check()
            live(lambda: jobs.tick(played.passed(), owner, admin, connected=True), said)
            live(fleet.tick, said)
            live(lambda: next(filling, None), said)
            stop.wait(TICK_SECONDS)


def live(act: Callable[[], object], said: set[str]) -> None:
    """Do what is due. A refusal is said once, and ends nothing: the next moment may be better."""
    try:
        act()
    except RefusalError as error:
        text = str(error)
        if text not in said and len(said) < SAID_MAX:
            said.add(text)
            say(f"demo: {text}; it goes on")


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)
