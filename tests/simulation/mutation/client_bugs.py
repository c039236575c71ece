"""The bugs of what waits on other machines that `make mutate` plants; the client's tests find them.

C1: it ends with its shell. C2: what nobody gets is given back. C3: a loop ends with its script.
C4: a withdrawal is final. C5: nothing waits for itself. C6: only curl's proxies are used.
"""

from tests.simulation.mutation.bug import CLIENT, Bug

STARTERS = "src/moorage/client/run/process/starters.py"
ACQUIRING = "src/moorage/client/run/handles/acquiring.py"

CLIENT_BUGS = (
    Bug(
        "C1",
        "only the parent counts, and a subshell outlives its script",
        STARTERS,
        "        if found and not in_group:\n",
        "        if found:\n",
        CLIENT,
    ),
    Bug(
        "C1",
        "a zombie counts as alive",
        STARTERS,
        "        return status[0] not in DEAD and one.began",
        "        return one.began",
        CLIENT,
    ),
    Bug(
        "C2",
        "the reader of the output does not matter",
        STARTERS,
        "    return not poll.poll(0)\n",
        "    return True\n",
        CLIENT,
    ),
    Bug(
        "C2",
        "a lease that cannot be printed is kept",
        ACQUIRING,
        "            give_back_entry(this.handle, entry, this.leases, this.timeout)\n",
        "            pass\n",
        CLIENT,
    ),
    Bug(
        "C3",
        "a loop renews for ever",
        "src/moorage/client/run/handles/commands.py",
        "        while starters.gone() is None:\n",
        "        while True:\n",
        CLIENT,
    ),
    Bug(
        "C4",
        "a withdrawn ticket is asked for again",
        "src/moorage/client/run/lease/acquire.py",
        "    if lease.cause in BY_OWNER:\n",
        "    if False:\n",
        CLIENT,
    ),
    Bug(
        "C4",
        "with best effort a withdrawn command runs",
        "src/moorage/client/run/parse.py",
        "        if why in DECISIONS or (paused and self.unless_paused):\n",
        "        if paused and self.unless_paused:\n",
        CLIENT,
    ),
    Bug(
        "C5",
        "a request waits for the lease around it",
        "src/moorage/client/run/lease/nesting.py",
        "    if lasting and leaves(lasting) < units <= leaves([]):\n",
        "    if False:\n",
        CLIENT,
    ),
    Bug(
        "C6",
        "HTTP_PROXY is for http, too",
        "src/moorage/client/proxies.py",
        '(() if scheme == "http" else (own.upper(),))',
        "(own.upper(),)",
        CLIENT,
    ),
)
