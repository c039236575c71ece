"""Reports and signs of life of agents.

A report is the full state of a machine. It counts only if it is of the current boot, and later than
the last one; a repeat of the last one changes nothing. The readiness follows from it alone.
"""

from typing import Literal

from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.fleet.agents import (
    Pair,
    changes_of,
    check_active,
    find_active,
    registered,
    registered_at,
)
from moorage.core.fleet.boots import check_boot
from moorage.core.fleet.facts import Changes, Facts
from moorage.core.fleet.model import Agent, Failure, MachineReport, Phase, Readiness, State
from moorage.core.ids import AgentId, ConsumerId, is_normal
from moorage.core.limits import (
    CONFIRMED_CONSUMERS_MAX,
    DETAIL_LENGTH_MAX,
    IDENTIFIER_LENGTH_MAX,
    MAX_INT,
    REPORT_GENERATION_MAX,
    REPORTED_CONSUMERS_MAX,
    REPORTS_SKIPPED_MAX,
)
from moorage.core.texts import check_plain


def report(facts: Facts, now: Instant, uuid: AgentId, sent: MachineReport) -> Changes:
    """Accept a report; a repeat of the last one changes nothing.

    A generation may be skipped. More may be there than is eligible or desired: the report says what
    is true, and the offer is limited elsewhere.

    Raises AGENT_NOT_FOUND, DECOMMISSIONED, STALE_BOOT, SUPERSEDED_BOOT, STALE_REPORT,
    REPORT_CONFLICT, INVALID.
    """
    before = find_active(facts, uuid)
    check_boot(before, sent.boot_id)
    _check_not_lower(before, sent.report_generation)
    if sent.report_generation == before.report_generation:
        if before.report is not None and _same(before.report, sent):
            return Changes()
        raise Error(
            Code.REPORT_CONFLICT,
            f"The server has another report {sent.report_generation} of agent {uuid}: send the "
            f"present state as report {before.report_generation + 1}.",
        )
    _check_content(before, sent)
    return changes_of(before, _accepted(before, sent, now), now)


def check_alive(agent: Agent, boot_id: str, report_generation: int) -> None:
    """Raise unless a sign of life is of the current boot and knows the last report.

    Raises DECOMMISSIONED, STALE_BOOT, SUPERSEDED_BOOT, STALE_REPORT, REPORT_CONFLICT.
    """
    check_active(agent)
    check_boot(agent, boot_id)
    _check_not_lower(agent, report_generation)
    if report_generation > agent.report_generation:
        raise Error(
            Code.REPORT_CONFLICT,
            f"The server does not have report {report_generation} of agent {agent.uuid}, only "
            f"report {agent.report_generation}: register, then send the present state.",
        )


def directive(agent: Agent) -> Literal["none", "report", "register", "inert"]:
    """Return what an agent must do now."""
    if agent.state is State.DECOMMISSIONED:
        return "inert"
    if agent.boot_id is None:
        return "register"
    return "none" if _is_reported(agent) else "report"


def readiness_after(agent: Agent, phase: Phase, failed: bool) -> Readiness:
    """Return the readiness that follows from what is there.

    Args:
        agent: with the reported amounts.
        phase: whether the first full pass of this boot is over.
        failed: whether the agent reports a failure.
    """
    classes = [managed for _, managed in registered(agent)]
    if phase is Phase.DONE and all(one.actual >= one.desired for one in classes):
        return Readiness.READY
    if (phase is Phase.DONE or failed) and not any(one.actual for one in classes if one.desired):
        return Readiness.FAILED
    return Readiness.DEGRADED if phase is Phase.DONE else Readiness.PREPARING


def _is_reported(agent: Agent) -> bool:
    """Return whether the last report of this boot has everything that is registered."""
    report = agent.report
    if report is None:
        return False
    for uuid, part in agent.parts.items():
        reported = report.actual.get(uuid, {})
        for name in registered_at(part):
            if name not in reported:
                return False
    return True


def _accepted(before: Agent, sent: MachineReport, now: Instant) -> Agent:
    parts = dict(before.parts)
    for uuid, amounts in sent.actual.items():
        part = parts[uuid]
        there = {name: replace(part.classes[name], actual=n) for name, n in amounts.items()}
        parts[uuid] = replace(part, classes={**part.classes, **there})
    # An agent that restarts within a boot prepares again, but the machine has been prepared.
    phase = Phase.DONE if before.phase is Phase.DONE else sent.phase
    after = replace(
        before,
        parts=parts,
        report=sent,
        report_generation=sent.report_generation,
        confirmed=_confirmed(before, sent),
        desired_generation_seen=min(sent.desired_generation_seen, before.desired_generation),
        phase=phase,
        failure=sent.failure,
        reported_at=now,
    )
    return replace(after, readiness=readiness_after(after, phase, sent.failure is not None))


def _confirmed(before: Agent, sent: MachineReport) -> frozenset[ConsumerId]:
    """Return the consumers that were listed; beyond a bound those of earlier reports are forgotten.

    A consumer that is forgotten, and was on the machine before this boot, is unconfirmed again.
    """
    listed = sent.consumers or frozenset()
    known = before.confirmed | listed
    return known if len(known) <= CONFIRMED_CONSUMERS_MAX else listed


def _same(stored: MachineReport, sent: MachineReport) -> bool:
    """Is this a repeat? Its next retry was sent as a duration, so its time is later."""
    return _timeless(stored) == _timeless(sent)


def _timeless(one: MachineReport) -> MachineReport:
    if one.failure is None:
        return one
    return replace(one, failure=replace(one.failure, next_retry_at=None))


def _check_not_lower(agent: Agent, report_generation: int) -> None:
    if report_generation < agent.report_generation:
        raise Error(
            Code.STALE_REPORT,
            f"The server has report {agent.report_generation} of agent {agent.uuid}, which is "
            f"later than report {report_generation}: continue with report "
            f"{agent.report_generation + 1}.",
        )


def _check_content(agent: Agent, sent: MachineReport) -> None:
    following = agent.report_generation + 1
    if sent.report_generation > min(following + REPORTS_SKIPPED_MAX, REPORT_GENERATION_MAX):
        raise Error(
            Code.INVALID,
            f"Report {sent.report_generation} is too far above the last one: continue with report "
            f"{following}.",
        )
    if not 0 <= sent.desired_generation_seen <= REPORT_GENERATION_MAX:
        raise Error(
            Code.INVALID, f"desired_generation_seen must be from 0 to {REPORT_GENERATION_MAX}."
        )
    _check_actual(agent, sent)
    _check_consumers(sent)
    if sent.failure is not None:
        _check_failure(sent.failure)


def _check_actual(agent: Agent, sent: MachineReport) -> None:
    reported = {Pair(uuid, name) for uuid, held in sent.actual.items() for name in held}
    expected = {pair for pair, _ in registered(agent)}
    for uuid, name in sorted(expected - reported):
        raise Error(
            Code.INVALID,
            f"The report omits '{name}' of provider {uuid}: a report has every class of the last"
            f" registration. Add the class, or register again without it.",
        )
    for uuid, name in sorted(reported - expected):
        raise Error(
            Code.INVALID,
            f"The report has '{name}' of provider {uuid}, which is not in the last registration:"
            f" register again, then report.",
        )
    for uuid, held in sent.actual.items():
        if uuid not in agent.parts:
            raise Error(
                Code.INVALID, f"Provider {uuid} is not a part of the last registration: omit it."
            )
        for name, amount in held.items():
            if not 0 <= amount <= MAX_INT:
                raise Error(
                    Code.INVALID,
                    f"The amount of '{name}' on provider {uuid} must be from 0 to {MAX_INT}.",
                )


def _check_consumers(sent: MachineReport) -> None:
    consumers = sent.consumers or frozenset()
    if len(consumers) > REPORTED_CONSUMERS_MAX:
        raise Error(
            Code.INVALID, f"A report lists at most {REPORTED_CONSUMERS_MAX} consumers: omit others."
        )
    for consumer in consumers:
        if not is_normal(consumer):
            raise Error(Code.INVALID, "Consumers are UUIDs in lower case with dashes.")


def _check_failure(failure: Failure) -> None:
    if not 1 <= len(failure.code) <= IDENTIFIER_LENGTH_MAX:
        raise Error(
            Code.INVALID, f"The code of a failure has 1 to {IDENTIFIER_LENGTH_MAX} characters."
        )
    if len(failure.message) > DETAIL_LENGTH_MAX:
        raise Error(
            Code.INVALID, f"The message of a failure has at most {DETAIL_LENGTH_MAX} characters."
        )
    check_plain("The code of a failure", failure.code)
    check_plain("The message of a failure", failure.message)
    if not 0 <= failure.attempts <= MAX_INT:
        raise Error(Code.INVALID, f"attempts must be from 0 to {MAX_INT}.")
