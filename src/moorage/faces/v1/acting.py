"""Actions that are tried first, see `service/acting.py`."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from moorage.core.admission.model import Lease, Pool
from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.fleet.model import Agent, Policy
from moorage.core.fleet.policy import Action
from moorage.core.ids import AgentId, LeaseId
from moorage.core.limits import PRIORITY_MAX
from moorage.core.texts import check_reason
from moorage.faces.v1 import authorization
from moorage.faces.v1.admission.leases import lease_id_of, standing_of
from moorage.faces.v1.admission.pools import pacing_shown
from moorage.faces.v1.routing import Handlers, Request
from moorage.service.access.roles import Role
from moorage.service.acting import Acting, Outlook
from moorage.service.admission.ending import LeaseRevoke
from moorage.service.admission.handing_cases import LeaseKeep
from moorage.service.admission.lease_cases import LeaseHold, OnBehalf, TicketForce, TicketMove
from moorage.service.admission.pool_cases import PoolPause, PoolTune
from moorage.service.admission.pool_specs import pacing_of
from moorage.service.batch.use_case import UseCase
from moorage.service.fleet.policy_cases import AgentPolicy
from moorage.service.values import end_of, microseconds_or_none, uuid_of
from moorage.wire import acting as wire
from moorage.wire.operations import acting as operations

OF_OWNERS = frozenset({"lease.hold", "lease.keep"})
"""Actions that owners of leases take, too; all others are for operators."""

SHOWN_MAX = 100
"""Ids of leases that an answer lists."""

Asked = Request[wire.ActionWanted, None]


async def preview(request: Asked) -> wire.ActionEffect:
    """Return what an action would do now."""
    return await _carried_out(request, None)


async def act(request: Asked) -> wire.ActionEffect:
    """Carry out an action that does what its preview has shown."""
    if not request.body.digest:
        raise Error(Code.INVALID, "digest is required: that of the preview.")
    return await _carried_out(request, request.body.digest)


HANDLERS: Handlers = {operations.PREVIEW_ACTION: preview, operations.ACT: act}


async def _carried_out(request: Asked, digest: str | None) -> wire.ActionEffect:
    acting = _acting(request)
    acting.digest = digest
    outlook = await request.service.transactor.submit(acting)
    shown = effect_shown(request.body, outlook)
    before, after = outlook.before, outlook.after
    if isinstance(before, Lease) and after is not None and after.state == "waiting":
        shown.lines[1:1] = await request.service.admission.queries.moves(before, after)
    return shown


def _acting(request: Asked) -> Acting:
    """Return the use case of an action. Raises `Error`."""
    wanted, (kind, _, verb) = request.body, request.body.action.partition(".")
    check_reason(wanted.reason)
    if wanted.action not in OF_OWNERS:
        authorization.check_role(request.role, Role.OPERATOR, f"the action {wanted.action}")
    what = replace(wanted, digest=None)
    if kind == "pool":
        lasts = microseconds_or_none("lasts", wanted.lasts)
        return Acting(_POOLS[verb](request), what, pool=wanted.target, lasts=lasts)
    if kind == "lease":
        lease = lease_id_of(wanted.target)
        lasts = microseconds_or_none("lasts", wanted.lasts)
        return Acting(_LEASES[verb](request, lease), what, lease=lease, lasts=lasts)
    agent = AgentId(uuid_of(wanted.target, "The id of an agent"))
    return Acting(_agent(request, agent, Action(verb)), what, agent=agent)


def _tune(request: Asked) -> UseCase[None]:
    wanted = request.body
    pacing = pacing_of(wanted.pacing)
    return PoolTune(wanted.target, request.actor, wanted.limit, pacing, wanted.generation)


def _pause(request: Asked) -> UseCase[None]:
    wanted = request.body
    until, lasts = end_of("A pause", wanted.until, wanted.lasts)
    return PoolPause(wanted.target, request.actor, True, wanted.reason, until, lasts)


def _resume(request: Asked) -> UseCase[None]:
    return PoolPause(request.body.target, request.actor, False)


_POOLS: Mapping[str, Callable[[Asked], UseCase[None]]] = {
    "tune": _tune,
    "pause": _pause,
    "resume": _resume,
}


def _move(request: Asked, lease: LeaseId) -> UseCase[Any]:
    return TicketMove(lease, request.body.priority, by=OnBehalf(request.actor))


def _force(request: Asked, lease: LeaseId) -> UseCase[Any]:
    return TicketForce(lease, by=OnBehalf(request.actor))


def _revoke(request: Asked, lease: LeaseId) -> UseCase[Any]:
    return LeaseRevoke(lease, request.body.reason, by=OnBehalf(request.actor))


def _hold(request: Asked, lease: LeaseId) -> UseCase[Any]:
    hold, (proof, by) = microseconds_or_none("hold", request.body.hold), standing_of(request, None)
    return LeaseHold(lease, proof, hold, by=by)


def _keep(request: Asked, lease: LeaseId) -> UseCase[Any]:
    wanted, (proof, by) = request.body, standing_of(request, None)
    until, lasts = end_of("A lease that is kept", wanted.until, wanted.lasts)
    return LeaseKeep(lease, proof, until, lasts, wanted.reason, by=by)


_LEASES: Mapping[str, Callable[[Asked, LeaseId], UseCase[Any]]] = {
    "move": _move,
    "force": _force,
    "revoke": _revoke,
    "hold": _hold,
    "keep": _keep,
}


def _agent(request: Asked, uuid: AgentId, action: Action) -> UseCase[Any]:
    wanted = request.body
    until, lasts = end_of("A drain", wanted.until, wanted.lasts)
    if lasts is not None:
        until = Instant(request.service.clock.now() + lasts)
    known = request.service.fleet.directory.get(uuid)
    return AgentPolicy(uuid, request.actor, action, wanted.reason, until, known=known)


def effect_shown(wanted: wire.ActionWanted, outlook: Outlook) -> wire.ActionEffect:
    """Convert an outlook to its wire form."""
    effect = outlook.effect
    ends = [*effect.leases_end, *effect.tickets_end]
    return wire.ActionEffect(
        action=wanted.action,
        target=wanted.target,
        lines=[*outlook.lines],
        digest=outlook.digest,
        leases_end=len(effect.leases_end),
        tickets_end=len(effect.tickets_end),
        tickets_start=len(effect.tickets_start),
        ends=[*ends[:SHOWN_MAX]],
        starts=[*effect.tickets_start[:SHOWN_MAX]],
        done=outlook.done,
        audit=[*outlook.audit],
        undo=_undo(wanted, outlook) if outlook.audit else None,
    )


def _undo(wanted: wire.ActionWanted, outlook: Outlook) -> wire.ActionWanted | None:
    """Return the action that takes this one back; None: there is none."""
    before, target = outlook.before, wanted.target
    if wanted.action == "pool.tune" and isinstance(before, Pool):
        spec = before.spec
        return wire.ActionWanted(
            action="pool.tune",
            target=target,
            limit=None if wanted.limit is None else spec.limit,
            pacing=None if spec.pacing is None else pacing_shown(spec.pacing),
            generation=outlook.generation,
        )
    if wanted.action == "pool.pause" and isinstance(before, Pool) and not before.paused:
        return wire.ActionWanted(action="pool.resume", target=target)
    if wanted.action == "lease.move" and isinstance(before, Lease):
        if abs(before.priority) > PRIORITY_MAX:  # only "first in all lines" gives such a place
            return None
        return wire.ActionWanted(action="lease.move", target=target, priority=before.priority)
    in_service = isinstance(before, Agent) and before.policy is Policy.IN_SERVICE
    if wanted.action == "agent.drain" and in_service:
        return wire.ActionWanted(action="agent.resume", target=target)
    return None
