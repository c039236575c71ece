"""Decides a request that may make a node busy: its unit, Ironic, the answer.

Requests that need a unit are sent by the steps of `provisioning/request_steps.py`.
"""

import asyncio
import json
import logging
from dataclasses import dataclass

import aiohttp
from multidict import CIMultiDict

from moorage.client.decoding import UndecodableError
from moorage.client.transport import RefusedError, UnreachableError
from moorage.integrations.clock import monotonic
from moorage.integrations.connection_errors import reason_of
from moorage.integrations.ironic.clients import ClientPolicy
from moorage.integrations.ironic.gate.answers import HttpAnswer, fault
from moorage.integrations.ironic.gate.heads import credentials
from moorage.integrations.ironic.gate.metrics import GateMetrics
from moorage.integrations.ironic.gate.spool import Spool
from moorage.integrations.ironic.gate.turns import Turns
from moorage.integrations.ironic.gate.units import HeldBackError, Units, WaitingError, Want
from moorage.integrations.ironic.gate.upstream import AwayError, Upstream
from moorage.integrations.ironic.gate.watch import Watch
from moorage.integrations.ironic.nodes import VERSION_HEADER, Node, fault_of
from moorage.integrations.ironic.reconcile import host_of_node
from moorage.integrations.ironic.refusals import is_for_now, outcome_of
from moorage.integrations.ironic.rules import Rules, is_forced
from moorage.integrations.ironic.states import (
    BUSY,
    EVENTS,
    Requirement,
    requirement_of,
    ruling_verbs,
    synonyms_of,
)
from moorage.integrations.provisioning.host_leases import HostLeases
from moorage.integrations.provisioning.request_steps import Answered, Request, send_with_steps
from moorage.integrations.provisioning.rules import Needs, value_of
from moorage.integrations.provisioning.unit_release import RequestOutcome
from moorage.integrations.provisioning.work_steps import CrowdedError, EndedError
from moorage.wire.admission import Lease

TRIES = 3
"""How often a unit is asked for again because its lease has ended before it was used."""

NO_ANSWER = (UnreachableError, UndecodableError)
"""Errors: Moorage cannot be reached, or something else answers at its address."""

log = logging.getLogger("moorage.gate")


@dataclass
class Asked:
    """A request for a provision state, as its client sent it.

    `headers` are its end-to-end headers. `left`: its client no longer waits for the answer.
    """

    method: str
    target: str
    headers: CIMultiDict[str]
    spool: Spool
    node: str
    verb: str
    id: str
    policy: ClientPolicy
    until: float
    left: bool = False


class Deciding:
    """Decides requests for one Ironic."""

    def __init__(
        self,
        upstream: Upstream,
        host_leases: HostLeases,
        units: Units,
        watch: Watch,
        rules: Rules,
        meters: GateMetrics,
    ) -> None:
        self._upstream = upstream
        self._host_leases = host_leases
        self._units = units
        self._watch = watch
        self._turns = Turns(host_leases, watch, rules)
        self._rules = rules
        self._meters = meters
        self._carried: set[asyncio.Task[HttpAnswer]] = set()
        self._stopping = False

    async def finish(self, seconds: float) -> None:
        """Forward nothing more; return when Ironic has answered the rest, or after this time."""
        self._stopping = True
        if self._carried:
            await asyncio.wait(self._carried, timeout=seconds)

    async def answer(self, asked: Asked) -> HttpAnswer:
        """Return Ironic's answer, or a refusal of the gate.

        Raises AwayError, aiohttp.ClientError and TimeoutError while nothing was forwarded.
        """
        try:
            for _ in range(TRIES):
                node = await self._node(asked)
                if isinstance(node, HttpAnswer):
                    return self._count(asked, "refused_by_ironic", node)
                try:
                    return await self._decided(asked, node)
                except EndedError:
                    continue
            raise HeldBackError(
                "the lease of this node ended several times while the request waited; ask again"
            )
        except HeldBackError as held:
            return self._count(asked, "held_back", self._held_back(asked, held))
        except CrowdedError:
            text = "too many requests for this node have no answer yet; ask again later"
            return self._count(asked, "held_back", self._conflict(asked, text))
        except NO_ANSWER as error:
            log.warning("request %s is held back: %s", asked.id, error)
            text = "Moorage cannot be reached"
            return self._count(asked, "moorage_away", self._conflict(asked, text))
        except RefusedError as error:
            log.error("Moorage refuses a unit for %s: %s", asked.node, error)
            text = f"Moorage refuses: {error}"
            return self._count(asked, "refused_by_moorage", self._conflict(asked, text))

    async def _node(self, asked: Asked) -> Node | HttpAnswer:
        """Read the node as its client; return Ironic's answer if it may not, or cannot."""
        given = credentials(asked.headers)
        version = asked.headers.get(VERSION_HEADER)
        await self._upstream.version()
        if not self._upstream.speaks(version):
            tried = given.copy()
            tried[VERSION_HEADER] = version or ""
            answer = await self._upstream.send("GET", "/v1/nodes?limit=1&fields=uuid", tried)
            if answer.status >= 400:
                return answer
        answer = await self._upstream.node(asked.node, self._rules.fields, given)
        if answer.status != 200:
            return answer
        try:
            node = json.loads(answer.body)
            if isinstance(node["uuid"], str) and isinstance(node["provision_state"], str):
                found: Node = node
                return found
        except (ValueError, KeyError, TypeError):
            pass
        raise AwayError("Ironic's answer is not a node")

    async def _decided(self, asked: Asked, node: Node) -> HttpAnswer:
        """Forward the request, with a unit if it needs one. Raises EndedError, HeldBackError."""
        state = str(node["provision_state"])
        requirement = requirement_of(asked.verb, state)
        verbs = ruling_verbs(asked.verb)
        needs = self._rules.needs(node, verbs, self._watch.picture.warm)
        host = host_of_node(node, asked.verb)
        if requirement is Requirement.NOTHING and state in BUSY:
            # Its work may end before Ironic reads the request, which then starts new work.
            lease = await self._host_leases.current(host, {}, forced=True)
        elif requirement is Requirement.NOTHING or not needs.units:
            lease = None
        else:
            want = self._want(asked, node, needs, requirement)
            try:
                lease = await self._units.get(want, asked.policy, asked.until)
            except WaitingError as waits:
                raise await self._turns.held_back(waits) from None
        if self._stopping:
            raise HeldBackError("the gate is being restarted")
        asked.spool.__enter__()  # until Ironic has all of it, even if the client leaves
        task = asyncio.create_task(self._carry(asked, lease))
        self._carried.add(task)
        task.add_done_callback(lambda done: self._carried_out(asked, done))
        try:
            answer = await asyncio.shield(task)
        except asyncio.CancelledError:
            asked.left = True
            raise
        return self._count(asked, "forwarded" if lease is None else "forwarded_with_unit", answer)

    def _carried_out(self, asked: Asked, task: asyncio.Task[HttpAnswer]) -> None:
        asked.spool.__exit__()
        self._carried.discard(task)
        if asked.left and not task.cancelled() and (error := task.exception()) is not None:
            log.warning("request %s, whose client has left: %s", asked.id, reason_of(error))

    def _want(self, asked: Asked, node: Node, needs: Needs, requirement: Requirement) -> Want:
        verb = min(synonyms_of(asked.verb))
        return Want(
            host=host_of_node(node, verb),
            name=value_of(node, "name") or str(node["uuid"]),
            verb=verb,
            units=needs.units,
            force=is_forced(needs, requirement),
            expected=self._rules.expected_of(node, synonyms_of(asked.verb)),
        )

    async def _carry(self, asked: Asked, lease: Lease | None) -> HttpAnswer:
        """Send the request to Ironic, with its steps stored. Raises EndedError before it is."""
        if lease is None:
            return (await self._forwarded(asked))[0]

        async def send() -> Answered[HttpAnswer]:
            with self._meters.forwarding.track_inprogress():
                answer, outcome = await self._forwarded(asked)
            again = is_for_now(answer.status, fault_of(answer.body))
            return Answered(answer, outcome, requeue=again)

        def unsent() -> Answered[HttpAnswer]:
            text = "the request could not be sent in time; ask again"
            return Answered(self._conflict(asked, text), RequestOutcome.REFUSED)

        request = Request(asked.id, send, unsent, lambda: asked.left)
        answer = await send_with_steps(self._host_leases, lease, request)
        self._watch.nudge()
        return answer

    async def _forwarded(self, asked: Asked) -> tuple[HttpAnswer, RequestOutcome]:
        """Send the request to Ironic; an error is an answer, too."""
        try:
            answer = await self._upstream.send(
                asked.method, asked.target, asked.headers, asked.spool.body()
            )
        except AwayError as error:
            return self._away(asked, str(error)), RequestOutcome.REFUSED
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            log.warning("request %s to Ironic has no answer: %s", asked.id, reason_of(error))
            text = "The connection to Ironic was lost: the request may have been accepted."
            return self._away(asked, text), RequestOutcome.UNKNOWN
        return answer, outcome_of(answer.status, fault_of(answer.body))

    def _held_back(self, asked: Asked, held: HeldBackError) -> HttpAnswer:
        advice = asked.policy.advice(held.latest) if held.waits else ""
        pause = asked.policy.pause_of(held.latest, waits=held.waits)
        return self._conflict(asked, f"{held}{advice}", pause)

    def _conflict(self, asked: Asked, text: str, pause: int | None = None) -> HttpAnswer:
        """Return a refusal that clients answer by trying again, after a pause in seconds."""
        versions = self._upstream.headers(asked.headers)
        pause = asked.policy.pause_of(None) if pause is None else pause
        return fault(409, text[:1].upper() + text[1:], asked.id, versions, pause)

    def _away(self, asked: Asked, text: str) -> HttpAnswer:
        return fault(503, text, asked.id, self._upstream.headers(asked.headers))

    def _count(self, asked: Asked, outcome: str, answer: HttpAnswer) -> HttpAnswer:
        verb = asked.verb if asked.verb in EVENTS else "other"
        self._meters.decided.labels(verb, outcome).inc()
        return answer


def hold_until(policy: ClientPolicy) -> float:
    """Return the monotonic time until which a request of a client is held."""
    return monotonic() + policy.hold
