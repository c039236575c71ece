"""Placement's own fixture classes, with their database and settings replaced by a server's.

The classes are imported from the wheel as they are. What they reach by the global names of their
module is exchanged here: the database, the policy and the settings become requests to the server
under test, everything else (environment variables, captures) stays.
"""

from types import SimpleNamespace
from typing import Any

from oslo_config import fixture as config_fixture
from placement.tests.functional.fixtures import gabbits

from tests.conformance.remote import Helpers, Named, Remote


class Profile:
    """What the fixtures have asked for so far; each change is handed to the server."""

    def __init__(self, remote: Remote) -> None:
        self.remote = remote
        self.policy = "default"
        self.cors_origin: str | None = None

    def push(self) -> None:
        """Empty the server and put this profile in force."""
        self.remote.reset(self.policy, self.cors_origin)


def settings_class(profile: Profile) -> type[config_fixture.Config]:
    """Make the stand-in for the settings fixture: it also tells the server what matters there."""

    class Settings(config_fixture.Config):  # type: ignore[misc]  # oslo.config has no types
        """The original settings; policy defaults and CORS reach the server as well."""

        def config(self, **values: Any) -> None:
            super().config(**values)
            if "enforce_new_defaults" in values:
                profile.policy = "new" if values["enforce_new_defaults"] else "default"
                profile.cors_origin = None
            if "allowed_origin" in values:
                (profile.cors_origin,) = values["allowed_origin"]
                profile.push()

    return Settings


class Database:
    """Stands for the database fixture: set up means an empty server."""

    def __init__(self, profile: Profile, settings: config_fixture.Config) -> None:
        self.profile = profile
        # The settings demand an address of a database; nothing ever connects to it.
        settings.config(connection="sqlite://", group="placement_database")

    def setUp(self) -> None:
        """Empty the server, with the policy that the settings have named."""
        self.profile.push()

    def cleanUp(self) -> None:  # noqa: N802 - the name that the fixtures call
        """Leave nothing for the next file."""
        self.profile.push()


class Policy:
    """Stands for the policy fixture: rules that admit everybody are the profile `open`."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    def setUp(self) -> None:
        """Nothing to do: the default rules are in force."""

    def cleanUp(self) -> None:  # noqa: N802 - the name that the fixtures call
        """Nothing to do: the next set-up names its own policy."""

    def set_rules(self, rules: dict[str, str]) -> None:
        """Open every rule; the fixtures never ask for anything else."""
        if set(rules.values()) != {"@"}:
            raise ValueError(f"no profile for these rules: {rules}")
        self.profile.policy = "open"
        self.profile.push()


def fixtures_for(remote: Remote) -> Any:
    """Return the wheel's fixture module, bound to this server (one server per process)."""
    profile = Profile(remote)
    helpers = Helpers(remote)
    gabbits.tb = helpers
    gabbits.user_obj = SimpleNamespace(User=Named)
    gabbits.project_obj = SimpleNamespace(Project=Named)
    gabbits.rc_obj = SimpleNamespace(ResourceClass=helpers.make_class)
    gabbits.config_fixture = SimpleNamespace(Config=settings_class(profile))
    gabbits.fixtures = SimpleNamespace(
        Database=lambda settings, set_config: Database(profile, settings)
    )
    gabbits.policy_fixture = SimpleNamespace(PolicyFixture=lambda _settings: Policy(profile))
    return gabbits
