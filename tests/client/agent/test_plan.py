"""The plan of a machine: sent until it is settled or refused, and never in a loop."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from moorage.client.agent.plan import (
    AGAIN_SECONDS,
    PLAN_REFUSED,
    VIOLATIONS_SAID_MAX,
    Plan,
    plan_read,
)
from moorage.client.transport import UnreachableError
from moorage.wire.changes import AgentPlan
from tests.client.agent.conversation import BOOT, Conversation
from tests.client.agent.fleet_server import Refusal

NOW = "2026-11-29T12:00:00+00:00"
HOST = str(UUID(int=1))
DOCUMENT = {"rename": {HOST: "host_1"}}
RESHAPE = str(UUID(int=2))


def became(outcome: Any, reshape: str | None = RESHAPE) -> AgentPlan:
    """Return what a server says of a plan."""
    at: Any = NOW
    return AgentPlan(digest="d", boot_id=BOOT, outcome=outcome, at=at, reshape=reshape)


def talk_of(plan: AgentPlan | Refusal | None) -> Conversation:
    """Return an agent with a plan that has registered, and a server that answers like this."""
    talk = Conversation(Plan(DOCUMENT, lambda: NOW))
    talk.server.plan = plan
    talk.observe(0, done=False)
    assert talk.exchange() == ["register"]
    talk.observe(0)
    return talk


def reports(talk: Conversation) -> list[bool]:
    """Let some time pass; return for each report whether it had a plan."""
    had = []
    for pages in range(1, 6):
        talk.observe(pages)
        before = len(talk.server.plans)
        had += [len(talk.server.plans) > before for kind in talk.exchange() if kind == "report"]
        talk.now += 2.0
    return had


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        ("done", f"the plan is carried out, as reshape {RESHAPE}"),
        ("satisfied", "the plan is satisfied: its shape is there already"),
        ("undone", "an operator has undone it"),
    ],
)
def test_a_settled_plan_is_sent_once(outcome: str, said: str) -> None:
    """With the first report; it is said what became of it, and it is not sent again."""
    talk = talk_of(became(outcome))
    assert talk.exchange() == ["report"]
    assert len(talk.server.plans) == 1
    assert said in talk.protocol.notes[-1]
    assert talk.exchange() == []  # the report without the plan is the same
    assert reports(talk) == [False] * 4
    talk.protocol.next_request(talk.now + 60.0)
    talk.protocol.failed(UnreachableError("gone"), talk.now)
    talk.pass_to_next()
    assert talk.exchange()[0] == "register"
    assert len(talk.server.plans) == 1


def test_a_lost_answer_repeats_the_report_with_its_plan() -> None:
    """Whether the server has carried it out or not."""
    for arrived in (False, True):
        talk = talk_of(became("done"))
        request = talk.protocol.next_request(talk.now)
        assert request is not None
        assert request.body["plan"] == DOCUMENT
        if arrived:
            talk.server.take(request.kind, request.body)
        talk.protocol.failed(UnreachableError("no answer"), talk.now)
        talk.pass_to_next()
        assert talk.exchange()[:2] == ["register", "report"]
        assert len(talk.server.plans) == 1 + arrived
        assert [one.report_generation for one in talk.server.writes] == [1]


def test_a_refused_plan_is_not_sent_again() -> None:
    """The violations are said; the report goes without it at once, with the failure, and the agent
    lives on.
    """
    found = [{"code": "unassigned", "message": f"Consumer {n} is not covered."} for n in range(25)]
    talk = talk_of(Refusal(409, "reshape_refused", violations=found))
    assert talk.exchange() == ["report", "report"]
    said = [one for one in talk.protocol.notes if "violation" in one]
    assert len(said) == VIOLATIONS_SAID_MAX + 1
    assert said[0] == "violation unassigned: Consumer 0 is not covered."
    assert said[-1] == "and 5 more violations"
    assert reports(talk) == [False] * 4
    assert len(talk.server.plans) == 1
    assert talk.server.report is not None
    assert talk.server.report.failure is not None
    assert talk.server.report.failure.code == PLAN_REFUSED
    assert "register" not in talk.exchange()


@pytest.mark.parametrize(("status", "code"), [(400, "limit_exceeded"), (413, "refused")])
def test_a_plan_that_is_no_plan_is_not_sent_again(status: int, code: str) -> None:
    """Nor one that is too long, nor one that an older server does not know."""
    talk = talk_of(Refusal(status, code))
    talk.exchange()
    assert reports(talk) == [False] * 4
    assert len(talk.server.plans) == 1


def test_a_busy_server_is_asked_again() -> None:
    """It has not said what it thinks of the plan."""
    talk = talk_of(Refusal(503, "overloaded"))
    assert talk.exchange() == ["report"]
    talk.server.plan = became("done")
    talk.pass_to_next()
    assert talk.exchange()[:2] == ["register", "report"]
    assert len(talk.server.plans) == 2
    assert talk.protocol.notes[-1].startswith("the plan is carried out")


def test_a_plan_waits_until_its_agent_is_accepted() -> None:
    """The machine is reported without it meanwhile; the plan is sent again from time to time."""
    talk = talk_of(Refusal(409, "not_accepted"))
    assert talk.exchange() == ["report", "report"]
    assert reports(talk) == [False] * 4
    assert talk.server.report is not None
    assert talk.server.report.failure is None
    talk.now += AGAIN_SECONDS
    assert talk.exchange().count("report") == 2
    talk.server.plan = became("done")
    talk.now += AGAIN_SECONDS
    talk.exchange()
    assert len(talk.server.plans) == 3
    assert talk.protocol.notes[-1].startswith("the plan is carried out")
    assert sum("operator accepts" in one for one in talk.protocol.notes) == 1
    talk.now += AGAIN_SECONDS
    talk.exchange()
    assert len(talk.server.plans) == 3


def test_an_answer_without_an_outcome_is_strange() -> None:
    """It is asked again, after a delay."""
    talk = talk_of(None)
    assert talk.exchange() == ["report"]
    assert "does not say what became of the plan" in talk.protocol.notes[-1]


def test_files(tmp_path: Path) -> None:
    """A file that is missing is no plan; one that is damaged is a failure, and not sent."""
    path = tmp_path / "plan.json"
    plan, trouble = plan_read(None, lambda: NOW)
    assert (plan.document, plan.failure, trouble) == (None, None, None)
    plan, trouble = plan_read(str(path), lambda: NOW)
    assert (plan.document, plan.failure) == (None, None)
    assert trouble is not None
    assert "there is no plan" in trouble
    path.write_text(json.dumps(DOCUMENT))
    plan, trouble = plan_read(str(path), lambda: NOW)
    assert (plan.document, plan.failure, trouble) == (DOCUMENT, None, None)
    for text in ("{", "[]", "[" * 100_000):
        path.write_text(text)
        plan, trouble = plan_read(str(path), lambda: NOW)
        assert plan.document is None
        assert plan.failure is not None
        assert (plan.failure.code, plan.failure.since) == (PLAN_REFUSED, NOW)
        assert trouble is not None
