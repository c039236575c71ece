"""The phases of the example: the past, the server, the fleet, then life until a signal."""

import argparse
import time
from contextlib import ExitStack

from demo.asking import HttpAsker
from demo.fleet import Fleet
from demo.jobs import Jobs
from demo.past import PlayedTime, past_make
from demo.serving import check_free, own_folder, served
from demo.stopping import Stop
from moorage.client.transport import Transport
from moorage.service.access.roles import Role

TICK_SECONDS = 0.5

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
        url = stack.enter_context(served(folder, database, words.listen, stop))
        admin = HttpAsker(Transport(url, secrets[ADMIN]), stop)
        owner = HttpAsker(Transport(url, secrets[Jobs.owner]), stop)
        say(f"demo: building {words.hosts} machines")
        fleet = Fleet(admin, words.hosts, words.seed)
        for _ in fleet.building():
            jobs.tick(played.passed(), owner, admin, connected=True)
        say(f"demo: ready after {time.monotonic() - began:.0f} s")
        say(f"  address   {url}/ui")
        say(f"  sign in   {secrets[READER]}  (reader: looks at everything)")
        say(f"  or with   {secrets[ADMIN]}  (admin: may also change it, and see who did what)")
        say("  end       Ctrl-C; nothing is kept")
        while True:
            jobs.tick(played.passed(), owner, admin, connected=True)
            fleet.tick()
            stop.wait(TICK_SECONDS)


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)
