"""The three policy profiles, rule by rule."""

import pytest

from moorage.faces.placement.policy import RESHAPE, USAGES, Profile, allows
from moorage.faces.placement.routes import routes
from moorage.faces.web import Caller
from tests.faces.placement.support.client import Client

ADMIN = Caller("u", "p", frozenset({"admin", "member", "reader"}))
SERVICE = Caller("u", "p", frozenset({"service"}))
READER = Caller("u", "p", frozenset({"reader"}))
MEMBER = Caller("u", "p", frozenset({"member"}))
NOBODY = Caller("u", "p", frozenset())
SYSTEM = Caller("u", None, frozenset({"admin", "reader"}), system_scope=True)

RULES = sorted({route.rule for route in routes() if route.rule})


def test_the_rules_are_those_of_placement() -> None:
    """Every route but the root has a rule; two routes may share one."""
    assert len(RULES) == 33
    assert [route.path for route in routes() if not route.rule] == ["/"]


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule not in (USAGES, RESHAPE)])
def test_most_rules_permit_administrators_and_services(rule: str) -> None:
    """A reader or member has no access except to usages."""
    for profile in ("default", "new"):
        who = [c for c in (ADMIN, SERVICE, READER, MEMBER, NOBODY) if allows(profile, rule, c, "p")]  # type: ignore[arg-type]  # both are profiles
        assert who == [ADMIN, SERVICE]


def test_readers_see_the_usages_of_their_own_project() -> None:
    """They do not see those of another project or of all projects."""
    for profile in ("default", "new"):
        assert allows(profile, USAGES, READER, "p")  # type: ignore[arg-type]  # both are profiles
        assert not allows(profile, USAGES, READER, "q")  # type: ignore[arg-type]  # as above
        assert not allows(profile, USAGES, READER, None)  # type: ignore[arg-type]  # as above
        assert not allows(profile, USAGES, MEMBER, "p")  # type: ignore[arg-type]  # as above


def test_only_services_reshape_under_the_new_defaults() -> None:
    """Administrators may reshape only under the default profile."""
    assert allows("default", RESHAPE, ADMIN, None)
    assert allows("default", RESHAPE, SERVICE, None)
    assert not allows("new", RESHAPE, ADMIN, None)
    assert allows("new", RESHAPE, SERVICE, None)


@pytest.mark.parametrize("profile", ["default", "new", "open"])
def test_system_scope_may_do_nothing(profile: Profile) -> None:
    """All rules are for projects."""
    assert not any(allows(profile, rule, SYSTEM, "p") for rule in RULES)


def test_the_open_profile_permits_everything() -> None:
    """Any token is sufficient."""
    assert all(allows("open", rule, NOBODY, None) for rule in RULES)


def test_a_refusal_names_the_rule(api: Client) -> None:
    """The error comes before any lookup."""
    reply = api.ask("GET", "/resource_providers/unknown/traits", token="user")
    assert reply.status == 403
    assert (
        "Policy does not allow placement:resource_providers:traits:list to be performed."
        in reply.detail
    )


def test_the_profile_can_change_while_running(api: Client) -> None:
    """The next request is judged by the new profile."""
    assert api.ask("GET", "/traits", token="user").status == 403
    api.profile("open")
    assert api.ask("GET", "/traits", token="user").status == 200
