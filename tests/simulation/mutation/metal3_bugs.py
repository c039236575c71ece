"""The bugs of the governor of metal3's hosts that `make mutate` plants.

The invariants, P1 to P8 and H1 to H8, are in `tests/simulation/metal3/auditor.py`.
"""

from tests.simulation.mutation.bug import METAL3, Bug

FOLDER = "src/moorage/integrations/metal3"
HOSTS = f"{FOLDER}/hosts.py"
REQUESTS = f"{FOLDER}/requests.py"
GOVERNOR = f"{FOLDER}/governor.py"
RESTING = f"{FOLDER}/resting.py"
DECISION = f"{FOLDER}/admission_decision.py"
DEADLOCK = "src/moorage/integrations/provisioning/deadlock.py"


def _bug(invariant: str, said: str, path: str, text: str, wrong: str) -> Bug:
    return Bug(invariant, said, path, text, wrong, METAL3)


METAL3_BUGS = (
    _bug(
        "H8",
        "a host that has failed keeps its units for as long as it can never finish",
        RESTING,
        "            return pause_of(host) == OWN or self._clock - seen.since >= STILL_SECONDS\n",
        "            return False\n",
    ),
    _bug(
        "P2",
        "a host with an error gives its units back, though it may try again at this moment",
        RESTING,
        "            return pause_of(host) == OWN or self._clock - seen.since >= STILL_SECONDS\n",
        "            return True\n",
    ),
    _bug(
        "P7",
        "hosts wait for each other, and no other one can start",
        DEADLOCK,
        "        return deadlocked(hosts, limits)\n",
        "        return []\n",
    ),
    _bug(
        "H6",
        "a host goes over the limit that need only wait",
        DEADLOCK,
        "                free.update(one.has)\n",
        "                waiting.append(one)\n",
    ),
    _bug(
        "P1",
        "every host is started over the limit",
        GOVERNOR,
        "forced=needs.exempt,",
        "forced=True,",
    ),
    _bug(
        "P2",
        "a host between two deployments gives its unit back",
        HOSTS,
        "    return work_of(host) is not None or (not waits and start_of(host) is not None)\n",
        "    return work_of(host) is not None or (not waits and False)\n",
    ),
    _bug(
        "P2",
        "a host that is removed gives its unit back",
        HOSTS,
        "    return occupies(host) or is_leaving(host)\n",
        "    return occupies(host)\n",
    ),
    _bug(
        "P2",
        "a host that is to be detached starts nothing more",
        HOSTS,
        "    return gone or state_of(host) in (*AVAILABLE, *PROVISIONED)\n",
        "    return True\n",
    ),
    _bug(
        "H7",
        "a lost answer is a refusal",
        REQUESTS,
        "outcome_of(error.status)",
        "outcome_of(HTTPStatus.CONFLICT)",
    ),
    _bug(
        "P2",
        "a host starts when another pause is removed",
        DECISION,
        "    if old is None or pause_of(old) not in (None, OWN):\n",
        "    if old is None:\n",
    ),
    _bug(
        "P7",
        "a host that has nothing to start keeps our pause",
        GOVERNOR,
        "                    changes.append((host, self._requests.unpause))\n",
        "                    pass\n",
    ),
    _bug(
        "H1",
        "every write of an idle host pauses it",
        DECISION,
        "    return bool(held) and (not before or Verb.PROVISION in held - before)\n",
        "    return True\n",
    ),
    _bug(
        "H5",
        "an image that comes while a host is inspected does not wait",
        HOSTS,
        "        return verbs_of(host, work) - {work}\n",
        "        return frozenset()\n",
    ),
    _bug(
        "H2",
        "the pause of somebody else is removed",
        GOVERNOR,
        "            if pause_of(host) != OWN:\n",
        "            if pause_of(host) is None:\n",
    ),
    _bug(
        "H2",
        "a pause is removed whatever the host has become",
        REQUESTS,
        '{"annotations": dict(annotations), "resourceVersion": version}',
        '{"annotations": dict(annotations)}',
    ),
    _bug(
        "H3",
        "the governor switches a host on that it starts",
        REQUESTS,
        '(path, {"metadata": metadata})',
        '(path, {"metadata": metadata, "spec": {"online": True}})',
    ),
)
