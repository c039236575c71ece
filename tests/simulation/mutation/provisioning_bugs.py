"""The bugs of the provisioning of hosts that `make mutate` plants.

The invariants, P1 to P8, are in `tests/simulation/provisioning/auditor.py`.
"""

from tests.simulation.mutation.bug import PROVISIONING, Bug

UNIT_RELEASE = "src/moorage/integrations/provisioning/unit_release.py"
HOST_LEASES = "src/moorage/integrations/provisioning/host_leases.py"
KNOWN_HOSTS = "src/moorage/integrations/provisioning/known_hosts.py"
REQUEST_STEPS = "src/moorage/integrations/provisioning/request_steps.py"
IRONIC = "src/moorage/integrations/ironic"
RECONCILE = "src/moorage/integrations/provisioning/reconcile.py"
STARTING = "src/moorage/integrations/provisioning/host_starter.py"
CORE = "src/moorage/core/admission"


def _bug(invariant: str, said: str, path: str, text: str, wrong: str) -> Bug:
    return Bug(invariant, said, path, text, wrong, PROVISIONING)


PROVISIONING_BUGS = (
    _bug(
        "P1",
        "what waits for its turn shares what was forced",
        HOST_LEASES,
        "if _covers(lease, needs) and (forced or not lease.forced):",
        "if _covers(lease, needs):",
    ),
    _bug(
        "P1",
        "the gate counts what is busy instead of asking",
        f"{IRONIC}/gate/deciding.py",
        "        elif requirement is Requirement.NOTHING or not needs.units:\n",
        "        elif len(self._watch.picture.busy) < 1:\n",
    ),
    _bug(
        "P1",
        "tear-downs of wishes and rollouts are forced",
        f"{IRONIC}/starting.py",
        "        forced=needs.exempt,\n",
        '        forced=needs.exempt or verb in ("deleted", "undeploy"),\n',
    ),
    _bug(
        "P2",
        "a unit is released whatever its record has become",
        HOST_LEASES,
        "            await self._api.release(noted.id, noted.record_version)\n",
        "            await self._api.release(noted.id)\n",
    ),
    _bug(
        "P2",
        "a request is forwarded before it is stored",
        REQUEST_STEPS,
        "        lease = await host_leases.steps.sent(lease, request.id)\n",
        "        await request.send()\n"
        "        lease = await host_leases.steps.sent(lease, request.id)\n",
    ),
    _bug(
        "P2",
        "a request without an answer has no grace",
        UNIT_RELEASE,
        "    return not noted.sent or noted.age >= WIRE_GRACE_SECONDS\n",
        "    return True\n",
    ),
    _bug(
        "P2",
        "a server error is a refusal",
        UNIT_RELEASE,
        "    if status is None or status >= HTTPStatus.INTERNAL_SERVER_ERROR:\n",
        "    if status is None:\n",
    ),
    _bug(
        "P2",
        "one refusal releases although another request is under way",
        UNIT_RELEASE,
        "    return state.version > 0 and not state.sent and not state.begun\n",
        "    return state.version > 0 and not state.begun\n",
    ),
    _bug(
        "P2",
        "a refusal makes forgotten that work has begun",
        UNIT_RELEASE,
        "    begun = state.begun or outcome is RequestOutcome.ACCEPTED\n",
        "    begun = outcome is RequestOutcome.ACCEPTED\n",
    ),
    _bug(
        "P2",
        "a process that was stopped sends what it has stored long ago",
        REQUEST_STEPS,
        "    if request.left() or monotonic() - began > SEND_SECONDS:\n",
        "    if request.left():\n",
    ),
    _bug(
        "P2",
        "nodes are read before the leases",
        RECONCILE,
        "        noted = await self._host_leases.working(self._words.system)\n"
        "        hosts = await self._system.hosts()\n",
        "        hosts = await self._system.hosts()\n"
        "        noted = await self._host_leases.working(self._words.system)\n",
    ),
    _bug(
        "P2",
        "the server does not compare the version of a release",
        f"{CORE}/leases.py",
        "        check_version(found, version)\n        if cause",
        "        if cause",
    ),
    _bug(
        "P3",
        "the gate grants before it has seen all nodes",
        f"{IRONIC}/gate/units.py",
        "            if not want.force:\n                await self._seen_all(until)\n",
        "",
    ),
    _bug(
        "P3",
        "the first look counts nothing",
        RECONCILE,
        "        if not hosts:\n            return set(), {}, {}\n",
        "        if not hosts or not self._renewed:\n            return set(), {}, {}\n",
    ),
    _bug(
        "P4",
        "the second governor sends the same wish",
        STARTING,
        "        except (TakenError, EndedError):\n            return NOT_SENT\n",
        "        except (TakenError, EndedError):\n"
        "            return await self._requests.send(now)\n",
    ),
    _bug(
        "P4",
        "a unit is released before its wish is removed",
        RECONCILE,
        "            if not await self._system.before_release(lease, host):\n"
        "                return False\n",
        "",
    ),
    _bug(
        "P5",
        "what is busy without a unit is never counted",
        RECONCILE,
        "        if not hosts:\n            return set(), {}, {}\n",
        "        if True:\n            return set(), {}, {}\n",
    ),
    _bug(
        "P6",
        "what was granted to nobody is never released",
        UNIT_RELEASE,
        "        return noted.age >= GRANT_GRACE_SECONDS\n",
        "        return False\n",
    ),
    _bug(
        "P6",
        "a request without an answer keeps its unit for ever",
        UNIT_RELEASE,
        "    return not noted.sent or noted.age >= WIRE_GRACE_SECONDS\n",
        "    return not noted.sent\n",
    ),
    _bug(
        "P6",
        "the unit of a host that was deleted while nobody looked stays",
        KNOWN_HOSTS,
        "        identity = identity_of(installation)\n",
        "        return False\n",
    ),
    _bug(
        "P7",
        "a key cannot be used again",
        HOST_LEASES,
        "            reopen=True,\n",
        "            reopen=False,\n",
    ),
    _bug(
        "P8",
        "an answer that another process has made obsolete ends the request",
        HOST_LEASES,
        "        except (EndedError, CrowdedError, NotSentError) as error:\n",
        "        except (CrowdedError, NotSentError) as error:\n",
    ),
)
