"""The state machine of the agent, with a clock that is set by hand: what it sends, and when."""

import pytest

from moorage.client.agent.api_types import Failure, Observation
from moorage.client.agent.protocol import BEAT_SECONDS_MAX, Machine
from moorage.client.run.exit_codes import CONFLICT
from moorage.client.transport import UnreachableError
from tests.client.agent.conversation import BOOT, CLASS, NUMA0, NUMA1, Conversation


@pytest.fixture
def talk() -> Conversation:
    """Provide an agent that has registered and reported 0 pages as done."""
    talk = Conversation()
    talk.observe(0, done=False)
    assert talk.exchange() == ["register"]
    talk.observe(0)
    assert talk.exchange() == ["report"]
    return talk


def test_nothing_is_sent_before_the_machine_is_known() -> None:
    """The first register needs the parts, so it follows the first observation."""
    talk = Conversation()
    assert talk.protocol.due_in(talk.now) is None
    assert talk.due() == ""


def test_an_agent_registers_then_reports_then_lives() -> None:
    """What is reported was compared with the orders; signs of life follow when they are due."""
    talk = Conversation()
    talk.server.want(**{CLASS: 4})
    talk.observe(1, done=False)
    assert talk.exchange() == ["register"]
    assert talk.server.registered is not None
    assert talk.server.registered.labels == {"rack": "7"}
    assert talk.protocol.desired == {NUMA0.provider: {CLASS: 4}}
    assert talk.due() == ""  # the observation knew no orders
    talk.observe(2, done=False)
    assert talk.exchange() == ["report"]
    assert talk.pass_to_next() == 5.0
    assert talk.exchange() == ["alive"]
    assert talk.server.report is not None
    assert talk.server.report.phase == "preparing"
    assert talk.server.report.desired_generation_seen == 2
    assert talk.server.report.consumers is None


def test_progress_is_reported_once_a_second(talk: Conversation) -> None:
    """Many steps make few reports; the last one has the newest amounts."""
    talk.now += 2.0
    for pages in range(1, 11):
        talk.observe(pages)
        talk.exchange()
        talk.now += 0.2
    talk.pass_to_next()
    talk.exchange()
    assert [one.actual[NUMA0.provider][CLASS] for one in talk.server.writes] == [0, 1, 6, 10]
    assert [one.report_generation for one in talk.server.writes] == [1, 2, 3, 4]


def test_the_end_of_the_first_pass_is_reported_at_once() -> None:
    """Only then the machine is ready, so this report does not wait for its second."""
    talk = Conversation()
    talk.observe(0, done=False)
    talk.exchange()
    talk.observe(0, done=False)
    assert talk.exchange() == ["report"]
    talk.observe(1, done=False)
    assert talk.exchange() == []
    talk.observe(1, done=True)
    assert talk.exchange() == ["report"]


def test_one_request_at_a_time(talk: Conversation) -> None:
    """While a request is outstanding nothing else is due, whatever happens."""
    talk.observe(1)
    talk.now += 1.0
    assert talk.due() == "report"
    talk.observe(2)
    talk.now += 1000.0
    assert talk.protocol.due_in(talk.now) is None
    assert talk.due() == ""


@pytest.mark.parametrize(("arrived", "changed"), [(True, False), (False, False), (False, True)])
def test_a_lost_answer_repeats_the_report(talk: Conversation, arrived: bool, changed: bool) -> None:
    """It is sent again as it was, with its generation, then what has changed since."""
    talk.observe(1)
    talk.now += 1.0
    request = talk.protocol.next_request(talk.now)
    assert request is not None
    if arrived:
        talk.server.take(request.kind, request.body)
    talk.protocol.failed(UnreachableError("no answer"), talk.now)
    if changed:
        talk.observe(2)
    assert talk.pass_to_next() == 1.0
    register = talk.protocol.next_request(talk.now)
    assert register is not None
    assert register.kind == "register"
    talk.answer(register)
    again = talk.protocol.next_request(talk.now)
    assert again == request
    talk.answer(request)
    talk.observe(2)
    talk.now += 1.0
    assert talk.exchange() == ["report"]
    assert [one.report_generation for one in talk.server.writes] == [1, 2, 3]


def test_any_error_registers_again_with_more_delay(talk: Conversation) -> None:
    """The delays double up to the TTL, and begin again after an answered report."""
    delays = []
    for _ in range(8):
        talk.pass_to_next()
        assert talk.due() != ""
        talk.protocol.failed(UnreachableError("no answer"), talk.now)
        delays.append(talk.protocol.due_in(talk.now))
    assert delays == [1, 2, 4, 8, 10, 10, 10, 10]
    talk.pass_to_next()
    assert talk.exchange() == ["register", "report"]
    talk.pass_to_next()
    assert talk.due() == "alive"
    talk.refuse(500, "internal")
    assert talk.protocol.due_in(talk.now) == 1.0
    assert talk.protocol.notes[-1].startswith("cannot give a sign of life: refused: internal")


def test_the_delays_follow_the_ttl(talk: Conversation) -> None:
    """After an outage each agent has one TTL to return, and the TTL follows the fleet."""
    talk.server.next_in = 15.0
    talk.pass_to_next()
    assert talk.exchange() == ["alive"]
    for _ in range(8):
        talk.pass_to_next()
        talk.protocol.next_request(talk.now)
        talk.protocol.failed(UnreachableError("no answer"), talk.now)
    assert talk.protocol.due_in(talk.now) == 30.0


def test_without_a_ttl_the_delays_are_up_to_a_minute() -> None:
    """A server that has never answered is asked once a minute at last."""
    talk = Conversation()
    talk.observe(0)
    for _ in range(8):
        talk.pass_to_next()
        talk.protocol.next_request(talk.now)
        talk.protocol.failed(UnreachableError("no answer"), talk.now)
    assert talk.protocol.due_in(talk.now) == 60.0


def test_a_server_that_accepts_only_registers_is_spared() -> None:
    """The delays grow although each register succeeds."""
    talk = Conversation()
    talk.observe(0, done=False)
    talk.exchange()
    talk.observe(0)
    delays = []
    for _ in range(4):
        talk.now += 1.0
        assert talk.due() == "report"
        talk.refuse(403, "forbidden")
        delays.append(talk.pass_to_next())
        assert talk.due() == "register"
        talk.protocol.answered(talk.server.take("register", _register_body()), talk.now)
    assert delays == [1, 2, 4, 8]


def test_a_server_that_only_wants_registers_is_spared(talk: Conversation) -> None:
    """A directive that is repeated without end has growing delays, too."""
    delays = []
    talk.pass_to_next()
    for _ in range(4):
        assert talk.due() in ("alive", "report")
        orders = talk.server.take("register", _register_body())
        talk.protocol.answered({**orders, "directive": "register"}, talk.now)
        delays.append(talk.pass_to_next())
        assert talk.due() == "register"
        talk.protocol.answered(orders, talk.now)
        talk.now += 1.0
    assert delays == [1, 2, 4, 8]


def _register_body() -> object:
    return Machine(BOOT, "host", "6.1", "1.0").body((NUMA0,))


def test_retry_after_is_honoured(talk: Conversation) -> None:
    """A busy server says when to come again; the jitter is added."""
    talk.pass_to_next()
    assert talk.due() == "alive"
    talk.refuse(503, "busy", 20.0)
    assert talk.protocol.due_in(talk.now) == 21.0


def test_directive_report_repeats_the_last_report(talk: Conversation) -> None:
    """Nothing has changed on the machine, so it is the same report, and no write."""
    talk.server.directives = ["report"]
    talk.pass_to_next()
    assert talk.exchange() == ["alive", "report"]
    assert len(talk.server.writes) == 1
    talk.pass_to_next()
    assert talk.exchange() == ["alive"]


def test_new_orders_arrive_with_the_answer_to_a_report(talk: Conversation) -> None:
    """A sign of life only says that there are some; then they are seen in the next report."""
    talk.server.want(**{CLASS: 7})
    talk.server.directives = ["none"]
    talk.pass_to_next()
    assert talk.exchange() == ["alive", "report"]
    assert talk.protocol.desired == {NUMA0.provider: {CLASS: 7}}
    talk.observe(7)
    talk.now += 1.0
    assert talk.exchange() == ["report"]
    assert talk.server.writes[-1].desired_generation_seen == 2


def test_a_wrong_answer_does_not_silence_a_machine(talk: Conversation) -> None:
    """Whatever the server answers, the next sign of life is due in a few minutes."""
    talk.server.next_in = 1e9
    talk.pass_to_next()
    assert talk.exchange() == ["alive"]
    assert talk.pass_to_next() == BEAT_SECONDS_MAX
    assert talk.exchange() == ["alive"]


def test_directive_register(talk: Conversation) -> None:
    """It registers again after a short random delay: others get the same directive."""
    talk.server.directives = ["register"]
    talk.pass_to_next()
    assert talk.exchange() == ["alive"]
    assert talk.pass_to_next() == 1.0
    assert talk.exchange() == ["register", "report"]


@pytest.mark.parametrize("kind", ["register", "report", "alive"])
@pytest.mark.parametrize("way", ["directive", "refusal"])
def test_a_decommissioned_agent_stops(kind: str, way: str) -> None:
    """Whatever it sends: it ends with 0, forgets what was desired, and sends nothing more."""
    talk = Conversation()
    talk.observe(0, done=False)
    while True:
        request = talk.protocol.next_request(talk.now)
        if request is None:
            talk.observe(0)
            talk.pass_to_next()
        elif request.kind == kind:
            break
        else:
            talk.answer(request)
    if way == "refusal":
        talk.server.decommissioned = True
    else:
        talk.server.directives = ["inert"]
    talk.answer(request)
    assert talk.protocol.ended is not None
    assert talk.protocol.ended.exit_code == 0
    assert talk.protocol.desired is None
    talk.observe(5)
    talk.now += 1e6
    assert talk.protocol.due_in(talk.now) is None
    assert talk.due() == ""


def test_a_foreign_410_is_only_an_error(talk: Conversation) -> None:
    """A proxy that has lost its server must not end the agents of a fleet."""
    talk.pass_to_next()
    assert talk.due() == "alive"
    talk.refuse(410, "unknown")
    assert talk.protocol.ended is None


def test_a_cloned_machine_stops(talk: Conversation) -> None:
    """The other machine has registered: both would take the place of one another for ever."""
    other = Machine("4a1a91f3-0595-4f77-9bc3-11133fdd4585", "other", "6.1", "1.0")
    talk.server.take("register", other.body((NUMA0,)))
    talk.pass_to_next()
    assert talk.exchange() == ["alive"]
    assert talk.protocol.ended is not None
    assert talk.protocol.ended.exit_code == CONFLICT
    assert "/etc/machine-id" in talk.protocol.ended.message
    assert talk.protocol.due_in(talk.now + 1e6) is None


def test_a_report_that_was_received_is_not_needed_again(talk: Conversation) -> None:
    """The register says which report the server has; what has changed since is the next one."""
    talk.observe(1)
    talk.now += 1.0
    request = talk.protocol.next_request(talk.now)
    assert request is not None
    talk.server.take(request.kind, request.body)
    talk.protocol.failed(UnreachableError("no answer"), talk.now)
    talk.observe(2)
    talk.pass_to_next()
    assert talk.exchange() == ["register", "report"]
    assert [one.report_generation for one in talk.server.writes] == [1, 2, 3]


@pytest.mark.parametrize("code", ["report_conflict", "stale_report"])
@pytest.mark.parametrize("generation", [2, 9])
def test_a_refused_report_is_not_repeated(talk: Conversation, code: str, generation: int) -> None:
    """The server has another report of this generation; the next one continues from there."""
    talk.observe(1)
    talk.now += 1.0
    assert talk.due() == "report"
    talk.server.generation = generation
    talk.refuse(409, code)
    talk.pass_to_next()
    assert talk.exchange() == ["register", "report"]
    assert talk.server.writes[-1].report_generation == generation + 1
    assert talk.server.writes[-1].actual == {NUMA0.provider: {CLASS: 1}}


def test_a_server_that_lost_reports_gets_them_again(talk: Conversation) -> None:
    """A database that was put back has an older generation; the state is sent in full."""
    for pages in (1, 2, 3):
        talk.observe(pages)
        talk.now += 1.0
        talk.exchange()
    talk.server.generation, talk.server.report = 1, None
    talk.pass_to_next()
    assert talk.exchange() == ["alive"]  # refused: stale_report
    talk.pass_to_next()
    assert talk.exchange() == ["register", "report"]
    assert talk.server.writes[-1].report_generation == 2
    assert talk.server.writes[-1].actual == {NUMA0.provider: {CLASS: 3}}


def test_new_parts_are_registered_first(talk: Conversation) -> None:
    """Memory may be added while the machine runs; a report names exactly what is registered."""
    talk.now += 2.0
    talk.observe(1, parts=(NUMA0, NUMA1))
    assert talk.exchange() == ["register", "report"]
    assert talk.server.registered is not None
    assert [part.name for part in talk.server.registered.parts] == ["numa0", "numa1"]
    assert talk.server.writes[-1].report_generation == 2


def test_failures_and_consumers_are_reported(talk: Conversation) -> None:
    """A failure has all its fields; unknown consumers are null, none at all is a list."""
    failure = Failure("hugepages_short", "why", 3, 12.5, "2026-01-01T00:00:00+00:00")
    seen = Observation((NUMA0,), {NUMA0.provider: {CLASS: 1}}, 1, True, failure, (BOOT,))
    for one in (seen, seen._replace(failure=None, consumers=())):
        talk.protocol.observe(one)
        talk.now += 1.0
        assert talk.exchange() == ["report"]
    first, second = talk.server.writes[-2:]
    assert first.failure is not None
    assert (first.failure.attempts, first.failure.next_retry_in) == (3, 12.5)
    assert (first.consumers, second.consumers, second.failure) == ([BOOT], [], None)


@pytest.mark.parametrize(
    "answer",
    [None, [], {}, {"directive": "none"}, "text"],
)
def test_a_strange_answer_is_an_error(talk: Conversation, answer: object) -> None:
    """An answer that is not of the protocol changes nothing; the agent registers again."""
    talk.pass_to_next()
    assert talk.due() == "alive"
    talk.protocol.answered(answer, talk.now)
    assert talk.pass_to_next() == 1.0
    assert talk.exchange() == ["register", "report"]


def test_an_answer_to_another_report_is_an_error(talk: Conversation) -> None:
    """The server must confirm the generation that it was sent."""
    talk.observe(1)
    talk.now += 1.0
    request = talk.protocol.next_request(talk.now)
    assert request is not None
    answer = talk.server.take(request.kind, request.body)
    talk.protocol.answered({**answer, "report_generation": 77}, talk.now)
    assert talk.pass_to_next() == 1.0
    assert talk.exchange() == ["register", "report"]
    assert talk.server.generation == 2
