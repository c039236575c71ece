"""The bugs of the candidate search that `make mutate` plants.

S1: what fits is found, in time, whatever conditions relate the groups. S2: nothing else is found.
S3: a search that finds nothing has used its steps, or proves that nothing is there; the next one
tries something else.
"""

from tests.simulation.mutation.bug import SEARCH, Bug

ROOM = "src/moorage/core/ledger/search"

SEARCH_BUGS = (
    Bug(
        "S1",
        "related groups are combined one after another, whatever relates them",
        f"{ROOM}/combine/combiner.py",
        "    if not any(lines):\n",
        "    if True:\n",
        SEARCH,
    ),
    Bug(
        "S1",
        "dead ends forget what is held",
        f"{ROOM}/combine/dead_ends.py",
        "            left[name] -= amount\n",
        "            pass\n",
        SEARCH,
    ),
    Bug(
        "S1",
        "dead ends are visited again and again",
        f"{ROOM}/combine/dead_ends.py",
        "            self._known.add(remainder)\n",
        "            pass\n",
        SEARCH,
    ),
    Bug(
        "S2",
        "related groups may be anywhere",
        f"{ROOM}/combine/walk.py",
        "                if not above & (chosen | choice.seats_later[number]):\n",
        "                if False:\n",
        SEARCH,
    ),
    Bug(
        "S3",
        "a tree that took too many steps is given up for good",
        f"{ROOM}/candidates.py",
        "        if rounds.found or not budget.must_try_harder:\n",
        "        if True:\n",
        SEARCH,
    ),
    Bug(
        "S3",
        "the next search begins as the last one did",
        f"{ROOM}/candidates.py",
        "turn=budget.turn + (not found)",
        "turn=start.turn",
        SEARCH,
    ),
)
