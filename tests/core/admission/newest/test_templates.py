"""Pools that requests make from templates, and that go again."""

import pytest

from moorage.core.admission import leases, pools, templates
from moorage.core.admission.facts import Changes
from moorage.core.admission.templates import TemplateWish
from moorage.core.clock import HOUR, MINUTE, SECOND, Instant
from moorage.core.errors import Code
from moorage.core.ids import LeaseId
from moorage.core.limits import TEMPLATES_MAX
from moorage.core.pool_values import Adaptive
from tests.core.admission.build import OPERATOR, Refused, World, spec


class Templates(World):
    """A world with templates."""

    def template(
        self, name: str = "deploy/*", pools_max: int = 3, idle: int = HOUR, **more: object
    ) -> None:
        """Create or change a template."""
        self.wish(name, TemplateWish(spec(**more), idle, pools_max))  # type: ignore[arg-type]  # a test's shorthand

    def wish(self, name: str, wish: TemplateWish, generation: int | None = None) -> None:
        """Create or change a template as wished."""
        changes, _ = templates.put(self.facts, self.wall, name, wish, generation)
        self.do((changes, None))

    def removes(self, name: str) -> None:
        """Delete a template."""
        self.do((templates.delete(self.facts, name), None))


def test_a_request_makes_a_pool_with_the_settings_of_the_template() -> None:
    """It is made and used in one batch."""
    world = Templates()
    world.template(limit=1, cooldown=SECOND)
    world.ask("a", {"deploy/web": 1})
    world.ask("b", {"deploy/web": 1})
    pool = world.facts.pools["deploy/web"]
    assert (pool.spec, pool.occupied, pool.waiting) == (spec(1, cooldown=SECOND), 1, 1)
    assert world.facts.made == {"deploy/*": 1}


def test_other_names_are_unknown() -> None:
    """The literal beginning must match, and something must follow it."""
    world = Templates()
    world.template("deploy-*")
    for name in ("build/web", "deploy", "deploy-"):
        with Refused(Code.POOL_UNKNOWN):
            world.ask("a", {name: 1})
    assert world.facts.pools == {}


def test_the_longest_prefix_wins() -> None:
    """So a narrower template is an exception of a wider one."""
    world = Templates()
    world.template("deploy/*", limit=1)
    world.template("deploy/big-*", limit=7)
    world.template("d*", limit=3)
    world.ask("a", {"deploy/big-web": 1})
    assert world.facts.pools["deploy/big-web"].spec.limit == 7
    world.ask("b", {"deploy/web": 1})
    assert world.facts.pools["deploy/web"].spec.limit == 1


@pytest.mark.parametrize(
    "name",
    [
        "deploy/../admin",
        "deploy//x",
        "deploy/X",
        "deploy/a b",
        "deploy/\u202e",
        "deploy/x/",
        "deploy/" + "x" * 300,
        "deploy/%2e%2e",
        "deploy/<b>",
    ],
)
def test_names_are_hostile_input(name: str) -> None:
    """What is no name of a pool makes none."""
    world = Templates()
    world.template()
    with Refused(Code.INVALID):
        world.ask("a", {name: 1})
    assert world.facts.pools == {}


def test_the_number_of_pools_is_bounded() -> None:
    """The bound counts the pools of one batch, and those of other templates do not count."""
    world = Templates()
    world.template(pools_max=2)
    world.template("other/*", pools_max=1)
    world.ask("o", {"other/x": 1})
    world.ask("a", {"deploy/a": 1})
    with Refused(Code.TEMPLATE_FULL) as refused:
        world.ask("b", {"deploy/b": 1, "deploy/c": 1})
    assert "pools_max is 2" in refused.message
    world.ask("c", {"deploy/b": 1})
    with Refused(Code.TEMPLATE_FULL):
        world.ask("d", {"deploy/c": 1})
    assert world.facts.made == {"deploy/*": 2, "other/*": 1}


def test_a_refused_request_makes_nothing() -> None:
    """Whether it may ask, and for how many units, is as the template says."""
    world = Templates()
    world.template(limit=1, askers=("shop/*",))
    with Refused(Code.ASKER_REFUSED):
        world.ask("a", {"deploy/web": 1}, owner="bank/ci")
    with Refused(Code.UNITS_ABOVE_LIMIT):
        world.ask("a", {"deploy/web": 2}, owner="shop/ci")
    assert (world.facts.pools, world.facts.made) == ({}, {})
    world.ask("a", {"deploy/web": 1}, owner="shop/ci")
    assert world.states() == {"a": "g"}


def test_an_idle_pool_goes() -> None:
    """It goes exactly when nobody has used it for the idle time."""
    world = Templates()
    world.template(idle=100 * SECOND)
    world.ask("a", {"deploy/web": 1}, ttl=3_600 * SECOND)
    world.wait(500)
    world.release("a")
    world.wait(99)
    assert "deploy/web" in world.facts.pools
    world.wait(1)
    assert world.facts.pools == {}
    assert world.facts.made == {"deploy/*": 0}


def test_outcomes_of_its_leases_go_with_it() -> None:
    """Also one that is reported in the batch in which it goes, or it would stay without a pool."""
    world = Templates()
    world.template(idle=HOUR)
    world.ask("a", {"deploy/web": 1})
    world.release("a")
    world.now += HOUR
    made = leases.outcome(world.facts, world.moment, LeaseId("a"), OPERATOR, "ok", "")
    assert [one.pool for one in made[0].outcomes] == ["deploy/web"]
    world.do(made)
    assert world.facts.pools == {}
    assert made[0].outcomes == []
    assert world.lease("a").outcome == "ok"


def test_a_pool_with_a_ticket_stays() -> None:
    """A ticket of a limit of zero waits, and keeps its pool."""
    world = Templates()
    world.template(idle=10 * SECOND, limit=1, ttl=1_000 * SECOND)
    world.ask("a", {"deploy/web": 1})
    world.ask("b", {"deploy/web": 1})
    world.wait(500)
    assert world.states() == {"a": "g", "b": "w"}
    assert "deploy/web" in world.facts.pools


def test_resting_units_keep_a_pool() -> None:
    """Otherwise a new pool would grant them before their cooldown is over."""
    world = Templates()
    world.template(idle=10 * SECOND, cooldown=60 * SECOND)
    world.ask("a", {"deploy/web": 1})
    world.release("a")
    world.wait(69)
    assert "deploy/web" in world.facts.pools
    world.wait(1)
    assert world.facts.pools == {}


def test_a_use_begins_the_idle_time_anew() -> None:
    """A request in the batch in which the pool would go keeps it."""
    world = Templates()
    world.template(idle=10 * SECOND)
    world.ask("a", {"deploy/web": 1})
    world.release("a")
    world.now += 10 * SECOND
    world.ask("b", {"deploy/web": 1})
    assert world.states()["b"] == "g"
    world.wait(50)
    world.release("b")
    world.wait(9)
    assert "deploy/web" in world.facts.pools
    world.wait(1)
    assert world.facts.pools == {}


def test_a_paused_pool_stays() -> None:
    """The operator who has paused it would not find it again."""
    world = Templates()
    world.template(idle=10 * SECOND)
    world.ask("a", {"deploy/web": 1})
    world.pause("deploy/web")
    world.release("a")
    world.wait(100)
    assert "deploy/web" in world.facts.pools
    world.pause("deploy/web", False)
    world.wait(9)
    assert "deploy/web" in world.facts.pools
    world.wait(1)
    assert world.facts.pools == {}


def test_what_an_operator_changes_stays() -> None:
    """It is an ordinary pool from then on, and does not count for the template."""
    world = Templates()
    world.template(idle=10 * SECOND)
    world.ask("a", {"deploy/web": 1})
    world.pool("deploy/web")
    world.release("a")
    world.wait(100)
    assert "deploy/web" in world.facts.pools
    assert world.facts.made == {"deploy/*": 0}


def test_a_changed_template_concerns_later_pools() -> None:
    """Each pool has its own copy of the settings and of the idle time."""
    world = Templates()
    world.template(limit=1, idle=10 * SECOND)
    world.ask("a", {"deploy/a": 1})
    world.template(limit=5, idle=HOUR)
    world.ask("b", {"deploy/b": 1})
    limits = {name: pool.spec.limit for name, pool in world.facts.pools.items()}
    assert limits == {"deploy/a": 1, "deploy/b": 5}
    world.release("a")
    world.release("b")
    world.wait(10)
    assert [*world.facts.pools] == ["deploy/b"]


def test_pools_outlive_their_template() -> None:
    """They go once they are idle."""
    world = Templates()
    world.template(idle=10 * SECOND)
    world.ask("a", {"deploy/a": 1})
    world.removes("deploy/*")
    with Refused(Code.POOL_UNKNOWN):
        world.ask("b", {"deploy/b": 1})
    world.release("a")
    world.wait(10)
    assert world.facts.pools == {}


def test_a_repeated_request_makes_nothing() -> None:
    """Its lease is remembered although its pool is gone."""
    world = Templates()
    world.template(idle=10 * SECOND)
    world.ask("a", {"deploy/a": 1})
    world.release("a")
    world.wait(20)
    world.ask("again", {"deploy/a": 1}, key="a")
    assert world.facts.pools == {}


@pytest.mark.parametrize("name", ["deploy", "*", "De*", "a*b*", "../*", "/*", "a//*", "a/*/b"])
def test_names_of_templates_are_the_beginning_of_names_of_pools(name: str) -> None:
    """One asterisk ends them."""
    with Refused(Code.INVALID):
        Templates().template(name)


def test_templates_have_no_slots_and_no_members() -> None:
    """Their pools need a number of units."""
    world = Templates()
    for more in (
        {"limit": None, "native_slots": True},
        {"limit": None},
        {"limit": 0, "per_member": 1, "member_group": "g"},
    ):
        with Refused(Code.INVALID):
            world.template(**more)  # type: ignore[arg-type]  # a test's shorthand


@pytest.mark.parametrize(("idle", "pools_max"), [(0, 1), (SECOND, 0), (SECOND, 10_001)])
def test_sizes_of_templates_are_bounded(idle: int, pools_max: int) -> None:
    """Each of them."""
    with Refused(Code.INVALID):
        Templates().template(idle=idle, pools_max=pools_max)


def test_the_number_of_templates_is_bounded() -> None:
    """All are read to make a pool."""
    world = Templates()
    for n in range(TEMPLATES_MAX):
        world.template(f"a{n}/*")
    with Refused(Code.LIMIT_EXCEEDED):
        world.template("b/*")
    world.template("a0/*", limit=2)


def test_generations_guard_templates() -> None:
    """As those of pools do."""
    world = Templates()
    wish = TemplateWish(spec(1), HOUR, 1)
    with Refused(Code.TEMPLATE_NOT_FOUND):
        world.wish("a/*", wish, 1)
    world.wish("a/*", wish, 0)
    with Refused(Code.TEMPLATE_EXISTS):
        world.wish("a/*", wish, 0)
    world.wish("a/*", wish, 1)
    assert world.facts.templates["a/*"].generation == 1
    world.wish("a/*", TemplateWish(spec(2), HOUR, 1), 1)
    with Refused(Code.TEMPLATE_GENERATION):
        world.wish("a/*", wish, 1)
    with Refused(Code.TEMPLATE_NOT_FOUND):
        world.removes("b/*")


def test_a_pacing_may_follow_from_the_hold() -> None:
    """As that of a pool."""
    world = Templates()
    world.wish("a/*", TemplateWish(spec(10, hold=100 * SECOND), HOUR, 1, paced=True))
    made = world.facts.templates["a/*"].spec
    assert (
        made.pacing
        == pools.paced(None, world.facts, spec(10, hold=100 * SECOND), Instant(0)).pacing
    )
    assert made.pacing is not None


def test_changes_of_templates_are_published() -> None:
    """Followers see them."""
    assert Changes(templates={"a/*": None}).is_published


def test_each_pool_of_an_adaptive_template_has_a_test_of_its_own() -> None:
    """It begins when the pool is made, moves the limit of that pool only, and goes with it."""
    world = Templates()
    adaptive = Adaptive(1, 20, "act")
    world.template(limit=10, adaptive=adaptive)
    for job in range(10):
        world.ask(f"a{job}", {"deploy/web": 1})
    world.ask("b", {"deploy/api": 1})
    state = world.facts.pools["deploy/web"].adaptation
    assert state is not None
    assert (state.configured, state.since) == (10, world.now)
    world.now += MINUTE
    for job in range(3):
        world.report(f"a{job}", "failed", pool="deploy/web")
    limits = {name: one.spec.limit for name, one in world.facts.pools.items()}
    assert limits == {"deploy/web": 7, "deploy/api": 10}
    assert world.facts.templates["deploy/*"].spec.limit == 10
    for job in range(10):
        world.release(f"a{job}")
    world.now += HOUR + SECOND
    world.sweep()
    assert "deploy/web" not in world.facts.pools
    world.ask("c", {"deploy/web": 1})
    assert world.facts.pools["deploy/web"].spec.limit == 10


def test_an_operator_keeps_what_an_adaptive_pool_of_a_template_has_found() -> None:
    """The pool is the operator's from then on, and its test goes on."""
    world = Templates()
    adaptive = Adaptive(1, 20, "act")
    world.template(limit=10, adaptive=adaptive)
    for job in range(10):
        world.ask(f"a{job}", {"deploy/web": 1})
    world.now += MINUTE
    for job in range(3):
        world.report(f"a{job}", "failed", pool="deploy/web")
    before = world.facts.pools["deploy/web"]
    taken = world.pool("deploy/web", 7, adaptive=adaptive)
    assert (taken.on_demand, taken.adaptation) == (None, before.adaptation)


@pytest.mark.parametrize("settings", [Adaptive(11, 20), Adaptive(1, 9), Adaptive(0, 10)])
def test_the_adaptive_limit_of_a_template_is_checked(settings: Adaptive) -> None:
    """The limit is within floor and ceiling, as that of a pool."""
    with Refused(Code.INVALID):
        Templates().template(limit=10, adaptive=settings)
